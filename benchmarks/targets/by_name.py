"""The targets, by their names in --cluster."""

from __future__ import annotations

import tempfile
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path

from benchmarks.targets.kube import KubeTarget
from benchmarks.targets.standalone import StandaloneTarget
from benchmarks.targets.target import Target

TARGETS: Mapping[str, type[StandaloneTarget | KubeTarget]] = {"embedded": StandaloneTarget, "kube": KubeTarget}


@asynccontextmanager
async def running(name: str, *, settings: str = "") -> AsyncIterator[Target]:
    """Runs one of TARGETS, with the text of a settings file; its data is deleted with the context."""
    with tempfile.TemporaryDirectory() as scratch:
        async with TARGETS[name].running(Path(scratch), settings=settings) as target:
            yield target
