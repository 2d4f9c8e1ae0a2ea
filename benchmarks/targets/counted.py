"""The target `standalone`, which counts its function calls and the objects that its garbage collector tracks."""

from __future__ import annotations

import signal
from collections.abc import Mapping
from pathlib import Path

import orjson

from benchmarks.targets.processes import wait_until
from benchmarks.targets.standalone import StandaloneTarget

_SECONDS = 30.0


class CountedTarget(StandaloneTarget):
    title = "standalone, counted"

    def program(self) -> list[str]:
        return ["benchmarks.counted_server", str(self._file)]

    @property
    def _file(self) -> Path:
        return self._directory / "counts.json"

    async def counts(self) -> Mapping[str, int]:
        """`calls` since the last time, and `tracked` objects."""
        self._file.unlink(missing_ok=True)
        self.server.signal(signal.SIGUSR1)

        async def written() -> bool:
            return self._file.is_file()

        await wait_until("the counts", written, seconds=_SECONDS, child=self.server)
        counts: Mapping[str, int] = orjson.loads(self._file.read_bytes())
        return counts
