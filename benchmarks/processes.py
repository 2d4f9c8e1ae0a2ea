"""The processes that are measured: started with a log, observed through /proc, ended by their id."""

from __future__ import annotations

import asyncio
import signal
import socket
import time
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path

_STOP_SECONDS = 30.0
_POLL_SECONDS = 0.02
_TAIL_BYTES = 4000


class ObservedProcess:
    """A process of this machine, ours or not, as /proc tells of it."""

    def __init__(self, pid: int) -> None:
        self._pid = pid

    def memory_mib(self) -> tuple[float, float]:
        """Resident memory now, and the most there ever was."""
        fields = dict(line.split(":", 1) for line in self._proc("status").read_text().splitlines() if ":" in line)
        return int(fields["VmRSS"].split()[0]) / 1024, int(fields["VmHWM"].split()[0]) / 1024

    def cpu_seconds(self) -> float:
        """Processor time of its present threads since their start; /proc/PID/stat counts in ticks of 10 ms."""
        return sum(int(each.read_text().split()[0]) for each in self._proc("task").glob("*/schedstat")) / 1e9

    def starved_seconds(self) -> float:
        """How long its main thread, which runs the event loop, could have run and had no processor to run on."""
        return int(self._proc("schedstat").read_text().split()[1]) / 1e9

    def _proc(self, name: str) -> Path:
        return Path("/proc", str(self._pid), name)


class ChildProcess(ObservedProcess):
    """A running program; everything that it prints goes to `log`."""

    def __init__(self, process: asyncio.subprocess.Process, log: Path) -> None:
        super().__init__(process.pid)
        self._process = process
        self._log = log

    @classmethod
    async def start(cls, command: Sequence[str | Path], log: Path) -> ChildProcess:
        with log.open("ab") as output:
            process = await asyncio.create_subprocess_exec(
                *map(str, command), stdin=asyncio.subprocess.DEVNULL, stdout=output, stderr=output
            )
        return cls(process, log)

    async def stop(self) -> None:
        """SIGTERM, and SIGKILL for what does not end. Raises RuntimeError for a bad end."""
        if self._process.returncode is None:
            self._process.terminate()
        try:
            async with asyncio.timeout(_STOP_SECONDS):
                await self._process.wait()
        except TimeoutError:
            await self.kill()
        if self._process.returncode not in (0, -signal.SIGTERM):
            raise RuntimeError(f"exit status {self._process.returncode}\n{self.tail()}")

    async def kill(self) -> None:
        """SIGKILL, of what need not end well."""
        if self._process.returncode is None:
            self._process.kill()
        await self._process.wait()

    def tail(self) -> str:
        return self._log.read_bytes()[-_TAIL_BYTES:].decode(errors="replace")

    def check(self) -> None:
        """Raises RuntimeError, with the end of the log, if it has ended."""
        if self._process.returncode is not None:
            raise RuntimeError(f"ended with {self._process.returncode}\n{self.tail()}")


async def wait_until(
    what: str, check: Callable[[], Awaitable[bool]], *, seconds: float, child: ChildProcess | None = None
) -> None:
    """Wait for `check`; a refused connection counts as not yet. Raises TimeoutError."""
    deadline = time.monotonic() + seconds
    while True:
        try:
            if await check():
                return
        except OSError:
            pass
        if child is not None:
            child.check()
        if time.monotonic() > deadline:
            raise TimeoutError(f"waited for: {what}\n{child.tail() if child else ''}")
        await asyncio.sleep(_POLL_SECONDS)


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port
