"""A Kubernetes control plane of one's own: real programs on free loopback ports.

Everything it writes is below one folder, everything it starts dies with the thread
that started it, and nothing of it is shared with another `ControlPlane`.
"""

import time
import uuid
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Self

import attrs
import urllib3

from tests.cluster import flags, objects
from tests.cluster.api import Api, RefusedError, documents
from tests.cluster.audit import matches, read_events
from tests.cluster.binaries import KUBERNETES, KWOK, binaries
from tests.cluster.certificates import Authority, write_service_account_key
from tests.cluster.kubeconfig import certificate_user, write_kubeconfig
from tests.cluster.processes import Program, free_port

START_SECONDS = 60.0
POLL_SECONDS = 0.05


class StartError(Exception):
    """A program of the control plane did not come up; the message holds its log."""


@attrs.define
class ControlPlane:
    """etcd and kube-apiserver, and on demand controller manager, scheduler and kwok.

    Use it as a context manager, or call `start` and `stop`.

    Args:
        folder: where keys, data, logs and kubeconfigs go; made when missing.
        controller_manager: run kube-controller-manager (garbage collection,
            DaemonSets, Deployments, default service accounts).
        scheduler: run kube-scheduler.
        kwok: let kwok play the kubelet of every Node, so that pods run.
        api_server_flags: added to ours, later ones win.
    """

    folder: Path
    controller_manager: bool = attrs.field(default=False, kw_only=True)
    scheduler: bool = attrs.field(default=False, kw_only=True)
    kwok: bool = attrs.field(default=False, kw_only=True)
    api_server_flags: tuple[str, ...] = attrs.field(default=(), kw_only=True)
    programs: dict[str, Program] = attrs.field(init=False, factory=dict)
    url: str = attrs.field(init=False, default="")
    admin: Api = attrs.field(init=False)
    _authority: Authority = attrs.field(init=False)

    @property
    def ca(self) -> Path:
        """PEM file of the certificate authority."""
        return self._authority.pair.certificate

    @property
    def kubeconfig(self) -> Path:
        """Kubeconfig file of a cluster administrator."""
        return self.folder / "admin.kubeconfig"

    @property
    def audit_log(self) -> Path:
        """The API server's audit log, one JSON event a line."""
        return self.folder / "audit.log"

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def start(self) -> None:
        """Start everything and return when it answers.

        Raises:
            UnavailableError: the programs cannot be had on this machine.
            StartError: one of them does not come up.
        """
        paths = binaries(KUBERNETES) | (binaries(KWOK) if self.kwok else {})
        self.folder.mkdir(parents=True, exist_ok=True)
        self._authority = Authority.create(self.folder / "pki")
        admin = self._authority.issue("admin", "nfd-test-admin", "system:masters")
        tries = 3  # a free port may be taken between our look and the program's
        for attempt in range(1, tries + 1):
            try:
                self._define_core(paths)
                self.admin = Api(self.url, self.ca, admin.certificate, admin.key)
                self._write_kubeconfig(self.kubeconfig, certificate_user(admin))
                self._start_core()
                break
            except StartError as error:
                self.stop()
                if attempt == tries or "address already in use" not in str(error):
                    raise
        try:
            self._start_rest(paths)
        except BaseException:
            self.stop()
            raise

    def stop(self) -> None:
        """Stop everything, last started first."""
        for program in reversed(self.programs.values()):
            program.stop()

    def start_api_server(self) -> None:
        """Start the API server on the etcd and the port it had; wait until it is ready."""
        self.programs["kube-apiserver"].start()
        self._wait("kube-apiserver", self._api_server_ready)

    def restart_api_server(self, *, kill: bool = False) -> None:
        """Stop (or kill) the API server and start it again on the same etcd."""
        program = self.programs["kube-apiserver"]
        if kill:
            program.kill()
        else:
            program.stop(seconds=30)
        self.start_api_server()

    def pause(self, name: str) -> None:
        """Freeze a program: `etcd` makes every request hang."""
        self.programs[name].pause()

    def resume(self, name: str) -> None:
        """Let a frozen program go on."""
        self.programs[name].resume()

    # ---- users -------------------------------------------------------------

    def client(self, token: str | None = None) -> Api:
        """Make a client: of the token's owner, or of nobody (anonymous)."""
        return Api(self.url, self.ca, token=token)

    def certificate_client(self, user: str, *groups: str) -> Api:
        """Make a client for a user known by certificate, as kubelets are."""
        pair = self._authority.issue(_file_name(user), user, *groups)
        return Api(self.url, self.ca, pair.certificate, pair.key)

    def token_kubeconfig(self, name: str, token: str) -> Path:
        """Write a kubeconfig that uses a bearer token; returns its path."""
        return self._write_kubeconfig(
            self.folder / f"{_file_name(name)}.kubeconfig", {"token": token}
        )

    def certificate_kubeconfig(self, user: str, *groups: str) -> Path:
        """Write a kubeconfig for a user known by certificate; returns its path."""
        pair = self._authority.issue(_file_name(user), user, *groups)
        return self._write_kubeconfig(
            self.folder / f"{_file_name(user)}.kubeconfig", certificate_user(pair)
        )

    def service_account(self, namespace: str, name: str) -> None:
        """Make sure that namespace and service account exist."""
        self.ensure(objects.manifest("v1", "Namespace", namespace))
        self.ensure(objects.manifest("v1", "ServiceAccount", name, namespace))

    def bound_token(
        self,
        namespace: str,
        service_account: str,
        pod: str | None = None,
        *,
        node: str | None = None,
        seconds: int = 3600,
    ) -> str:
        """Ask for a service-account token as a kubelet does for a pod.

        With `pod` the token is bound to that Pod, which is made on `node` when it
        does not exist, and then carries the claim of the node that the Pod has.
        Without it the token is bound to nothing and carries no node claim.
        """
        self.service_account(namespace, service_account)
        spec: dict[str, Any] = {
            "audiences": [flags.ISSUER],
            "expirationSeconds": seconds,
        }
        if pod is not None:
            made = self.ensure(objects.pod(namespace, pod, service_account, node))
            spec["boundObjectRef"] = {
                "apiVersion": "v1",
                "kind": "Pod",
                "name": pod,
                "uid": made["metadata"]["uid"],
            }
        answer = self.admin.create(
            f"/api/v1/namespaces/{namespace}/serviceaccounts/{service_account}/token",
            {
                "apiVersion": "authentication.k8s.io/v1",
                "kind": "TokenRequest",
                "spec": spec,
            },
        )
        token: str = answer["status"]["token"]
        return token

    # ---- objects -----------------------------------------------------------

    def ensure(self, manifest: Mapping[str, Any]) -> Any:
        """Create an object unless it exists; returns it as the server has it."""
        try:
            return self.admin.create(
                self.admin.path_of(manifest, named=False), manifest
            )
        except RefusedError as error:
            if error.status != 409:
                raise
        return self.admin.get(self.admin.path_of(manifest))

    def node(self, name: str, **labels: str) -> Any:
        """Make sure that a Node exists, as a kubelet would have registered it."""
        return self.ensure(objects.node(name, labels))

    def apply_files(self, *paths: Path) -> list[Any]:
        """Apply the YAML files server-side, CRDs until they are served."""
        applied = []
        for path in paths:
            for manifest in documents(path.read_text()):
                applied.append(self.admin.apply(manifest))
                if manifest["kind"] == "CustomResourceDefinition":
                    self._wait_served(manifest)
        return applied

    def audit_events(self, **wanted: str) -> list[dict[str, Any]]:
        """Read the audit log up to now, every request that has been answered.

        Args:
            wanted: keeps events whose `user` (name), `verb`, `resource` (with
                `/subresource`), `name` or `agent` (start of the user agent) equal
                these.
        """
        mark = f"/readyz?audit-mark={uuid.uuid4()}"
        self.admin.request("GET", mark)
        events: list[dict[str, Any]] = []

        def marked() -> bool:
            events[:] = read_events(self.audit_log)
            return any(event["requestURI"] == mark for event in events)

        self._wait("kube-apiserver", marked)
        return [
            event
            for event in events
            if "audit-mark=" not in event["requestURI"] and matches(event, wanted)
        ]

    @staticmethod
    def wait_for(look: Callable[[], Any], wanted: Any, *, seconds: float = 60) -> None:
        """Look again until what is seen equals `wanted`; an assertion if it never does."""
        until = time.monotonic() + seconds
        while (seen := look()) != wanted:
            if time.monotonic() > until:
                raise AssertionError(f"wanted {wanted!r}, after {seconds} s: {seen!r}")
            time.sleep(POLL_SECONDS)

    # ---- how it is put together --------------------------------------------

    def _define_core(self, paths: Mapping[str, Path]) -> None:
        serving = self._authority.issue("kube-apiserver", "kube-apiserver")
        tokens = write_service_account_key(self._authority.folder)
        etcd, peer, port = free_port(), free_port(), free_port()
        self.url = f"https://127.0.0.1:{port}"
        self.programs.clear()
        self._define("etcd", paths, flags.etcd(self.folder / "etcd", etcd, peer))
        self._define(
            "kube-apiserver",
            paths,
            [
                *flags.api_server(port, etcd, self.ca, serving, tokens),
                *flags.audit(self.folder / "audit-policy.json", self.audit_log),
                *self.api_server_flags,
            ],
        )

    def _start_core(self) -> None:
        self.programs["etcd"].start()
        self.start_api_server()

    def _start_rest(self, paths: Mapping[str, Path]) -> None:
        if self.controller_manager:
            key = self._authority.folder / "service-account.key"
            self._start_loop(
                "kube-controller-manager",
                paths,
                flags.controller_manager(self.ca, key, kubelets=self.kwok),
            )
        if self.scheduler:
            self._start_loop("kube-scheduler", paths, [])
        if self.kwok:
            port = free_port()
            stages = KWOK.folder / "kubelets.yaml"
            self._define("kwok", paths, flags.kwok(port, stages, self.kubeconfig))
            self._start_healthy("kwok", f"http://127.0.0.1:{port}/healthz")

    def _start_loop(
        self, name: str, paths: Mapping[str, Path], more: list[str]
    ) -> None:
        port = free_port()
        serving = self._authority.issue(f"{name}-serving", name)
        kubeconfig = self.certificate_kubeconfig(f"system:{name}")
        self._define(name, paths, [*flags.loop(port, kubeconfig, serving), *more])
        self._start_healthy(name, f"https://127.0.0.1:{port}/healthz")

    def _start_healthy(self, name: str, url: str) -> None:
        pool = urllib3.PoolManager(ca_certs=str(self.ca), retries=False)

        def healthy() -> bool:
            try:
                return pool.request("GET", url, timeout=2).status == 200
            except urllib3.exceptions.HTTPError:
                return False

        self.programs[name].start()
        self._wait(name, healthy)

    def _write_kubeconfig(self, path: Path, user: Mapping[str, str]) -> Path:
        return write_kubeconfig(path, self.url, self.ca, user)

    def _define(
        self, name: str, paths: Mapping[str, Path], arguments: list[str]
    ) -> None:
        log = self.folder / f"{name}.log"
        self.programs[name] = Program(name, [str(paths[name]), *arguments], log)

    def _api_server_ready(self) -> bool:
        try:
            self.admin.request("GET", "/readyz", timeout=5)
        except (RefusedError, urllib3.exceptions.HTTPError):
            return False
        return True

    def _wait_served(self, definition: Mapping[str, Any]) -> None:
        spec = definition["spec"]
        paths = [
            f"/apis/{spec['group']}/{version['name']}/{spec['names']['plural']}"
            for version in spec["versions"]
            if version["served"]
        ]

        def served() -> bool:
            try:
                for path in paths:
                    self.admin.get(path, limit="1")
            except RefusedError:
                return False
            return True

        self._wait("kube-apiserver", served)

    def _wait(self, name: str, ready: Callable[[], bool]) -> None:
        program = self.programs[name]
        until = time.monotonic() + START_SECONDS
        while not ready():
            if not program.running:
                raise StartError(f"{name} ended: {program.tail()}")
            if time.monotonic() > until:
                raise StartError(f"{name} is not ready: {program.tail()}")
            time.sleep(POLL_SECONDS)


def _file_name(user: str) -> str:
    return user.replace(":", "-").replace("/", "-")
