from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest

from apiserver.server.event_loop import EventLoop
from tests.tenant_apiserver.proxy.proxied_upstream import RunningProxy, proxied_upstream


def pytest_asyncio_loop_factories() -> dict[str, Callable[[], asyncio.AbstractEventLoop]]:
    """The event loop of the command, which has a TLS of its own towards the cluster."""
    return {"uvloop": EventLoop}


@pytest.fixture
async def proxy(tmp_path: Path) -> AsyncIterator[RunningProxy]:
    async with proxied_upstream(tmp_path) as running:
        yield running
