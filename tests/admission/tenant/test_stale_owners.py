"""Owners of Tenants that do not exist, and those that the caller may not get."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from admission.tenant.existing_owners import NamespaceOwners, TenantNamespaceOwners, TenantOwners
from admission.tenant.stale_owners import StaleOwners, stale_warning
from apiserver.authorization.authorizer import AccessAttributes, Decision
from apiserver.meta.errors import StatusError
from apiserver.meta.resource import GroupKind, Key, Object
from apiserver.request.context import User
from apiserver.storage.visibility import VisibleObjects
from registry.visibility.by_rbac import UNRESTRICTED
from tests.tenant_objects import ALICE, attributes, tenant

TENANT = GroupKind("apps.cozystack.io", "Tenant")


def owner(name: str = "o", uid: str = "uid-o", **fields: Any) -> Object:
    return {"apiVersion": "apps.cozystack.io/v1alpha1", "kind": "Tenant", "name": name, "uid": uid, **fields}


class ExistingOwners:
    def __init__(self, *uids: str) -> None:
        self._uids = uids
        self.asked: list[tuple[str, str]] = []

    async def has(self, user: User, namespace: str, name: str, uid: str) -> bool:
        self.asked.append((namespace, name))
        return uid in self._uids


async def admit(
    owners: ExistingOwners, new: Sequence[Object], old: Sequence[Object] | None = None, name: str = "a"
) -> tuple[Sequence[Object], list[str]]:
    """The owners after the plugin, and the warnings."""
    before = tenant(name, owners=old) if old is not None else None
    request = attributes("UPDATE" if old is not None else "CREATE", tenant(name, owners=new), before)
    plugin = StaleOwners(owners={TENANT: owners})
    admitted = await plugin.admit(request) if plugin.handles(request) else request.object
    assert admitted is not None
    return admitted["metadata"].get("ownerReferences", []), request.context.warnings


async def test_an_owner_that_does_not_exist_is_dropped_with_a_warning() -> None:
    kept, warnings = await admit(ExistingOwners("uid-o"), [owner(), owner("gone", "uid-gone")])
    assert kept == [owner()]
    assert warnings == [
        (
            "metadata.ownerReferences: dropped Tenant gone, because no such owner exists with this uid, and the "
            "garbage collector would delete the tenant"
        )
    ]


async def test_owners_of_other_kinds_are_not_looked_up() -> None:
    other = owner(apiVersion="v1", kind="ConfigMap", uid="ghost")
    same_name = owner(apiVersion="example.org/v1", uid="ghost")
    owners = ExistingOwners()
    assert await admit(owners, [other, same_name]) == ([other, same_name], [])
    assert owners.asked == []


async def test_owners_that_were_there_before_are_not_looked_up() -> None:
    owners = ExistingOwners()
    assert await admit(owners, [owner()], [owner()]) == ([owner()], [])
    assert owners.asked == []


async def test_incomplete_references_are_left_to_validation() -> None:
    incomplete = [{"apiVersion": "apps.cozystack.io/v1alpha1", "kind": "Tenant", "uid": "x"}, {}]
    assert await admit(ExistingOwners(), incomplete) == (incomplete, [])


async def test_the_root_keeps_its_owners_for_validation_to_reject() -> None:
    assert await admit(ExistingOwners(), [owner()], [], name="root") == ([owner()], [])


async def test_too_many_new_owners_are_rejected_without_looking_them_up() -> None:
    owners = ExistingOwners()
    with pytest.raises(StatusError) as caught:
        await admit(owners, [owner(f"o{number}", f"u{number}") for number in range(65)])
    assert (caught.value.code, owners.asked) == (422, [])
    assert "metadata.ownerReferences: Too many: 65: must have at most 64 items that are new" in caught.value.message


def test_the_warning_names_three_owners_and_shortens_their_names() -> None:
    text = stale_warning([owner(f"{number}" * 1000) for number in range(5)])
    assert f"Tenant {'0' * 63}, Tenant {'1' * 63}, Tenant {'2' * 63} and 2 more" in text


class Gets:
    def __init__(self, *allowed: tuple[str, str]) -> None:
        self._allowed = allowed

    async def authorize(self, attributes: AccessAttributes) -> Decision:
        return Decision(allowed=attributes.verb == "get" and (attributes.resource, attributes.name) in self._allowed)


class Objects:
    """Objects in the cache and in the cluster, by name; it is a TenantReader and a NamespaceSource."""

    def __init__(self, cached: dict[str, Object], live: dict[str, Object] | None = None) -> None:
        self._cached, self._live = cached, live if live is not None else cached
        self.live_reads: list[str] = []

    async def read(self, key: Key, *, live: bool) -> Object | None:
        return await self.get_live(key.name) if live else self.get(key.name)

    def get(self, name: str) -> Object | None:
        return self._cached.get(name)

    async def get_live(self, name: str) -> Object | None:
        self.live_reads.append(name)
        return self._live.get(name)


class NothingVisible:
    async def for_user(self, user: User) -> Any:
        return type("Nothing", (), {"visible": VisibleObjects()})()


class EverythingVisible:
    async def for_user(self, user: User) -> Any:
        return UNRESTRICTED


def stored(uid: str = "u", **labels: str) -> Object:
    return {"metadata": {"name": "o", "uid": uid, "labels": labels}}


TENANT_NAMESPACE = stored(**{"tenant.cozystack.io/o": ""})


@pytest.mark.parametrize(
    ("cached", "live", "exists", "reads"),
    [
        pytest.param({"o": TENANT_NAMESPACE}, None, True, [], id="in the cache"),
        pytest.param({}, {"o": TENANT_NAMESPACE}, True, ["o"], id="not in the cache yet"),
        pytest.param({"o": stored("old")}, {"o": TENANT_NAMESPACE}, True, ["o"], id="the cache has its predecessor"),
        pytest.param({"o": stored("other")}, None, False, ["o"], id="another uid"),
        pytest.param({}, None, False, ["o"], id="missing"),
    ],
)
async def test_an_owner_is_read_from_the_cluster_before_it_counts_as_missing(
    cached: dict[str, Object], live: dict[str, Object] | None, exists: bool, reads: list[str]
) -> None:
    allowed = Gets(("tenants", "o"), ("namespaces", "o"))
    for objects, owners in (
        (tenants := Objects(cached, live), TenantOwners(authorizer=allowed, tenants=tenants)),
        (namespaces := Objects(cached, live), NamespaceOwners(authorizer=allowed, namespaces=namespaces)),
        (both := Objects(cached, live), TenantNamespaceOwners(visibility=EverythingVisible(), namespaces=both)),
    ):
        assert await owners.has(ALICE, "tenant-root", "o", "u") is exists
        assert objects.live_reads == reads


async def test_an_owner_that_the_user_may_not_get_does_not_exist_for_it() -> None:
    objects = Objects({"o": TENANT_NAMESPACE})
    for owners in (
        TenantOwners(authorizer=Gets(("tenants", "x")), tenants=objects),
        NamespaceOwners(authorizer=Gets(("tenants", "o")), namespaces=objects),
        TenantNamespaceOwners(visibility=NothingVisible(), namespaces=objects),
    ):
        assert not await owners.has(ALICE, "tenant-root", "o", "u")
    assert objects.live_reads == []


async def test_a_namespace_that_is_no_tenants_is_no_tenantnamespace() -> None:
    owners = TenantNamespaceOwners(visibility=EverythingVisible(), namespaces=Objects({"o": stored()}))
    assert not await owners.has(ALICE, "tenant-root", "o", "u")
