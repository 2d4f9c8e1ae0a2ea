"""Starts Python modules in processes that are forked from one with our server's modules.

Hundreds of servers are started by the suite, and the imports are two thirds of the processor time of a start.
"""

from __future__ import annotations

import atexit
import json
import os
import select
import signal
import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path

_REPOSITORY = Path(__file__).resolve().parents[4]
_SECONDS = 60.0


class ForkedProcess:
    """`python -m MODULE ARGUMENTS`, with the interface of subprocess.Popen. Its output is appended to `log`."""

    def __init__(self, module: str, arguments: Sequence[str], *, log: Path, environment: Mapping[str, str]) -> None:
        self._module = module
        self._server = _fork_server()
        # as soon as this returns, the log can be read
        log.touch()
        request = {"module": module, "arguments": arguments, "log": str(log), "directory": str(Path.cwd())}
        pid = self._server.send({**request, "environment": dict(environment)})
        assert pid is not None
        self.pid = pid
        self.returncode: int | None = None
        self._polling = threading.Lock()

    def poll(self) -> int | None:
        with self._polling:
            if self.returncode is None:
                self.returncode = self._server.send({"poll": self.pid})
            return self.returncode

    def wait(self, timeout: float | None = None) -> int:
        """Raises subprocess.TimeoutExpired."""
        while self.poll() is None:
            descriptor = os.pidfd_open(self.pid)
            try:
                has_ended, _, _ = select.select([descriptor], [], [], timeout)
            finally:
                os.close(descriptor)
            if not has_ended and timeout is not None:
                raise subprocess.TimeoutExpired(self._module, timeout)
        assert self.returncode is not None
        return self.returncode

    def send_signal(self, number: int) -> None:
        # until it is polled after its end, its number is not given to another process
        if self.poll() is None:
            os.kill(self.pid, number)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)


class _ForkServer:
    def __init__(self) -> None:
        search = os.pathsep.join(filter(None, [str(_REPOSITORY), os.environ.get("PYTHONPATH", "")]))
        self._child = subprocess.Popen(
            [sys.executable, "-m", "tests.e2e.support.clusters.fork_server"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env={**os.environ, "PYTHONPATH": search, "PYTHONDONTWRITEBYTECODE": ""},
        )
        self._lock = threading.Lock()
        atexit.register(self._stop)

    def send(self, request: Mapping[str, object]) -> int | None:
        assert self._child.stdin is not None
        assert self._child.stdout is not None
        with self._lock:
            self._child.stdin.write(json.dumps(request).encode() + b"\n")
            self._child.stdin.flush()
            answer: int | None = json.loads(self._child.stdout.readline())
        return answer

    def _stop(self) -> None:
        self._child.communicate(timeout=_SECONDS)


@cache
def _fork_server() -> _ForkServer:
    """That of this process."""
    return _ForkServer()
