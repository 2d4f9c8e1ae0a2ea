"""Child processes of the end-to-end tests: started with a log file, awaited and stopped."""

from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TypeVar

from tests.e2e.support.clusters.forked_process import ForkedProcess

REPOSITORY = Path(__file__).resolve().parents[4]
T = TypeVar("T")
_POLL_SECONDS = 0.05, 0.2
_TAIL_LINES = 20
_NOISE = re.compile(r"stats\.go:\d+\] \"Error getting keys\"|QuotaMonitor created object count evaluator")
"""Lines by the hundred that say nothing of a failure: kube-apiserver's beside etcd 3.4, and the quota controller's."""
_RESERVED: list[socket.socket] = []


class Process:
    """A running program that prints into the file `log`."""

    def __init__(
        self, name: str, arguments: Sequence[str | Path], *, log: Path, environment: Mapping[str, str] | None = None
    ) -> None:
        self.name = name
        self._log = log
        self._arguments = [str(argument) for argument in arguments]
        self._environment = {**os.environ, **(environment or {})}
        self._child: subprocess.Popen[bytes] | ForkedProcess = self._start()

    def _start(self) -> subprocess.Popen[bytes] | ForkedProcess:
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
        """The name and the state of the process, and the last lines of its log."""
        lines = [line for line in self.log().splitlines() if not _NOISE.search(line)][-_TAIL_LINES:]
        state = f"ended with status {self._child.returncode}" if self.ended else "running"
        return "\n".join([f"--- {self.name} ({state})", *lines])

    def log(self) -> str:
        return self._log.read_text(errors="replace")

    def signal(self, number: signal.Signals) -> None:
        self._child.send_signal(number)

    def wait(self, *, seconds: float) -> int:
        """Waits for the process to end and returns its exit status. Raises subprocess.TimeoutExpired."""
        return self._child.wait(timeout=seconds)

    def restart(self) -> None:
        """Stops the process and starts it again."""
        self.stop()
        self.start_again()

    def restart_after_kill(self) -> None:
        """As `restart`, but with SIGKILL: a kube-apiserver that is told to stop waits a minute for its watches."""
        self.kill()
        self.start_again()

    def start_again(self) -> None:
        """Starts a process that has ended."""
        self._child = self._start()

    def kill(self) -> None:
        """Sends SIGKILL, which gives the process no chance to clean up."""
        self._child.kill()
        self._child.wait()

    def stop(self, *, seconds: float = 60.0) -> int:
        """Sends SIGTERM, then SIGKILL if the process does not end in time, and returns the exit status."""
        if not self.ended:
            self._child.send_signal(signal.SIGTERM)
        try:
            return self._child.wait(timeout=seconds)
        except subprocess.TimeoutExpired:
            self.kill()
            return self._child.wait()


class ModuleProcess(Process):
    """A Python module of ours that is run as `python -m` does it, in a process that begins with imported modules."""

    def _start(self) -> ForkedProcess:
        module, *arguments = self._arguments
        return ForkedProcess(module, arguments, log=self._log, environment=self._environment)


class WaitTimeout(AssertionError):
    """The condition did not become true in time, or one of the processes has ended."""


def wait_until(
    what: str, check: Callable[[], T | None], *, seconds: float = 60.0, processes: Sequence[Process] = ()
) -> T:
    """Polls `check` and returns its first true result.

    Raises WaitTimeout with the output of the processes, at once if one of them has ended.
    """
    started = time.monotonic()
    while not (result := check()):
        ended = [process for process in processes if process.ended]
        if ended or time.monotonic() > started + seconds:
            logs = "\n".join(process.tail() for process in ended or processes)
            # once more at the end, where the reader of a long log looks
            raise WaitTimeout(f"waited in vain until {what}\n{logs}\nwaited in vain until {what}")
        time.sleep(poll_interval(time.monotonic() - started))
    return result


def poll_interval(waited: float) -> float:
    """The seconds to the next poll: short at first, and a twentieth of the time that has passed, up to a limit. The
    requests of a long wait would take the processor time that it waits for."""
    shortest, longest = _POLL_SECONDS
    return min(max(shortest, waited / 20), longest)


def free_port() -> int:
    """A port of the loopback interface that remains free for the server that is told to listen at it.

    A socket of this process stays bound to it but never listens. So no other process is given the port, not even for
    an outgoing connection, while a server that sets SO_REUSEADDR can listen at it, and again after a restart.
    """
    reserved = socket.socket()
    reserved.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    reserved.bind(("127.0.0.1", 0))
    _RESERVED.append(reserved)
    port: int = reserved.getsockname()[1]
    return port


def run_command(*arguments: str, log: Path) -> Process:
    """Starts our command from this checkout as a process of its own, forked from one that has imported it."""
    return ModuleProcess(_name(arguments), ["tenant_apiserver", *arguments], log=log)


def execute_command(*arguments: str, log: Path) -> Process:
    """Starts our command as a user does, by its own Python."""
    search = os.pathsep.join(filter(None, [str(REPOSITORY), os.environ.get("PYTHONPATH", "")]))
    command = [sys.executable, "-m", "tenant_apiserver", *arguments]
    # without bytecode files, each start would take twice the processor time
    environment = {"PYTHONPATH": search, "PYTHONDONTWRITEBYTECODE": ""}
    return Process(_name(arguments), command, log=log, environment=environment)


def _name(arguments: Sequence[str]) -> str:
    return f"tenant-apiserver {arguments[0]}"
