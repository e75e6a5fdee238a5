"""Long-running programs of the control plane, known by their process ids."""

import os
import shutil
import signal
import socket
import subprocess
from collections.abc import Sequence
from pathlib import Path

import attrs


def free_port() -> int:
    """Find a loopback TCP port that nobody listens on right now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


@attrs.define
class Program:
    """One program, its arguments and its log; starts again with the same ones."""

    name: str
    command: Sequence[str]
    log: Path
    environment: dict[str, str] = attrs.field(factory=dict)
    _process: subprocess.Popen[bytes] | None = None

    @property
    def pid(self) -> int | None:
        """Process id while it runs."""
        return self._process.pid if self.running and self._process else None

    @property
    def running(self) -> bool:
        """Whether it was started and has not ended."""
        return self._process is not None and self._process.poll() is None

    @property
    def status(self) -> int | None:
        """Exit status once it has ended."""
        return self._process.poll() if self._process else None

    def start(self) -> None:
        """Start it; it dies with the thread that called this, however that ends."""
        if self.running:
            return
        command = [str(word) for word in self.command]
        setpriv = shutil.which("setpriv")  # util-linux; without it, no more than that
        if setpriv:
            command = [setpriv, "--pdeathsig", "KILL", *command]
        with self.log.open("ab") as log:
            self._process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env=os.environ | self.environment,
                start_new_session=True,
            )

    def stop(self, *, seconds: float = 10) -> None:
        """Ask it to end, and make it end after `seconds`."""
        if self._process is None:
            return
        if self.running:
            self._process.send_signal(signal.SIGCONT)
            self._process.terminate()
        try:
            self._process.wait(seconds)
        except subprocess.TimeoutExpired:
            self.kill()

    def kill(self) -> None:
        """End it the hard way, as a crash would."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()

    def pause(self) -> None:
        """Stop its clock: connections stay open and nothing answers."""
        self._signal(signal.SIGSTOP)

    def resume(self) -> None:
        """Let a paused program go on."""
        self._signal(signal.SIGCONT)

    def tail(self, lines: int = 20) -> str:
        """Return the last lines of its log."""
        if not self.log.exists():
            return ""
        text = self.log.read_text(errors="replace")
        return "\n".join(text.splitlines()[-lines:])

    def _signal(self, number: signal.Signals) -> None:
        if self._process is None or not self.running:
            raise RuntimeError(f"{self.name} is not running")
        self._process.send_signal(number)
