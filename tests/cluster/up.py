"""Start a control plane for a person: `python -m tests.cluster.up [--all]`.

Prints the path of an administrator's kubeconfig, then runs until interrupted.
"""

import argparse
import signal
import sys
import tempfile
from contextlib import nullcontext
from pathlib import Path

from tests.cluster.binaries import UnavailableError
from tests.cluster.controlplane import ControlPlane, StartError

DEFINITIONS = Path(__file__).resolve().parents[2] / "deploy" / "crds"


def main() -> int:
    """Run until SIGINT or SIGTERM; exit 1 when it cannot start."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--all",
        action="store_true",
        help="with controller manager, scheduler and kwok",
    )
    parser.add_argument("--folder", type=Path, help="keep keys, data and logs there")
    options = parser.parse_args()
    # Ignored signals are inherited, for example by a job in the background.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    with nullcontext(options.folder) if options.folder else _temporary() as folder:
        control_plane = ControlPlane(
            Path(folder),
            controller_manager=options.all,
            scheduler=options.all,
            kwok=options.all,
        )
        try:
            control_plane.start()
            control_plane.apply_files(*sorted(DEFINITIONS.glob("*.yaml")))
            print(control_plane.kubeconfig, flush=True)
            signal.pause()
        except (StartError, UnavailableError) as error:
            print(error, file=sys.stderr)
            return 1
        except KeyboardInterrupt:
            return 0
        finally:
            control_plane.stop()
    return 0


def _temporary() -> tempfile.TemporaryDirectory[str]:
    return tempfile.TemporaryDirectory(prefix="nfd-cluster-")


if __name__ == "__main__":
    sys.exit(main())
