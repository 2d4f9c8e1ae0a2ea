"""The ServiceAccount `default` of every Namespace."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest

from apiserver.meta.resource import Key
from registry.embedded.controllers.default_serviceaccount import DefaultAccounts
from tests.registry.embedded.embedded_storages import Kinds

ACCOUNTS = "serviceaccounts"


@pytest.fixture
async def accounts(kinds: Kinds) -> AsyncIterator[DefaultAccounts]:
    running = DefaultAccounts(database=kinds.database, backends=kinds.backends)
    running.load()
    task = asyncio.create_task(running.run())
    await running.join()
    yield running
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)


async def test_namespaces_of_before_have_one(kinds: Kinds, accounts: DefaultAccounts) -> None:
    assert kinds.stored(ACCOUNTS) == [Key("ns", "default")]


async def test_a_new_namespace_gets_one(kinds: Kinds, accounts: DefaultAccounts) -> None:
    await kinds.create("namespaces", {"metadata": {"name": "new"}})
    await accounts.join()
    assert Key("new", "default") in kinds.stored(ACCOUNTS)


async def test_one_that_is_deleted_comes_back_as_another(kinds: Kinds, accounts: DefaultAccounts) -> None:
    before = await kinds.get(ACCOUNTS, Key("ns", "default"))
    await kinds.delete(ACCOUNTS, Key("ns", "default"))
    await accounts.join()
    after = await kinds.get(ACCOUNTS, Key("ns", "default"))
    assert before is not None
    assert after is not None
    assert before["metadata"]["uid"] != after["metadata"]["uid"]


async def test_a_namespace_on_its_way_out_gets_none(kinds: Kinds, accounts: DefaultAccounts) -> None:
    await kinds.create("namespaces", {"metadata": {"name": "going", "finalizers": ["example.org/held"]}})
    await accounts.join()
    await kinds.delete("namespaces", Key("", "going"))
    await kinds.delete(ACCOUNTS, Key("going", "default"))
    await accounts.join()
    assert Key("going", "default") not in kinds.stored(ACCOUNTS)
