"""The targets, by the names that --host takes."""

from __future__ import annotations

import tempfile
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path

from benchmarks.kube_target import KubeTarget
from benchmarks.standalone_target import StandaloneTarget
from benchmarks.target import Target

TARGETS: Mapping[str, type[StandaloneTarget | KubeTarget]] = {"embedded": StandaloneTarget, "kube": KubeTarget}


@asynccontextmanager
async def running(name: str) -> AsyncIterator[Target]:
    """One of TARGETS; what it stores goes with it."""
    with tempfile.TemporaryDirectory() as scratch:
        async with TARGETS[name].running(Path(scratch)) as target:
            yield target
