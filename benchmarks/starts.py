"""The start of a server beside a cluster that runs already: until its first LIST, and the memory that it has then."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass

import orjson

from benchmarks import load
from benchmarks.client import Connection, ResponseBody, UnexpectedStatus
from benchmarks.measurements import Measurement
from benchmarks.targets.sides import Cost, Side, measure_cost

_RETRY_SECONDS = 0.01
_TIMEOUT_SECONDS = 60.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Starts:
    """Two measurements of a turn, both until a LIST of all `size` objects is complete: from the start of the process,
    and from the time at which it is ready. The memory is what the process has when it is idle after that."""

    size: int

    async def turn(self, side: Side, number: int) -> Mapping[str, Measurement]:
        """Nothing for a side that cannot be restarted."""
        if side.restart is None:
            return {}
        await side.restart.stop()
        await side.wait_until_idle()
        with measure_cost(side) as start:
            await side.restart.start()
            async with load.connected(side.user, 1) as (connection,):
                with measure_cost(side) as listing:
                    answer = await _first(connection, side.collection)
        found = len(orjson.loads(answer.decompressed())["items"])
        if found < self.size:
            raise RuntimeError(f"{side.title} lists {found} of {self.size} objects")
        await side.wait_until_idle()
        return {
            f"START until a LIST of {self.size} is complete": _measured(start, answer, rss_mib=side.memory_mib()),
            f"LIST {self.size}, JSON, the first after a start": _measured(listing, answer),
        }


async def _first(connection: Connection, path: str) -> ResponseBody:
    async with asyncio.timeout(_TIMEOUT_SECONDS):
        while True:
            try:
                return await connection.fetch("GET", path)
            except UnexpectedStatus as error:
                # the server is ready, but does not serve this resource yet
                if error.status not in (404, 429, 503):
                    raise
            await asyncio.sleep(_RETRY_SECONDS)


def _measured(cost: Cost, answer: ResponseBody, **more: float) -> Measurement:
    return Measurement(
        seconds=[cost.wall],
        wall=cost.wall,
        serving=cost.serving,
        cpu=cost.cpu,
        client=cost.client,
        received=len(answer.content),
        more=more,
    )
