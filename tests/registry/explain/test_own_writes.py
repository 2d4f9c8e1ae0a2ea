"""Answers about a Tenant depend on others, so they wait for this replica's writes to all Tenants."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from unittest.mock import AsyncMock, Mock

import pytest

from apiserver import rest
from apiserver.meta.resource import Key
from apiserver.request.context import User
from apiserver.storage.watch_cache import WatchCache
from registry.explain.diff.storage import TenantDiffs
from registry.explain.storage import TenantExplain
from registry.tenant.types import tenant_resource
from tests.apiserver.endpoints.filter_fakes import FakeAuthorizer
from tests.apiserver.endpoints.request_contexts import make_context

PARENT, CHILD = Key("tenant-root", "parent"), Key("tenant-parent", "child")
Make = Callable[[WatchCache, AsyncMock], rest.Getter]


class Answered(Exception):
    """Raised by what computes the answers."""


def explain(cache: WatchCache, answer: AsyncMock) -> rest.Getter:
    explainer = Mock(authorizer=FakeAuthorizer(), explain=answer)
    return TenantExplain(
        Mock(get=AsyncMock(return_value=Mock())), explainer, wait_for_own_writes=cache.wait_for_own_writes
    )


def diff(cache: WatchCache, answer: AsyncMock) -> rest.Getter:
    return TenantDiffs(
        Mock(get=AsyncMock(return_value=Mock())),
        cluster=Mock(),
        authorizer=FakeAuthorizer(),
        admission=Mock(),
        planner=Mock(plan=answer),
        visibility=Mock(for_user=AsyncMock()),
        wait_for_own_writes=cache.wait_for_own_writes,
    )


@pytest.mark.parametrize("make", [explain, diff])
async def test_an_answer_about_a_parent_waits_for_the_write_to_its_child(make: Make) -> None:
    cache = WatchCache(tenant_resource())
    cache.replace([], 10)
    cache.expect_version(CHILD, 11)
    answer = AsyncMock(side_effect=Answered)
    storage = make(cache, answer)
    asked = asyncio.create_task(storage.get(make_context(user=User("alice")), PARENT))
    for _ in range(100):
        await asyncio.sleep(0)
    assert not answer.called
    cache.advance(11)
    with pytest.raises(Answered):
        await asked
