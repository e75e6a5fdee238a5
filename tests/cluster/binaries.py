"""The control plane's programs: built once from Go modules, cached by content.

The modules beside this file pin them by `go.sum`; a changed pin is a new folder in
the cache. `python -m tests.cluster.binaries` builds what is missing and names it.
"""

import fcntl
import hashlib
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import attrs

HERE = Path(__file__).resolve().parent


class UnavailableError(Exception):
    """The control plane cannot be had on this machine; the message says why."""


@attrs.frozen
class Module:
    """A Go module of ours and the programs that its tool directive names."""

    folder: Path
    programs: dict[str, str]  # file name → Go package
    ldflags: str = "-s -w"

    def key(self) -> str:
        """Name everything that decides what a build makes, in 16 hex digits."""
        digest = hashlib.sha256()
        for name in ("go.mod", "go.sum"):
            digest.update((self.folder / name).read_bytes())
        digest.update(repr((self.programs, self.ldflags)).encode())
        return digest.hexdigest()[:16]


KUBERNETES = Module(
    HERE,
    {
        "etcd": "go.etcd.io/etcd/server/v3",
        "kube-apiserver": "k8s.io/kubernetes/cmd/kube-apiserver",
        "kube-controller-manager": "k8s.io/kubernetes/cmd/kube-controller-manager",
        "kube-scheduler": "k8s.io/kubernetes/cmd/kube-scheduler",
    },
    # Without it the server calls itself v0.0.0 and clients take it for an antique.
    "-s -w -X k8s.io/component-base/version.gitVersion=v1.36.3",
)
KWOK = Module(HERE / "kwok", {"kwok": "sigs.k8s.io/kwok/cmd/kwok"})


def cache_root() -> Path:
    """Locate the cache: `NFD_CLUSTER_CACHE`, else a folder of the user's cache."""
    named = os.environ.get("NFD_CLUSTER_CACHE")
    return Path(named) if named else Path.home() / ".cache" / "nfd-cluster"


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Keep other processes out of `folder` while it is being filled."""
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def binaries(module: Module) -> dict[str, Path]:
    """Return name → path of the module's programs, building the missing ones.

    A cold build takes minutes and needs Go.

    Raises:
        UnavailableError: something is missing and cannot be built.
    """
    folder = cache_root() / module.key()
    paths = {name: folder / name for name in module.programs}
    if all(path.exists() for path in paths.values()):
        return paths
    go = shutil.which("go")
    if go is None:
        raise UnavailableError(f"no go on PATH and no programs cached in {folder}")
    with locked(folder):
        for name, package in module.programs.items():
            if not paths[name].exists():
                _build(go, module, package, paths[name])
    return paths


def _build(go: str, module: Module, package: str, target: Path) -> None:
    print(f"building {target.name} into {target.parent}", file=sys.stderr, flush=True)
    unfinished = target.with_suffix(".unfinished")
    command = [go, "build", "-trimpath", "-buildvcs=false", "-mod=readonly"]
    command += [f"-ldflags={module.ldflags}", "-o", str(unfinished), package]
    done = subprocess.run(
        ["nice", *command],
        cwd=module.folder,
        env=os.environ | {"CGO_ENABLED": "0", "GOFLAGS": "", "GOWORK": "off"},
        check=False,
        capture_output=True,
        text=True,
    )
    if done.returncode != 0:
        raise UnavailableError(f"{package} does not build: {done.stderr[-2000:]}")
    unfinished.rename(target)


def main() -> None:
    """Build everything and print where it is."""
    for module in (KUBERNETES, KWOK):
        for path in binaries(module).values():
            print(path)


if __name__ == "__main__":
    main()
