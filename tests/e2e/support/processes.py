"""Child processes of the end-to-end tests: started with a log, waited for, ended by their id."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TypeVar

REPOSITORY = Path(__file__).resolve().parents[3]
T = TypeVar("T")
_POLL_SECONDS = 0.05
_TAIL_LINES = 60


class Process:
    """A running program; everything it prints goes to `log`."""

    def __init__(
        self, name: str, arguments: Sequence[str | Path], *, log: Path, environment: Mapping[str, str] | None = None
    ) -> None:
        self.name = name
        self._log = log
        self._arguments = [str(argument) for argument in arguments]
        self._environment = {**os.environ, **(environment or {})}
        self._child = self._start()

    def _start(self) -> subprocess.Popen[bytes]:
        with self._log.open("ab") as output:
            return subprocess.Popen(
                self._arguments,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                env=self._environment,
            )

    @property
    def pid(self) -> int:
        return self._child.pid

    @property
    def ended(self) -> bool:
        return self._child.poll() is not None

    def tail(self) -> str:
        """The last lines that it printed, under its name."""
        lines = self._log.read_text(errors="replace").splitlines()[-_TAIL_LINES:]
        state = f"ended with {self._child.returncode}" if self.ended else "runs"
        return "\n".join([f"--- {self.name} ({state})", *lines])

    def log(self) -> str:
        return self._log.read_text(errors="replace")

    def signal(self, number: signal.Signals) -> None:
        self._child.send_signal(number)

    def wait(self, *, seconds: float) -> int:
        """The exit status, once it has ended. Raises subprocess.TimeoutExpired."""
        return self._child.wait(timeout=seconds)

    def restart(self) -> None:
        """Start it anew, in the place of the one that was stopped."""
        self.stop()
        self._child = self._start()

    def kill(self) -> None:
        """SIGKILL: no chance to tidy up."""
        self._child.kill()
        self._child.wait()

    def stop(self, *, seconds: float = 15.0) -> int:
        """SIGTERM, then SIGKILL if it does not end in time; the exit status."""
        if not self.ended:
            self._child.send_signal(signal.SIGTERM)
        try:
            return self._child.wait(timeout=seconds)
        except subprocess.TimeoutExpired:
            self.kill()
            return self._child.returncode


class WaitTimeout(AssertionError):
    """What was waited for did not happen, or a process that should bring it about has ended."""


def wait_until(
    what: str, check: Callable[[], T | None], *, seconds: float = 30.0, processes: Sequence[Process] = ()
) -> T:
    """The first true result of `check`. Raises NotInTime with what the processes printed, at once if one has ended."""
    deadline = time.monotonic() + seconds
    while not (result := check()):
        ended = [process for process in processes if process.ended]
        if ended or time.monotonic() > deadline:
            logs = "\n".join(process.tail() for process in ended or processes)
            raise WaitTimeout(f"waited for: {what}\n{logs}")
        time.sleep(_POLL_SECONDS)
    return result


def free_port() -> int:
    """A port of the loopback interface that nobody listens on now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def run_command(*arguments: str, log: Path) -> Process:
    """Our command as a process of its own, from this checkout."""
    search = os.pathsep.join(filter(None, [str(REPOSITORY), os.environ.get("PYTHONPATH", "")]))
    command = [sys.executable, "-m", "tenant_apiserver", *arguments]
    return Process(f"tenant-apiserver {arguments[0]}", command, log=log, environment={"PYTHONPATH": search})
