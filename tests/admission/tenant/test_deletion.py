from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from admission.tenant.deletion import TenantDeletion, deletion_error
from apiserver.meta.errors import StatusError
from apiserver.meta.resource import Object
from apiserver.request.context import User
from registry.tenant.summary import TenantSummary
from registry.tenant.tree import TenantTree
from tests.tenant_objects import ADMIN, FakeNamespaces, attributes, root_summary, tenant, tenant_summary, tree_of

ALPHA = tenant("alpha")
FAMILY = (tenant_summary("alpha"), tenant_summary("b", "tenant-alpha"), tenant_summary("c", "tenant-alpha"))
CASCADE = {"tenant.cozystack.io/allow-cascading-deletion": "true"}
ACTIVE = {"tenant-root": "Active"}


async def delete(
    tree: TenantTree,
    old: Object = ALPHA,
    *,
    user: User = ADMIN,
    options: Mapping[str, Any] | None = None,
    namespaces: FakeNamespaces | None = None,
) -> None:
    plugin = TenantDeletion(tree=tree, namespaces=namespaces or FakeNamespaces(ACTIVE))
    await plugin.validate(attributes("DELETE", None, old, user=user, options=options))


async def test_a_tenant_without_children_is_deleted_without_a_request_to_the_cluster() -> None:
    namespaces = FakeNamespaces(ACTIVE)

    await delete(tree_of(tenant_summary("alpha")), namespaces=namespaces)

    assert namespaces.live_calls == []


async def test_deleting_a_tenant_with_children_fails_with_409_and_their_names() -> None:
    with pytest.raises(StatusError) as caught:
        await delete(tree_of(*FAMILY))

    assert (caught.value.code, caught.value.reason) == (409, "Conflict")
    assert caught.value.message == (
        'Operation cannot be fulfilled on tenants.apps.cozystack.io "alpha": the tenant has child tenants: b, c; '
        "delete them first, or have them deleted with it: kubectl delete --cascade=foreground, or the annotation "
        'tenant.cozystack.io/allow-cascading-deletion: "true" on the tenant'
    )


def test_without_a_controller_that_deletes_children_the_refusal_does_not_tell_how_to_have_them_deleted() -> None:
    error = deletion_error(FAMILY[0], visible=FAMILY[1:], all_visible=True, finalizes=False)
    assert error.message.endswith("the tenant has child tenants: b, c; delete them first")


def test_at_most_ten_children_are_named() -> None:
    children = [tenant_summary(f"t{number:02}", "tenant-alpha") for number in range(12)]
    error = deletion_error(tenant_summary("alpha"), visible=children, all_visible=True)

    assert "t00, t01, t02, t03, t04, t05, t06, t07, t08, t09 and 2 more;" in error.message


@pytest.mark.parametrize(
    ("visible", "described"),
    [
        pytest.param(FAMILY[1:], "the tenant has child tenants: b, c; ", id="all"),
        pytest.param(FAMILY[1:2], "the tenant has child tenants: b, and others that you may not see; ", id="some"),
        pytest.param((), "the tenant has sub-tenants that you may not see; ", id="none"),
    ],
)
def test_only_children_that_the_caller_may_get_are_named_or_counted(
    visible: Sequence[TenantSummary], described: str
) -> None:
    """ATTACK-15."""
    error = deletion_error(FAMILY[0], visible=visible, all_visible=len(visible) == 2)
    assert described in error.message


async def test_a_user_without_rights_learns_only_that_there_are_children() -> None:
    with pytest.raises(StatusError, match="has sub-tenants that you may not see; delete them first") as caught:
        await delete(tree_of(*FAMILY), user=User(name="alice", groups=("system:authenticated",)))
    assert "b, c" not in caught.value.message


@pytest.mark.parametrize(
    ("annotations", "options", "allowed"),
    [
        pytest.param({}, {"propagationPolicy": "Foreground"}, True, id="foreground"),
        pytest.param({}, {"propagationPolicy": "Background"}, False, id="background"),
        pytest.param({}, {"propagationPolicy": "Orphan"}, False, id="orphan"),
        pytest.param({}, {"orphanDependents": False}, False, id="background, as orphanDependents"),
        pytest.param(CASCADE, {}, True, id="annotated"),
        pytest.param({"tenant.cozystack.io/allow-cascading-deletion": "yes"}, {}, False, id="annotated otherwise"),
    ],
)
async def test_a_cascading_deletion_must_be_requested_explicitly(
    annotations: dict[str, str], options: dict[str, Any], allowed: bool
) -> None:
    old = tenant("alpha", annotations=annotations)
    if allowed:
        await delete(tree_of(*FAMILY), old, options=options)
        return
    with pytest.raises(StatusError, match="child tenants"):
        await delete(tree_of(*FAMILY), old, options=options)


@pytest.mark.parametrize("options", [{}, {"propagationPolicy": "Foreground"}])
async def test_the_root_tenant_cannot_be_deleted_even_by_an_admin(options: dict[str, str]) -> None:
    with pytest.raises(StatusError) as caught:
        await delete(tree_of(root_summary()), tenant("root"), options=options)

    assert caught.value.code == 403
    assert caught.value.message == 'tenants.apps.cozystack.io "root" is forbidden: the root tenant cannot be deleted'


@pytest.mark.parametrize("old", [pytest.param(tenant("root"), id="root"), pytest.param(ALPHA, id="children")])
@pytest.mark.parametrize(
    "namespaces",
    [
        pytest.param(FakeNamespaces({"tenant-root": "Terminating"}), id="terminating"),
        pytest.param(FakeNamespaces(ACTIVE, {"tenant-root": "Terminating"}), id="terminating, not cached yet"),
        pytest.param(FakeNamespaces(ACTIVE, {}), id="deleted, not cached yet"),
    ],
)
async def test_every_tenant_may_be_deleted_with_its_namespace(old: Object, namespaces: FakeNamespaces) -> None:
    await delete(tree_of(root_summary(), *FAMILY), old, namespaces=namespaces)


@pytest.mark.parametrize("old", [pytest.param(tenant("root"), id="root"), pytest.param(ALPHA, id="children")])
async def test_the_namespace_controller_may_delete_any_tenant(old: Object) -> None:
    user = User(name="system:serviceaccount:kube-system:namespace-controller")

    await delete(tree_of(root_summary(), *FAMILY), old, user=user)


@pytest.mark.parametrize(
    ("old", "code"),
    [pytest.param(tenant("root"), 403, id="root"), pytest.param(ALPHA, 409, id="children")],
)
async def test_the_garbage_collector_needs_a_cascading_deletion_like_everybody_else(old: Object, code: int) -> None:
    user = User(name="system:serviceaccount:kube-system:generic-garbage-collector")

    with pytest.raises(StatusError) as caught:
        await delete(tree_of(root_summary(), *FAMILY), old, user=user, options={"propagationPolicy": "Background"})

    assert caught.value.code == code


@pytest.mark.parametrize(
    ("options", "allowed"),
    [
        pytest.param({}, True, id="no policy"),
        pytest.param({"propagationPolicy": "Background"}, False, id="background"),
        pytest.param({"orphanDependents": False}, False, id="background, as orphanDependents"),
    ],
)
async def test_the_finalizer_of_a_foreground_deletion_counts_unless_the_options_remove_it(
    options: dict[str, Any], allowed: bool
) -> None:
    old = tenant("alpha", finalizers=["foregroundDeletion"])
    if allowed:
        await delete(tree_of(*FAMILY), old, options=options)
        return
    with pytest.raises(StatusError, match="child tenants"):
        await delete(tree_of(*FAMILY), old, options=options)


async def test_a_service_account_of_another_namespace_with_the_same_name_is_rejected() -> None:
    user = User(name="system:serviceaccount:default:namespace-controller")

    with pytest.raises(StatusError, match="sub-tenants that you may not see"):
        await delete(tree_of(*FAMILY), user=user)


@pytest.mark.parametrize(
    ("parent", "above", "allowed"),
    [
        pytest.param({"annotations": CASCADE}, "Active", True, id="with its children, by the annotation"),
        pytest.param({"finalizers": ["foregroundDeletion"]}, "Active", True, id="with its children, in the foreground"),
        pytest.param({}, "Terminating", True, id="with the namespace that it is in"),
        pytest.param({}, "Active", False, id="without its children"),
    ],
)
async def test_a_child_with_children_may_be_deleted_with_a_parent_that_is_deleted(
    parent: dict[str, Any], above: str, allowed: bool
) -> None:
    tree = tree_of(
        tenant_summary("alpha", terminating=True, **parent),
        tenant_summary("b", "tenant-alpha"),
        tenant_summary("c", "tenant-alpha-b"),
    )
    namespaces = FakeNamespaces({"tenant-alpha": "Active", "tenant-root": above})
    if allowed:
        await delete(tree, tenant("b", "tenant-alpha"), namespaces=namespaces)
        return
    with pytest.raises(StatusError, match="child tenants"):
        await delete(tree, tenant("b", "tenant-alpha"), namespaces=namespaces)


async def test_a_second_delete_is_told_what_the_first_waits_for() -> None:
    with pytest.raises(StatusError, match="child tenants"):
        await delete(tree_of(*FAMILY), tenant("alpha", terminating=True))


async def test_an_unreachable_cluster_fails_a_deletion_with_503_instead_of_409() -> None:
    class UnreachableNamespaces(FakeNamespaces):
        async def get_live(self, name: str) -> Object | None:
            raise StatusError(503, "ServiceUnavailable", "unreachable")

    with pytest.raises(StatusError, match="unreachable"):
        await delete(tree_of(*FAMILY), namespaces=UnreachableNamespaces(ACTIVE))
