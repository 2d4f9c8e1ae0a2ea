"""Roles and bindings: their content, and that nobody gives away more than they hold."""

from __future__ import annotations

from typing import Any

import pytest

from apiserver.meta import errors
from apiserver.meta.resource import Key, Object
from apiserver.request.context import User
from registry.embedded.auth.rbac_authorizer import RoleFeed
from tests.registry.embedded.embedded_storages import Kinds

RBAC = "rbac.authorization.k8s.io"
BOB = User(name="bob", groups=("devs",))
READ_PODS = {"verbs": ["get"], "apiGroups": [""], "resources": ["pods"]}
WRITE_PODS = {"verbs": ["update"], "apiGroups": [""], "resources": ["pods"]}


async def create(kinds: Kinds, path: str, user: User | None = None, /, **obj: Any) -> Object:
    more: dict[str, Any] = {"user": user} if user is not None else {}
    name = obj.pop("name")
    metadata = {"name": name} if path.startswith("cluster") else {"name": name, "namespace": "ns"}
    return await kinds.create(path, {"metadata": metadata, **obj}, group=RBAC, **more)


@pytest.fixture
async def bob(kinds: Kinds) -> User:
    """May read pods and manage RBAC in `ns`, and no more."""
    RoleFeed(database=kinds.database, index=kinds.index).load(kinds.backends)
    manage = {"verbs": ["*"], "apiGroups": [RBAC], "resources": ["roles", "rolebindings"], "resourceNames": ["x"]}
    await create(kinds, "roles", name="bob", rules=[READ_PODS, manage])
    await create(kinds, "clusterroles", name="writer", rules=[WRITE_PODS])
    await create(kinds, "clusterroles", name="reader", rules=[READ_PODS])
    subject = {"kind": "User", "name": "bob"}
    await create(kinds, "rolebindings", name="bob", roleRef={"kind": "Role", "name": "bob"}, subjects=[subject])
    return BOB


def binding_of(role: str) -> dict[str, Any]:
    return {"roleRef": {"kind": "ClusterRole", "name": role}, "subjects": [{"kind": "User", "name": "eve"}]}


async def test_a_role_with_what_its_maker_holds_is_made(kinds: Kinds, bob: User) -> None:
    await create(kinds, "roles", bob, name="y", rules=[READ_PODS])


async def test_a_role_with_more_is_refused_in_kubernetes_words(kinds: Kinds, bob: User) -> None:
    with pytest.raises(errors.Forbidden) as refused:
        await create(kinds, "roles", bob, name="y", rules=[READ_PODS, WRITE_PODS])
    assert refused.value.message == (
        'roles.rbac.authorization.k8s.io "y" is forbidden: user "bob" (groups=["devs"]) is attempting to grant RBAC '
        'permissions not currently held:\n{APIGroups:[""], Resources:["pods"], Verbs:["update"]}'
    )


async def test_what_is_held_in_a_namespace_is_not_held_in_the_cluster(kinds: Kinds, bob: User) -> None:
    with pytest.raises(errors.Forbidden):
        await create(kinds, "clusterroles", bob, name="y", rules=[READ_PODS])


async def test_a_role_does_not_grow_by_an_update(kinds: Kinds, bob: User) -> None:
    await create(kinds, "roles", bob, name="y", rules=[READ_PODS])
    with pytest.raises(errors.Forbidden):
        await kinds.update("roles", Key("ns", "y"), lambda obj: obj["rules"].append(WRITE_PODS), group=RBAC, user=bob)


async def test_a_role_that_holds_more_may_be_labelled(kinds: Kinds, bob: User) -> None:
    await create(kinds, "roles", name="y", rules=[WRITE_PODS])
    change = lambda obj: obj["metadata"].update(labels={"a": "b"})  # noqa: E731
    await kinds.update("roles", Key("ns", "y"), change, group=RBAC, user=bob)


async def test_the_verb_escalate_lifts_the_rule_for_its_role(kinds: Kinds, bob: User) -> None:
    await create(kinds, "roles", bob, name="x", rules=[WRITE_PODS])


async def test_aggregated_rules_need_everything(kinds: Kinds, bob: User) -> None:
    everything = [{"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]}]
    await create(kinds, "clusterroles", name="almost", rules=everything)
    subject = {"kind": "User", "name": "ann"}
    reference = {"kind": "ClusterRole", "name": "almost"}
    await create(kinds, "clusterrolebindings", name="ann", roleRef=reference, subjects=[subject])
    selectors = [{"matchLabels": {"a": "b"}}]
    # she lacks the paths, but may escalate, as `*` says
    await create(
        kinds,
        "clusterroles",
        User(name="ann"),
        name="z",
        aggregationRule={"clusterRoleSelectors": selectors},
    )
    with pytest.raises(errors.Forbidden, match="permissions not currently held"):
        await create(kinds, "clusterroles", bob, name="q", aggregationRule={"clusterRoleSelectors": selectors})


async def test_a_role_is_bound_by_whoever_holds_it(kinds: Kinds, bob: User) -> None:
    await create(kinds, "rolebindings", bob, name="b", **binding_of("reader"))
    with pytest.raises(errors.Forbidden, match='Verbs:\\["update"\\]'):
        await create(kinds, "rolebindings", bob, name="c", **binding_of("writer"))


async def test_the_verb_bind_lifts_the_rule_for_its_role(kinds: Kinds, bob: User) -> None:
    bind = {"verbs": ["bind"], "apiGroups": [RBAC], "resources": ["clusterroles"], "resourceNames": ["writer"]}
    await kinds.update("roles", Key("ns", "bob"), lambda obj: obj["rules"].append(bind), group=RBAC)
    await create(kinds, "rolebindings", bob, name="c", **binding_of("writer"))


async def test_a_role_that_is_not_there_is_not_bound_blindly(kinds: Kinds, bob: User) -> None:
    with pytest.raises(errors.NotFound, match=r"clusterroles\.rbac"):
        await create(kinds, "rolebindings", bob, name="c", **binding_of("nothing"))
    # an administrator may bind what is yet to come
    await create(kinds, "rolebindings", name="c", **binding_of("nothing"))


async def test_a_binding_keeps_its_role(kinds: Kinds, bob: User) -> None:
    await create(kinds, "rolebindings", name="c", **binding_of("reader"))
    with pytest.raises(errors.Invalid, match="cannot change roleRef"):
        await kinds.update("rolebindings", Key("ns", "c"), lambda obj: obj["roleRef"].update(name="writer"), group=RBAC)


async def test_what_subjects_and_references_leave_out_is_filled_in(kinds: Kinds) -> None:
    made = await create(kinds, "rolebindings", name="c", **binding_of("reader"))
    assert made["roleRef"] == {"apiGroup": RBAC, "kind": "ClusterRole", "name": "reader"}
    assert made["subjects"] == [{"kind": "User", "apiGroup": RBAC, "name": "eve"}]


@pytest.mark.parametrize(
    ("path", "content", "fields"),
    [
        pytest.param(
            "roles", {"rules": [{}]}, ["rules[0].verbs", "rules[0].apiGroups", "rules[0].resources"], id="empty"
        ),
        pytest.param(
            "roles",
            {"rules": [{"verbs": ["get"], "nonResourceURLs": ["/x"]}]},
            ["rules[0].nonResourceURLs"],
            id="a path in a namespace",
        ),
        pytest.param(
            "clusterroles",
            {"rules": [{"verbs": ["get"], "nonResourceURLs": ["/x"], "resources": ["pods"]}]},
            ["rules[0].nonResourceURLs"],
            id="paths and resources",
        ),
        pytest.param(
            "clusterroles",
            {"aggregationRule": {"clusterRoleSelectors": [{"matchExpressions": [{"key": "a", "operator": "Is"}]}]}},
            ["aggregationRule.clusterRoleSelectors[0].matchExpressions[0].operator"],
            id="a selector that selects nothing",
        ),
        pytest.param("rolebindings", {}, ["roleRef.kind", "roleRef.name"], id="no role"),
        pytest.param(
            "clusterrolebindings", {"roleRef": {"kind": "Role", "name": "a"}}, ["roleRef.kind"], id="a Role for all"
        ),
        pytest.param(
            "rolebindings",
            {
                "roleRef": {"kind": "Role", "name": "a"},
                "subjects": [{"kind": "Robot"}, {"kind": "ServiceAccount", "name": "a"}],
            },
            ["subjects[0].name", "subjects[0].kind", "subjects[1].namespace"],
            id="odd subjects",
        ),
    ],
)
async def test_bad_roles_and_bindings_are_refused(
    kinds: Kinds, path: str, content: dict[str, Any], fields: list[str]
) -> None:
    with pytest.raises(errors.Invalid) as refused:
        await create(kinds, path, name="a", **content)
    assert [cause["field"] for cause in refused.value.causes] == fields
