"""Runs programs inside an unpacked image as a container runtime would.

Read-only, as the image's user and so without capabilities, and with folders of a
host mounted where the chart mounts them. Needs root, for mount namespaces.
"""

import os
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

import attrs

USER = "65534:65534"
HOST_FOLDERS = {  # in the pod: on the host; as the chart mounts them
    "host-boot": "boot",
    "host-etc/os-release": "etc/os-release",
    "host-proc": "proc",
    "host-sys": "sys",
    "host-usr/lib": "usr/lib",
    "host-lib": "lib",
}


@attrs.frozen
class Inside:
    """One unpacked image, and a scratch folder for mount points."""

    image: Path
    scratch: Path

    @property
    def out(self) -> Path:
        """The one folder that may be written, `/out` inside."""
        return self.scratch / "out"

    def run(
        self,
        *words: str,
        host: Path | None = None,
        environment: Mapping[str, str] | None = None,
        seconds: float = 60,
    ) -> subprocess.CompletedProcess[str]:
        """Run a command by its name in the image's PATH."""
        return subprocess.run(
            self.command(words, host),
            env={"PATH": "/usr/bin", "NFD_HOST_ROOT": "/host-", **(environment or {})},
            check=False,
            capture_output=True,
            text=True,
            timeout=seconds,
        )

    def command(self, words: Sequence[str], host: Path | None) -> list[str]:
        """Return the command line that sets the mounts up and then becomes `words`."""
        root = self.scratch / "root"
        self.out.mkdir(exist_ok=True)
        os.chown(self.out, *map(int, USER.split(":")))
        lines = ["set -e", f"mount -t tmpfs none {root}"]
        root.mkdir(exist_ok=True)
        for entry in sorted(self.image.iterdir()):
            place = root / entry.name
            if entry.is_symlink():
                lines.append(f"ln -s {os.readlink(entry)} {place}")
            elif entry.name in {"proc", "dev", "sys"}:
                lines.append(f"mkdir {place}; mount --rbind /{entry.name} {place}")
            else:
                lines.append(f"mkdir {place}; mount --bind -o ro {entry} {place}")
        for name, source in HOST_FOLDERS.items():
            if host is None or not (host / source).exists():
                continue
            place = root / name
            if (host / source).is_file():
                lines.append(f"mkdir -p {place.parent}; touch {place}")
            else:
                lines.append(f"mkdir -p {place}")
            lines.append(f"mount --bind -o ro {host / source} {place}")
        lines.append(f"mkdir {root}/out; mount --bind {self.out} {root}/out")
        lines += [
            f"mount -o remount,ro {root}",
            f'exec setpriv --no-new-privs /usr/sbin/chroot --userspec={USER} {root} "$@"',
        ]
        script = "; ".join(lines)
        return ["/usr/bin/unshare", "--mount", "/bin/sh", "-c", script, "sh", *words]
