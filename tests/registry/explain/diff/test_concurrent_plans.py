"""Plans cost much: those who ask for many leave a place to others."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from unittest.mock import AsyncMock, Mock

from apiserver.meta.resource import Key, Object
from apiserver.request.context import User
from registry.explain.diff.changes import PlannedChanges
from registry.explain.diff.storage import TenantDiffs
from tests.apiserver.endpoints.filter_fakes import FakeAuthorizer
from tests.apiserver.endpoints.request_contexts import make_context


class _Planner:
    def __init__(self) -> None:
        self.begun: list[str] = []
        self.has_begun = asyncio.Event()
        self.go_on = asyncio.Event()

    async def plan(self, key: Key, proposed: Object | None, sees: Callable[[Key], bool]) -> PlannedChanges:
        self.begun.append(key.name)
        self.has_begun.set()
        await self.go_on.wait()
        return PlannedChanges([])


async def test_service_accounts_that_ask_for_many_plans_delay_another_one_by_a_few() -> None:
    """A hundred waited in the order in which they came, and all others behind them."""
    planner = _Planner()
    diffs = TenantDiffs(
        Mock(get=AsyncMock()),
        cluster=Mock(),
        authorizer=FakeAuthorizer(),
        admission=Mock(),
        planner=planner,
        visibility=Mock(for_user=AsyncMock()),
        wait_for_own_writes=AsyncMock(),
    )

    async def ask(user: str, tenant: str) -> None:
        target = f"/apis/apps.cozystack.io/v1alpha1/namespaces/tenant-root/tenants/{tenant}/diff"
        await diffs.get(make_context(target=target, user=User(user)), Key("tenant-root", tenant))

    accounts = (f"system:serviceaccount:tenant-eve:{number}" for number in range(100))
    questions = [asyncio.create_task(ask(account, "eve")) for account in accounts]
    await planner.has_begun.wait()
    questions.append(asyncio.create_task(ask("bob", "bob")))
    for _ in range(100):
        await asyncio.sleep(0)
    assert planner.begun == ["eve", "eve"], "two plans are made at a time"
    planner.go_on.set()
    await asyncio.gather(*questions)
    assert planner.begun.index("bob") <= 3
