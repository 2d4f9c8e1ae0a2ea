"""python -m benchmarks.features.sizes [--tenants 100,1000,10000]: function calls of the stand-alone server, its
cluster's work included, for a GET, an event and a create, with more and more Tenants and all controllers."""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Sequence
from functools import partial
from pathlib import Path

from benchmarks.check import READ, SETTINGS, Counting
from benchmarks.command_line import parse_sizes, run
from benchmarks.progress import Progress
from benchmarks.targets.counted import CountedTarget

_CREATES = 40
_GET, _EVENT, _CREATE = "calls: GET", "calls: event to a watcher", "calls: create, until all is written"
_COUNTED = (_GET, _EVENT, _CREATE)


async def measure(sizes: Sequence[int]) -> None:
    with tempfile.TemporaryDirectory() as directory:
        async with CountedTarget.running(Path(directory), settings=SETTINGS) as target:
            assert isinstance(target, CountedTarget)
            await target.grant()
            counting = Counting(target)
            await counting.settle()
            print(f"{'Tenants':>8}", *(f"{name:>40}" for name in _COUNTED), flush=True)
            present = 0
            for size in sizes:
                progress = Progress(f"steps with {size} Tenants", 4)
                await counting.create(range(present, size), "b")
                progress.step()
                await counting.count_reads()
                progress.step()
                await counting.count_events()
                progress.step()
                counting.found[_CREATE] = await _calls_of_creates(target, counting, f"c{size}")
                print(f"{size:>8}", *(f"{counting.found[name]:>40.1f}" for name in _COUNTED), flush=True)
                present = size


async def _calls_of_creates(target: CountedTarget, counting: Counting, prefix: str) -> float:
    return await target.calls(partial(counting.create, range(_CREATES), prefix)) / _CREATES


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.features.sizes", description=__doc__)
    parser.add_argument(
        "--tenants",
        type=parse_sizes,
        default=[100, 1000, 10_000],
        metavar="N,…",
        help="the numbers of Tenants, the smallest first",
    )
    sizes = parser.parse_args().tenants
    if sizes[0] <= READ:
        parser.error(f"--tenants must be at least {READ + 1}")
    run(measure(sizes))


if __name__ == "__main__":
    main()
