"""Users, subjects and criteria for tests of visibility by RBAC."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable

from apiserver.meta.resource import Key, Object
from apiserver.request.context import User
from apiserver.storage.visibility import VisibleObjects
from registry.rbac import role_index as rbac
from registry.rbac.role_index import (
    RbacBinding,
    RbacRule,
    make_subject,
    service_account_user,
)
from registry.visibility.by_rbac import RbacVisibility
from registry.visibility.rbac_history import RbacHistory
from registry.visibility.visible_objects import NamedObjects, VisibilityCriterion

TENANTS = VisibilityCriterion("apps.cozystack.io", "tenants", NamedObjects.OBJECTS)
ALL_TENANTS = VisibilityCriterion("apps.cozystack.io", "tenants")
NAMESPACES = VisibilityCriterion("", "namespaces", NamedObjects.NAMESPACES)
BOTH = (ALL_TENANTS, NAMESPACES)
GET = RbacRule(verbs=("get",), groups=("apps.cozystack.io",), resources=("tenants",))
TENANT_NAMESPACES = [f"tenant-{letter}" for letter in "abcdef"]
USERS = [
    User(name="alice", groups=("devs", "system:authenticated")),
    User(name="bob", groups=("ops", "devs")),
    User(name="devs", groups=("ops",)),
    service_account_user("tenant-a", "runner"),
]
SUBJECTS = [
    make_subject("User", "alice"),
    make_subject("User", "bob"),
    make_subject("User", "system:serviceaccount:tenant-a:runner"),
    make_subject("Group", "devs"),
    make_subject("Group", "ops"),
    make_subject("Group", "system:serviceaccounts:tenant-a"),
    make_subject("Group", "alice"),
]


def shown(*namespaces: str, keys: Iterable[Key] = (), names: Iterable[str] = ()) -> VisibleObjects:
    return VisibleObjects(frozenset(namespaces), frozenset(keys), frozenset(names))


class Clock:
    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


def binding(name: str, namespace: str = "tenant-a", *, user: str = "alice", role: str = "view") -> RbacBinding:
    return RbacBinding(
        rbac.make_binding_key(namespace, name), rbac.make_role_key("", role), (make_subject("User", user),)
    )


ALICE, BOB = USERS[0], USERS[1]


async def visibility_source(history: RbacHistory) -> RbacVisibility:
    synced = asyncio.Event()
    synced.set()
    return RbacVisibility(history, [TENANTS], synced=synced)


def role(name: str, *verbs: str, namespace: str = "") -> Object:
    metadata = {"name": name, "namespace": namespace} if namespace else {"name": name}
    rule = {"apiGroups": ["apps.cozystack.io"], "resources": ["tenants"], "verbs": list(verbs)}
    return {"metadata": metadata, "rules": [rule]}
