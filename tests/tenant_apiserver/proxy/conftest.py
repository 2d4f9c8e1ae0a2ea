from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.tenant_apiserver.proxy.proxied_upstream import RunningProxy, proxied_upstream


@pytest.fixture
async def proxy(tmp_path: Path) -> AsyncIterator[RunningProxy]:
    async with proxied_upstream(tmp_path) as running:
        yield running
