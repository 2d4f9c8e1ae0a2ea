from __future__ import annotations

from typing import Any

from apiserver.meta.resource import Object
from registry.visibility.by_rbac import RbacVisibility
from registry.visibility.rbac_feed import RbacFeed
from registry.visibility.rbac_history import RbacHistory
from tests.registry.visibility.rbac_states import ALICE, TENANTS, role, shown


def role_binding(name: str, role: str, namespace: str = "tenant-a") -> Object:
    subjects = [{"kind": "User", "name": "alice"}]
    return {
        "metadata": {"name": name, "namespace": namespace},
        "roleRef": {"kind": "ClusterRole", "name": role},
        "subjects": subjects,
    }


async def fed() -> tuple[RbacHistory, RbacFeed, Any]:
    history = RbacHistory()
    feed = RbacFeed(history)
    await feed.roles.replace([], 3)
    await feed.cluster_roles.replace([role("view", "get"), role("none", "list")], 5)
    await feed.bindings.replace([role_binding("x", "view")], 4)
    assert not feed.synced.is_set()
    await feed.cluster_bindings.replace([], 2)
    assert feed.synced.is_set()
    return history, feed, await RbacVisibility(history, [TENANTS], synced=feed.synced).for_user(ALICE)


async def test_lists_and_events_update_the_visibility() -> None:
    history, feed, visibility = await fed()
    assert history.first_rv == 5
    assert visibility.visible == shown("tenant-a")
    feed.bindings.apply("ADDED", role_binding("y", "view", "tenant-b"), 6)
    assert visibility.visible == shown("tenant-a", "tenant-b")
    feed.bindings.apply("DELETED", role_binding("y", "view", "tenant-b"), 7)
    feed.cluster_roles.apply("MODIFIED", role("view", "list"), 8)
    assert visibility.visible == shown()


async def test_rights_are_known_from_the_last_change_before_the_last_list_on() -> None:
    """Earlier rights were never seen, so a watch cannot be told what has changed since."""
    history = RbacHistory()
    feed = RbacFeed(history)
    for kind in (feed.roles, feed.cluster_roles, feed.bindings):
        await kind.replace([], 5)
    feed.cluster_roles.apply("ADDED", role("view", "get"), 7)
    await feed.cluster_bindings.replace([], 2)
    assert history.first_rv == 7


async def test_objects_missing_from_a_new_list_are_removed() -> None:
    history, feed, visibility = await fed()
    await feed.bindings.replace([role_binding("z", "view", "tenant-c")], 9)
    assert visibility.visible == shown("tenant-c")
    await feed.cluster_roles.replace([], 10)
    assert visibility.visible == shown()
    assert history.rv == 10


async def test_a_binding_that_becomes_invalid_grants_nothing() -> None:
    _, feed, visibility = await fed()
    feed.bindings.apply("MODIFIED", {**role_binding("x", "view"), "roleRef": {"kind": "Other", "name": "view"}}, 11)
    assert visibility.visible == shown()
