"""The targets, by the names that --host takes."""

from __future__ import annotations

import tempfile
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path

from benchmarks.embedded import Embedded
from benchmarks.kube import Kube
from benchmarks.target import Target

TARGETS: Mapping[str, type[Embedded | Kube]] = {"embedded": Embedded, "kube": Kube}


@asynccontextmanager
async def running(name: str) -> AsyncIterator[Target]:
    """One of TARGETS; what it stores goes with it."""
    with tempfile.TemporaryDirectory() as scratch:
        async with TARGETS[name].running(Path(scratch)) as target:
            yield target
