"""Targets that count their function calls, tracked objects and allocated bytes."""

from __future__ import annotations

import signal
from collections.abc import Awaitable, Callable
from pathlib import Path

import orjson

from benchmarks.targets.kube import KubeTarget
from benchmarks.targets.processes import wait_until
from benchmarks.targets.standalone import StandaloneTarget
from benchmarks.targets.target import Target

_SECONDS = 30.0


class Counted(Target):
    """A target whose server is benchmarks.counted_server."""

    _directory: Path

    def program(self) -> list[str]:
        return ["benchmarks.counted_server", str(self._file)]

    @property
    def _file(self) -> Path:
        return self._directory / "counts.json"

    async def calls(self, work: Callable[[], Awaitable[object]]) -> int:
        """The function calls of `work`."""
        await self._ask(signal.SIGUSR1)
        await work()
        return await self._ask(signal.SIGUSR1)

    async def tracked(self) -> int:
        """Objects that the garbage collector tracks."""
        return await self._ask(signal.SIGUSR2)

    async def allocated(self, work: Callable[[], Awaitable[object]]) -> int:
        """The bytes that Python had allocated at the same time for `work`, at most."""
        await self._ask(signal.SIGRTMIN)
        await work()
        return await self._ask(signal.SIGRTMIN)

    async def _ask(self, question: signal.Signals) -> int:
        self._file.unlink(missing_ok=True)
        self.server.signal(question)

        async def written() -> bool:
            return self._file.is_file()

        await wait_until("the counts", written, seconds=_SECONDS, child=self.server)
        [number] = orjson.loads(self._file.read_bytes()).values()
        return int(number)


class CountedTarget(Counted, StandaloneTarget):
    title = "standalone, counted"


class CountedKubeTarget(Counted, KubeTarget):
    """`serve` beside a kube-apiserver."""
