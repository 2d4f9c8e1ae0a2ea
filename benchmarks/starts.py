"""The start of a server beside a cluster that runs already: until its first LIST, and the memory that it has then."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass

import orjson

from benchmarks import load
from benchmarks.measurements import Measurement
from benchmarks.reads import first_list
from benchmarks.targets.sides import Side, wait_until_idle


@dataclass(frozen=True, slots=True, kw_only=True)
class Starts:
    """The time runs from the start of the process until a LIST of all `size` objects is complete; the processor time is
    that of the new process until then, the memory what it has when it has become idle."""

    size: int

    async def turn(self, side: Side, number: int) -> Mapping[str, Measurement]:
        """Nothing for a side that cannot be restarted."""
        if side.stop is None or side.start is None:
            return {}
        await side.stop()
        await wait_until_idle([side.without_serving()])
        dependencies = {name: process.cpu_seconds() for name, process in side.dependencies().items()}
        start, client = time.perf_counter(), time.process_time()
        await side.start()
        async with load.connected(side.user, 1) as (connection,):
            answer = await first_list(connection, side.collection)
        wall, client = time.perf_counter() - start, time.process_time() - client
        # the counters of a new process begin with its start
        serving = {name: process.cpu_seconds() for name, process in side.serving().items()}
        waited = {name: process.cpu_seconds() - dependencies[name] for name, process in side.dependencies().items()}
        found = len(orjson.loads(answer.decompressed())["items"])
        if found < self.size:
            raise RuntimeError(f"{side.title} lists {found} of {self.size} objects")
        await side.wait_until_idle()
        measured = Measurement(
            seconds=[wall],
            wall=wall,
            serving=sum(serving.values()),
            cpu={**serving, **waited},
            client=client,
            received=len(answer.content),
            more={"rss_mib": side.memory_mib()},
        )
        return {f"START until a LIST of {self.size} is complete": measured}
