from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from tests.tenant_apiserver.ui.running_page import RunningPage, running_page


@pytest.fixture
async def page() -> AsyncIterator[RunningPage]:
    """A page to which one browser has logged in."""
    async with running_page() as running:
        await running.log_in()
        yield running


@pytest.fixture
async def stranger() -> AsyncIterator[RunningPage]:
    """A page to which nobody has logged in."""
    async with running_page() as running:
        yield running
