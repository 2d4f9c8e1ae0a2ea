from __future__ import annotations

import asyncio
from typing import Any

import pytest

from admission.complete_caches import CompleteCaches
from admission.tenant.tree_lock import TreeEffect, TreeGuard, tree_effect
from apiserver.admission import Operation
from apiserver.meta import errors
from apiserver.meta.resource import Object
from tests.tenant_objects import attributes, tenant


class Cache:
    def __init__(self) -> None:
        self.waited = 0

    async def wait_for_own_writes(self) -> None:
        self.waited += 1


@pytest.mark.parametrize(
    ("operation", "new", "old", "expected"),
    [
        pytest.param("CREATE", {}, None, TreeEffect.ADDS, id="a plain create"),
        pytest.param("CREATE", {"host": "a.example"}, None, TreeEffect.CLAIMS, id="a create with a host"),
        pytest.param("CREATE", {"resourceQuotas": {"cpu": 1}}, None, TreeEffect.CLAIMS, id="a create with a quota"),
        pytest.param("UPDATE", {"etcd": True}, {}, TreeEffect.NONE, id="a change of a flag"),
        pytest.param("UPDATE", {"host": "a.example"}, {"host": "a.example"}, TreeEffect.NONE, id="the same host"),
        pytest.param("UPDATE", {"host": ""}, {"host": "a.example"}, TreeEffect.CLAIMS, id="a cleared host"),
        pytest.param(
            "UPDATE",
            {"resourceQuotas": {"cpu": 2}},
            {"resourceQuotas": {"cpu": 1}},
            TreeEffect.CLAIMS,
            id="a changed quota",
        ),
        pytest.param("UPDATE", {}, {"resourceQuotas": {"cpu": 1}}, TreeEffect.CLAIMS, id="a removed quota"),
        pytest.param("DELETE", None, {"host": "a.example"}, TreeEffect.REMOVES, id="a deletion"),
    ],
)
def test_a_write_is_classified_by_its_effect_on_others(
    operation: Operation, new: dict[str, Any] | None, old: dict[str, Any] | None, expected: TreeEffect
) -> None:
    def tenant_or_none(spec: dict[str, Any] | None) -> Object | None:
        return tenant("alpha", spec=spec) if spec is not None else None

    assert tree_effect(attributes(operation, tenant_or_none(new), tenant_or_none(old))) is expected


def test_a_write_without_effect_on_others_takes_no_lock() -> None:
    guard = TreeGuard(cache=Cache(), caches=CompleteCaches([]))
    old = tenant("alpha")

    assert not guard.handles(attributes("UPDATE", tenant("alpha", spec={"etcd": True}), old))
    assert guard.handles(attributes("UPDATE", tenant("alpha", spec={"host": "a.example"}), old))


async def test_writes_with_claims_are_serialized() -> None:
    cache = Cache()
    guard = TreeGuard(cache=cache, caches=CompleteCaches([]))
    running = most_running = 0

    async def write(name: str) -> None:
        nonlocal running, most_running
        async with guard.guard(attributes("CREATE", tenant(name, spec={"resourceQuotas": {"cpu": 1}}))):
            running += 1
            most_running = max(most_running, running)
            await asyncio.sleep(0)
            running -= 1

    await asyncio.gather(*(write(f"t{number}") for number in range(5)))

    assert (most_running, cache.waited) == (1, 5)


async def test_plain_creates_do_not_wait_for_each_other() -> None:
    guard = TreeGuard(cache=Cache(), caches=CompleteCaches([]))
    first, second = attributes("CREATE", tenant("a")), attributes("CREATE", tenant("b"))

    async with asyncio.timeout(1), guard.guard(first), guard.guard(second):
        pass


async def test_a_deletion_waits_for_a_create() -> None:
    guard = TreeGuard(cache=Cache(), caches=CompleteCaches([]))

    async with guard.guard(attributes("CREATE", tenant("a"))):
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0), guard.guard(attributes("DELETE", None, tenant("b"))):
                pass


async def test_a_write_is_not_validated_while_the_tree_is_listed_anew() -> None:
    """The list can begin while the write waits for the lock."""
    complete = asyncio.Event()
    complete.set()
    guard, validated = TreeGuard(cache=Cache(), caches=CompleteCaches([complete])), asyncio.Event()

    async def write() -> None:
        async with guard.guard(attributes("CREATE", tenant("b", spec={"host": "b.example"}))):
            validated.set()

    async with guard.guard(attributes("CREATE", tenant("a", spec={"host": "a.example"}))):
        writing = asyncio.create_task(write())
        await _yield_often()
        complete.clear()
    await _yield_often()
    assert not validated.is_set()

    complete.set()
    async with asyncio.timeout(1):
        await writing
    assert validated.is_set()


async def test_a_tree_that_stays_incomplete_releases_the_lock() -> None:
    complete = asyncio.Event()
    guard = TreeGuard(cache=Cache(), caches=CompleteCaches([complete], seconds=0.01))

    for _ in range(2):
        with pytest.raises(errors.TooManyRequests):
            async with guard.guard(attributes("CREATE", tenant("a", spec={"host": "a.example"}))):
                pass

    complete.set()
    async with asyncio.timeout(1), guard.guard(attributes("CREATE", tenant("a", spec={"host": "a.example"}))):
        pass


async def _yield_often() -> None:
    for _ in range(10):
        await asyncio.sleep(0)
