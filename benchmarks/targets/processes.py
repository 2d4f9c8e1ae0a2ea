"""The measured processes: started with a log file, observed through /proc, stopped by their id."""

from __future__ import annotations

import asyncio
import signal
import socket
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path

_STOP_SECONDS = 30.0
_POLL_SECONDS = 0.02
_TAIL_BYTES = 4000


class ObservedProcess:
    """A process of this machine, started by us or not, observed through /proc."""

    def __init__(self, pid: int) -> None:
        self.pid = pid

    def memory_mib(self) -> tuple[float, float]:
        """Returns the current and the peak resident memory."""
        fields = dict(line.split(":", 1) for line in self._proc("status").read_text().splitlines() if ":" in line)
        return int(fields["VmRSS"].split()[0]) / 1024, int(fields["VmHWM"].split()[0]) / 1024

    def cpu_seconds(self) -> float:
        """Returns the processor time of the current threads since they started, 0 after the process has ended.
        /proc/PID/stat is too coarse: it counts in ticks of 10 ms."""
        return sum(int(each.read_text().split()[0]) for each in self._proc("task").glob("*/schedstat")) / 1e9

    def starved_seconds(self) -> float:
        """Returns how long the main thread, which runs the event loop, was runnable but had no processor."""
        return int(self._proc("schedstat").read_text().split()[1]) / 1e9

    def _proc(self, name: str) -> Path:
        return Path("/proc", str(self.pid), name)


class ChildProcess(ObservedProcess):
    """A running program; its output goes to `log`."""

    def __init__(self, process: asyncio.subprocess.Process, log: Path) -> None:
        super().__init__(process.pid)
        self._process = process
        self._log = log

    @classmethod
    async def start(
        cls, command: Sequence[str | Path], log: Path, environment: Mapping[str, str] | None = None
    ) -> ChildProcess:
        """`environment` replaces that of this process."""
        with log.open("ab") as output:
            process = await asyncio.create_subprocess_exec(
                *map(str, command), stdin=asyncio.subprocess.DEVNULL, stdout=output, stderr=output, env=environment
            )
        return cls(process, log)

    async def stop(self) -> None:
        """Sends SIGTERM, and SIGKILL if the process does not exit. Raises RuntimeError if the exit status is
        unexpected."""
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
        """Sends SIGKILL, for a process that need not shut down cleanly."""
        if self._process.returncode is None:
            self._process.kill()
        await self._process.wait()

    def signal(self, number: signal.Signals) -> None:
        self._process.send_signal(number)

    def tail(self) -> str:
        return self._log.read_bytes()[-_TAIL_BYTES:].decode(errors="replace")

    def check(self) -> None:
        """Raises RuntimeError, with the end of the log, if the process has exited."""
        if self._process.returncode is not None:
            raise RuntimeError(f"ended with {self._process.returncode}\n{self.tail()}")


async def wait_until(
    what: str, check: Callable[[], Awaitable[bool]], *, seconds: float, child: ChildProcess | None = None
) -> None:
    """Waits until `check` returns true; a refused connection counts as false. Raises TimeoutError."""
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
