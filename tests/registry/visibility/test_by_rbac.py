"""Visibility by RBAC: subscriptions, resumption from the history, and caching."""

from __future__ import annotations

import asyncio
import gc
from dataclasses import replace
from typing import Any
from weakref import WeakSet

import pytest

from apiserver.meta.errors import Expired, ServiceUnavailable
from apiserver.meta.resource import Key, Resource
from apiserver.request.context import User
from apiserver.request.options import WatchOptions
from apiserver.storage.visibility import EVERYTHING, VisibilityChange
from apiserver.storage.watch_cache import WatchCache
from registry.rbac import role_index as rbac
from registry.rbac.role_index import subjects_of
from registry.visibility import by_rbac
from registry.visibility.by_rbac import RbacVisibility
from registry.visibility.rbac_history import RbacHistory
from tests.registry.visibility.rbac_states import ALICE, BOB, GET, TENANTS, Clock, binding, shown, visibility_source

THINGS = Resource(group="", version="v1", kind="Thing", plural="things", singular="thing", namespaced=True)


async def test_subscribers_get_only_the_changes_that_affect_their_user(history: RbacHistory) -> None:
    source = await visibility_source(history)
    changes: dict[str, list[VisibilityChange]] = {"alice": [], "bob": []}
    for user in (ALICE, BOB):
        (await source.for_user(user)).subscribe(changes[user.name].append)
    history.put_binding(binding("x"), 11)
    history.put_binding(binding("y"), 12)
    history.put_role(rbac.make_role_key("", "view"), (replace(GET, verbs=("list",)),), 13)
    nothing, something = shown(), shown("tenant-a")
    assert changes["alice"] == [
        VisibilityChange(nothing, nothing, something, 11),
        VisibilityChange(something, something, nothing, 13),
    ]
    assert changes["bob"] == []


async def test_a_cancelled_subscription_gets_no_changes(history: RbacHistory) -> None:
    changes: list[VisibilityChange] = []
    end = (await (await visibility_source(history)).for_user(ALICE)).subscribe(changes.append)
    end()
    history.put_binding(binding("x"), 11)
    assert changes == []


async def test_an_evicted_visibility_is_updated_while_it_is_referenced(
    history: RbacHistory, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(by_rbac, "_MAX_IDENTITIES", 1)
    source = await visibility_source(history)
    first = await source.for_user(ALICE)
    await source.for_user(BOB)
    history.put_binding(binding("x"), 11)
    assert first.visible == shown("tenant-a")
    assert (await source.for_user(ALICE)).visible == shown("tenant-a")


async def test_an_evicted_visibility_leaves_nothing_behind_when_its_last_watch_ends(
    history: RbacHistory, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(by_rbac, "_MAX_IDENTITIES", 1)
    source = await visibility_source(history)
    watched = await source.for_user(ALICE)
    await source.for_user(BOB)
    assert set(subjects_of(ALICE)) <= source._by_subject.keys()
    del watched
    gc.collect()
    assert source._by_subject.keys() == set(subjects_of(BOB))


async def test_a_user_whose_former_visibility_is_collected_meanwhile_still_follows_the_bindings(
    history: RbacHistory, monkeypatch: pytest.MonkeyPatch
) -> None:
    class CollectingSet(WeakSet[Any]):
        def add(self, item: Any) -> None:
            gc.collect()
            super().add(item)

    monkeypatch.setattr(by_rbac, "_MAX_IDENTITIES", 1)
    monkeypatch.setattr(by_rbac, "WeakSet", CollectingSet)
    source = await visibility_source(history)
    former: Any = await source.for_user(ALICE)
    await source.for_user(BOB)
    former.itself = former
    del former
    visibility = await source.for_user(ALICE)
    history.put_binding(binding("x"), 11)
    assert visibility.visible == shown("tenant-a")


async def test_users_with_the_same_identity_share_a_visibility(history: RbacHistory) -> None:
    source = await visibility_source(history)
    same = replace(ALICE, groups=tuple(reversed(ALICE.groups)), uid="7")
    assert await source.for_user(ALICE) is await source.for_user(same)


async def test_system_masters_see_everything(history: RbacHistory) -> None:
    visibility = await (await visibility_source(history)).for_user(User(name="x", groups=("system:masters",)))
    assert visibility.visible == EVERYTHING
    assert visibility.change_since(1, (0.0, 0.0)) == VisibilityChange(EVERYTHING, EVERYTHING, EVERYTHING, 1)


async def test_visibility_is_unavailable_before_rbac_is_synced(
    history: RbacHistory, monkeypatch: pytest.MonkeyPatch
) -> None:
    """API-27."""
    monkeypatch.setattr(by_rbac, "_SYNC_SECONDS", 0.01)
    with pytest.raises(ServiceUnavailable):
        await RbacVisibility(history, [TENANTS], synced=asyncio.Event()).for_user(ALICE)


async def test_system_masters_do_not_wait_for_the_sync(history: RbacHistory) -> None:
    """R-343: they see everything without RBAC."""
    visibility = await RbacVisibility(history, [TENANTS], synced=asyncio.Event()).for_user(
        User(name="x", groups=("system:masters",))
    )
    assert visibility.visible == EVERYTHING


async def test_change_since_covers_every_state_in_between(history: RbacHistory, clock: Clock) -> None:
    visibility = await (await visibility_source(history)).for_user(ALICE)
    history.put_binding(binding("unchanged", "tenant-u"), 11)
    clock.now = 1100.0
    history.put_binding(binding("lost", "tenant-l"), 12)
    clock.now = 1101.0
    history.drop_binding(rbac.make_binding_key("tenant-l", "lost"), 13)
    clock.now = 1102.0
    history.put_binding(binding("gained", "tenant-g"), 14)
    change = visibility.change_since(11, (1100.5, 1100.6))
    assert change is not None
    assert change.lost(THINGS, Key("tenant-l", "x"))
    assert change.gained(THINGS, Key("tenant-g", "x"))
    assert not change.gained(THINGS, Key("tenant-u", "x"))
    assert not change.lost(THINGS, Key("tenant-u", "x"))
    assert change.affected == shown("tenant-l", "tenant-g")
    assert change.rv == 14


@pytest.mark.parametrize(
    ("margin", "repeated"),
    [pytest.param(10.0, True, id="several replicas"), pytest.param(0.0, False, id="one process")],
)
async def test_a_change_shortly_before_the_last_event_is_sent_again_if_another_replica_may_have_sent_that(
    history: RbacHistory, clock: Clock, margin: float, repeated: bool
) -> None:
    synced = asyncio.Event()
    synced.set()
    visibility = await RbacVisibility(history, [TENANTS], synced=synced, margin_seconds=margin).for_user(ALICE)
    history.put_binding(binding("gained", "tenant-g"), 11)
    clock.now += 5
    change = visibility.change_since(12, (clock.now, float("inf")))
    assert change is not None
    assert change.gained(THINGS, Key("tenant-g", "x")) is repeated


async def test_change_since_is_unknown_beyond_the_history(history: RbacHistory, clock: Clock) -> None:
    visibility = await (await visibility_source(history)).for_user(ALICE)
    for number in range(6):
        clock.now += 100
        history.put_binding(binding(f"b{number}"), 20 + number)
    assert visibility.change_since(25, (clock.now - 50, clock.now)) is not None
    assert visibility.change_since(25, (clock.now - 500, clock.now)) is None
    assert visibility.change_since(9, (clock.now, clock.now)) is None


async def test_change_since_without_event_times_starts_with_the_history(history: RbacHistory, clock: Clock) -> None:
    """A watch that resumes from a list does not need a new list if there has been no event yet."""
    visibility = await (await visibility_source(history)).for_user(ALICE)
    always = (float("-inf"), float("inf"))
    change = visibility.change_since(10, always)
    assert change is not None
    assert change.affected == shown()
    clock.now += 1
    history.put_binding(binding("x"), 11)
    change = visibility.change_since(10, always)
    assert change is not None
    assert change.gained(THINGS, Key("tenant-a", "x"))
    assert visibility.change_since(9, always) is None
    for number in range(6):
        history.put_binding(binding(f"b{number}"), 20 + number)
    assert visibility.change_since(10, always) is None


async def test_a_list_resumes_after_changes_that_were_forgotten_if_it_is_read_again(
    history: RbacHistory, clock: Clock
) -> None:
    """A kind that never changes keeps the version of its first list. Before, all its watches ended with 410 for good
    after 10,000 changes of RBAC."""
    visibility = await (await visibility_source(history)).for_user(ALICE)
    things = WatchCache(THINGS, clock=clock)
    things.replace([], 10)
    for number in range(6):
        clock.now += 100
        history.put_binding(binding(f"b{number}"), 20 + number)
    assert things.rv < history.oldest_rv == 21
    with pytest.raises(Expired):
        await things.watch("", WatchOptions(resource_version=10), visibility=visibility)
    things.replace([], 25)
    watch = await things.watch("", WatchOptions(resource_version=25), visibility=visibility)
    watch.end()
