"""Every Namespace gets a ServiceAccount `default`."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest

from apiserver.meta.resource import Key
from registry.embedded.controllers.default_serviceaccount import DefaultServiceAccountController
from tests.registry.embedded.embedded_storages import EmbeddedApi

ACCOUNTS = "serviceaccounts"


@pytest.fixture
async def accounts(api: EmbeddedApi) -> AsyncIterator[DefaultServiceAccountController]:
    running = DefaultServiceAccountController(database=api.database, backends=api.backends)
    running.load()
    task = asyncio.create_task(running.run())
    await running.join()
    yield running
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)


async def test_an_existing_namespace_gets_a_default_account(
    api: EmbeddedApi, accounts: DefaultServiceAccountController
) -> None:
    assert api.stored(ACCOUNTS) == [Key("ns", "default")]


async def test_a_new_namespace_gets_a_default_account(
    api: EmbeddedApi, accounts: DefaultServiceAccountController
) -> None:
    await api.create("namespaces", {"metadata": {"name": "new"}})
    await accounts.join()
    assert Key("new", "default") in api.stored(ACCOUNTS)


async def test_a_deleted_default_account_is_created_again(
    api: EmbeddedApi, accounts: DefaultServiceAccountController
) -> None:
    before = await api.get(ACCOUNTS, Key("ns", "default"))
    await api.delete(ACCOUNTS, Key("ns", "default"))
    await accounts.join()
    after = await api.get(ACCOUNTS, Key("ns", "default"))
    assert before is not None
    assert after is not None
    assert before["metadata"]["uid"] != after["metadata"]["uid"]


async def test_a_terminating_namespace_gets_no_default_account(
    api: EmbeddedApi, accounts: DefaultServiceAccountController
) -> None:
    await api.create("namespaces", {"metadata": {"name": "terminating", "finalizers": ["example.org/wait"]}})
    await accounts.join()
    await api.delete("namespaces", Key("", "terminating"))
    await api.delete(ACCOUNTS, Key("terminating", "default"))
    await accounts.join()
    assert Key("terminating", "default") not in api.stored(ACCOUNTS)
