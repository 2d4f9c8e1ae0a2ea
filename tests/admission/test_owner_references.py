"""The rules of OwnerReferencesPermissionEnforcement (plugin/pkg/admission/gc of Kubernetes)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from admission.owner_references import OwnerReferencesPermissionEnforcement, changes_owners, newly_blocking
from admission.plugin_rule import TENANTS
from apiserver.authorization.authorizer import AccessAttributes, Decision
from apiserver.meta.errors import StatusError
from apiserver.meta.resource import Object
from registry.cluster.interface import CONFIGMAPS, NAMESPACES, ClusterResource
from tests.tenant_objects import attributes, tenant

DELETE = "delete tenants tenant-root/a"
FINALIZE = "update configmaps/finalizers tenant-root/o"


def owner(uid: str = "u", **fields: Any) -> Object:
    return {"apiVersion": "v1", "kind": "ConfigMap", "name": "o", "uid": uid, **fields}


def blocking(uid: str = "u", **fields: Any) -> Object:
    return owner(uid, blockOwnerDeletion=True, **fields)


class Rules:
    """Allows the listed accesses, and records which were asked for."""

    def __init__(self, *allowed: str, reason: str = "RBAC says no") -> None:
        self._allowed = allowed
        self._reason = reason
        self.asked: list[str] = []

    async def authorize(self, attributes: AccessAttributes) -> Decision:
        resource = f"{attributes.resource}{attributes.subresource and '/'}{attributes.subresource}"
        access = f"{attributes.verb} {resource} {attributes.namespace}/{attributes.name}"
        self.asked.append(access)
        return Decision(allowed=access in self._allowed, reason=self._reason)


class Kinds:
    async def resources(self, api_version: str, kind: str) -> Sequence[ClusterResource]:
        return [each for each in (CONFIGMAPS, NAMESPACES) if (each.api_version, each.kind) == (api_version, kind)]


async def write(rules: Rules, new: Sequence[Object], old: Sequence[Object] | None) -> None:
    plugin = OwnerReferencesPermissionEnforcement(resource=TENANTS, authorizer=rules, kinds=Kinds())
    before = tenant("a", owners=old) if old is not None else None
    request = attributes("CREATE" if old is None else "UPDATE", tenant("a", owners=new), before)
    if plugin.handles(request):
        await plugin.validate(request)


@pytest.mark.parametrize(
    ("new", "old", "changed"),
    [
        pytest.param([], None, False, id="created without owners"),
        pytest.param([owner()], None, True, id="created with one"),
        pytest.param([owner()], [owner()], False, id="unchanged"),
        pytest.param([owner()], [], True, id="added"),
        pytest.param([], [owner()], True, id="removed"),
        pytest.param([owner("a"), owner("b")], [owner("b"), owner("a")], True, id="in another order"),
        pytest.param([owner(controller=True)], [owner()], True, id="a changed field"),
    ],
)
def test_every_difference_is_a_change(new: Sequence[Object], old: Sequence[Object] | None, changed: bool) -> None:
    before = tenant("a", owners=old) if old is not None else None
    assert changes_owners(tenant("a", owners=new), before) is changed


@pytest.mark.parametrize(
    ("new", "old", "uids"),
    [
        pytest.param([blocking()], None, ["u"], id="created"),
        pytest.param([blocking()], [], ["u"], id="added"),
        pytest.param([blocking()], [owner()], ["u"], id="changed to true"),
        pytest.param([blocking()], [owner(blockOwnerDeletion=False)], ["u"], id="changed from false"),
        pytest.param([blocking(name="other")], [blocking()], [], id="it blocked before"),
        pytest.param([owner()], [blocking()], [], id="it blocks no longer"),
        pytest.param([owner(blockOwnerDeletion=False)], [], [], id="false"),
    ],
)
def test_only_references_that_did_not_block_before_count(
    new: Sequence[Object], old: Sequence[Object] | None, uids: list[str]
) -> None:
    before = tenant("a", owners=old) if old is not None else None
    assert [each["uid"] for each in newly_blocking(tenant("a", owners=new), before)] == uids


@pytest.mark.parametrize(
    ("allowed", "new", "old", "message"),
    [
        pytest.param([], [owner()], None, "", id="a new object needs no right"),
        pytest.param([], [owner()], [owner()], "", id="unchanged owners need no right"),
        pytest.param([DELETE], [owner()], [], "", id="a change with the right"),
        pytest.param(
            [],
            [owner()],
            [],
            "cannot set an ownerRef on a resource you can't delete: RBAC says no",
            id="a change without the right",
        ),
        pytest.param(
            [], [], [owner()], "cannot set an ownerRef on a resource you can't delete: RBAC says no", id="a removal"
        ),
        pytest.param([FINALIZE], [blocking()], None, "", id="a blocking owner with the right"),
        pytest.param(["update */finalizers /*"], [blocking()], None, "", id="the right to all finalizers"),
        pytest.param(
            [],
            [blocking()],
            None,
            "cannot set blockOwnerDeletion if an ownerReference refers to a resource you can't set finalizers on: "
            "RBAC says no",
            id="a blocking owner without the right",
        ),
        pytest.param(
            ["update namespaces/finalizers /o"], [blocking(kind="Namespace")], None, "", id="a cluster-scoped owner"
        ),
        pytest.param(
            [],
            [blocking(kind="Widget")],
            None,
            "cannot set blockOwnerDeletion in this case because cannot find RESTMapping for APIVersion v1 Kind Widget: "
            'no matches for kind "Widget" in version "v1"',
            id="a blocking owner of an unknown kind",
        ),
        pytest.param([DELETE], [blocking()], [blocking(), owner("v")], "", id="an owner that blocked before"),
    ],
)
async def test_the_rights_that_a_write_needs(
    allowed: Sequence[str], new: Sequence[Object], old: Sequence[Object] | None, message: str
) -> None:
    if not message:
        await write(Rules(*allowed), new, old)
        return
    with pytest.raises(StatusError) as caught:
        await write(Rules(*allowed), new, old)
    assert caught.value.code == 403
    assert caught.value.message == f'tenants.apps.cozystack.io "a" is forbidden: {message}'


@pytest.mark.parametrize(
    ("new", "old", "message"),
    [
        pytest.param([owner()], [], "cannot set an ownerRef on a resource you can't delete", id="deletion"),
        pytest.param(
            [blocking()],
            None,
            "cannot set blockOwnerDeletion if an ownerReference refers to a resource you can't set finalizers on",
            id="finalizers",
        ),
    ],
)
async def test_a_denial_without_a_reason_still_has_one(
    new: Sequence[Object], old: Sequence[Object] | None, message: str
) -> None:
    with pytest.raises(StatusError) as caught:
        await write(Rules(reason=""), new, old)
    assert caught.value.message == f'tenants.apps.cozystack.io "a" is forbidden: {message}: no rule allows it'


async def test_a_write_that_leaves_the_owners_alone_asks_nothing() -> None:
    rules = Rules()
    await write(rules, [blocking()], [blocking()])
    assert rules.asked == []
