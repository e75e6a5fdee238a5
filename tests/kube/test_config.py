"""In-cluster configuration and kubeconfig files."""

import base64
import json
import stat
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from nfd.errors import ConfigError
from nfd.kube import kubeconfig
from nfd.kube.config import authorization, claims, in_cluster, own_namespace
from nfd.kube.connect import connect
from nfd.kube.resources import NODES
from tests.fakeapi import FakeApi
from tests.fakeapi.certificates import authority, server_files

IN_POD = {"KUBERNETES_SERVICE_HOST": "10.0.0.1", "KUBERNETES_SERVICE_PORT": "443"}


@pytest.fixture
def account(tmp_path: Path) -> Path:
    """A service account's folder."""
    (tmp_path / "token").write_text("secret\n")
    (tmp_path / "ca.crt").write_text(authority().pem)
    (tmp_path / "namespace").write_text("nfd\n")
    return tmp_path


def write(path: Path, **changes: Any) -> str:
    """A kubeconfig whose user and cluster are changed."""
    content = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "here",
        "contexts": [
            {
                "name": "here",
                "context": {"cluster": "c", "user": "u", "namespace": "ns"},
            }
        ],
        "clusters": [{"name": "c", "cluster": {"server": "https://x:6443"}}],
        "users": [{"name": "u", "user": {}}],
    }
    content["users"][0]["user"] |= changes.pop("user", {})  # type: ignore[index] # plain YAML
    content["clusters"][0]["cluster"] |= changes.pop("cluster", {})  # type: ignore[index] # plain YAML
    path.write_text(yaml.safe_dump(content | changes))
    return str(path)


CONTEXT = "current-context: x, contexts: [{name: x, context: {cluster: c}}]"


def _cluster(fields: str) -> str:
    return f"{{{CONTEXT}, clusters: [{{name: c, cluster: {{{fields}}}}}]}}"


class TestInCluster:
    """What Kubernetes gives a pod."""

    def test_a_pod(self, account: Path) -> None:
        found = in_cluster(IN_POD, str(account))

        assert found.server == "https://10.0.0.1:443"
        assert found.ca_file == str(account / "ca.crt")
        assert found.namespace == "nfd"
        header = authorization(found)
        assert header is not None
        assert header() == "Bearer secret"
        assert "secret" not in repr(found)

    def test_ipv6_hosts_are_bracketed(self, account: Path) -> None:
        environ = {**IN_POD, "KUBERNETES_SERVICE_HOST": "fd00::1"}
        assert in_cluster(environ, str(account)).server == "https://[fd00::1]:443"

    def test_no_pod(self, account: Path) -> None:
        with pytest.raises(ConfigError, match="not in a cluster"):
            in_cluster({}, str(account))

    def test_a_pod_without_token(self, account: Path) -> None:
        (account / "token").unlink()
        with pytest.raises(ConfigError, match=r"no token in .*/token"):
            in_cluster(IN_POD, str(account))

    def test_the_namespace(self, account: Path) -> None:
        environ = {"KUBERNETES_NAMESPACE": "other"}
        assert own_namespace(environ, str(account)) == "nfd"
        (account / "namespace").unlink()
        assert own_namespace(environ, str(account)) == "other"
        assert own_namespace({}, str(account)) == ""


def test_the_claims_of_a_token() -> None:
    node = {"kubernetes.io": {"node": {"name": "n1", "uid": "u1"}}}
    payload = base64.urlsafe_b64encode(json.dumps(node).encode()).decode().rstrip("=")
    assert node == claims(f"header.{payload}.signature")
    for bad in ("", "a.b", "a.?.c", "opaque", "a.W10.c"):
        assert claims(bad) == {}


class TestKubeconfig:
    """Files, read by ourselves."""

    def test_a_token(self, tmp_path: Path) -> None:
        found = kubeconfig.load(write(tmp_path / "k", user={"token": "secret"}))

        assert found.server == "https://x:6443"
        assert found.namespace == "ns"
        assert found.token is not None
        assert found.token() == "secret"

    def test_files_are_relative_to_the_kubeconfig(self, tmp_path: Path) -> None:
        (tmp_path / "t").write_text("secret")
        user = {"tokenFile": "t", "client-certificate": "c.crt", "client-key": "/c.key"}
        found = kubeconfig.load(
            write(tmp_path / "k", user=user, cluster={"certificate-authority": "ca"})
        )

        assert found.ca_file == str(tmp_path / "ca")
        assert found.cert_file == str(tmp_path / "c.crt")
        assert found.key_file == "/c.key"
        assert found.token is not None
        assert found.token() == "secret"

    def test_certificates_inside(self, tmp_path: Path) -> None:
        """A client certificate in the file is who we are."""
        pair = authority().pair("alice")

        def encoded(text: str) -> str:
            return base64.b64encode(text.encode()).decode()

        with FakeApi(tls=True) as api:
            path = write(
                tmp_path / "k",
                cluster={
                    "server": api.url,
                    "certificate-authority-data": encoded(authority().pem),
                },
                user={
                    "client-certificate-data": encoded(pair.certificate),
                    "client-key-data": encoded(pair.key),
                },
            )
            client = connect("cli", path)
            assert list(client.list(NODES)) == []
            client.transport.close()

            assert api.requests[0].user == "alice"
            assert api.requests[0].user_agent.startswith("nfd-cli/")

    def test_without_verification_and_with_a_password(self, tmp_path: Path) -> None:
        with FakeApi(tls=True) as api:
            path = write(
                tmp_path / "k",
                cluster={"server": api.url, "insecure-skip-tls-verify": True},
                user={"username": "me", "password": "secret"},
            )
            client = connect("cli", path)
            list(client.list(NODES))
            client.transport.close()

            expected = "Basic " + base64.b64encode(b"me:secret").decode()
            assert expected == api.requests[0].headers["authorization"]

    def test_several_files_are_merged(self, tmp_path: Path) -> None:
        first = write(tmp_path / "a", users=[], **{"current-context": ""})
        second = write(tmp_path / "b", clusters=[], user={"token": "secret"})
        found = kubeconfig.load(first, second)

        assert found.server == "https://x:6443"
        assert found.token is not None

    def test_another_context(self, tmp_path: Path) -> None:
        contexts = [
            {"name": "here", "context": {"cluster": "no"}},
            {"name": "there", "context": {"cluster": "c"}},
        ]
        path = write(tmp_path / "k", contexts=contexts)
        assert kubeconfig.load(path, context="there").server == "https://x:6443"

    def test_the_default_paths(self, tmp_path: Path) -> None:
        folder = tmp_path / ".kube"
        folder.mkdir()
        home = {"HOME": str(tmp_path)}
        assert kubeconfig.paths(home) == []
        write(folder / "config")
        assert [str(folder / "config")] == kubeconfig.paths(home)
        other = write(tmp_path / "other")
        assert [other] == kubeconfig.paths({**home, "KUBECONFIG": f"{other}:/no/such"})

    @pytest.mark.parametrize(
        ("text", "message"),
        [
            ("", "no kubeconfig"),
            ("a: [", "no YAML"),
            ("{}", "current-context: not set"),
            ("current-context: x", "contexts: no entry named 'x'"),
            ("clusters: [1]", "clusters: an entry has the wrong shape"),
            (f"{{{CONTEXT}}}", "clusters: no entry named 'c'"),
            (_cluster(""), r"clusters\[c\].server: not set"),
            (_cluster("server: [1]"), r"clusters\[c\].server: not text"),
            (
                _cluster("server: s, certificate-authority-data: '%'"),
                r"clusters\[c\].certificate-authority-data: no base64",
            ),
        ],
    )
    def test_what_is_wrong_is_named(
        self, tmp_path: Path, text: str, message: str
    ) -> None:
        path = tmp_path / "k"
        path.write_text(text)
        with pytest.raises(ConfigError, match=f"^{path}: .*{message}"):
            kubeconfig.load(str(path))

    @pytest.mark.parametrize("key", ["as", "as-groups"])
    def test_it_never_acts_with_more_rights_than_meant(
        self, tmp_path: Path, key: str
    ) -> None:
        path = write(tmp_path / "k", user={"token": "secret", key: ["x"]})
        with pytest.raises(ConfigError, match=f"{key}: not supported"):
            kubeconfig.load(path)

    def test_a_file_that_is_not_there(self, tmp_path: Path) -> None:
        with pytest.raises(ConfigError, match="No such file"):
            kubeconfig.load(str(tmp_path / "no"))


def _plugin(folder: Path) -> dict[str, Any]:
    """A user whose token a program prints."""
    program = folder / "login"
    credential = (
        '{"apiVersion": "client.authentication.k8s.io/v1", "kind": "ExecCredential",'
        ' "status": {"token": "from-a-program"}}'
    )
    program.write_text(f"#!/bin/sh\necho '{credential}'\n")
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    return {
        "exec": {
            "apiVersion": "client.authentication.k8s.io/v1",
            "command": str(program),
            "interactiveMode": "Never",
        }
    }


def test_credentials_of_a_program(tmp_path: Path) -> None:
    """They come through the official package, our transport sends the request."""
    pytest.importorskip("kubernetes")
    with FakeApi(tls=True) as api:
        api.tokens = {"from-a-program": "alice"}
        cluster = {"server": api.url, "certificate-authority": server_files()[0]}
        path = write(tmp_path / "k", cluster=cluster, user=_plugin(tmp_path))
        client = connect("cli", path)
        assert list(client.list(NODES)) == []
        client.transport.close()

        assert api.requests[0].user == "alice"


def test_without_the_official_package(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in [m for m in sys.modules if m.split(".")[0] == "kubernetes"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "kubernetes", None)
    path = write(tmp_path / "k", user=_plugin(tmp_path))
    with pytest.raises(ConfigError, match="install the extra `kubernetes`"):
        kubeconfig.load(path)
