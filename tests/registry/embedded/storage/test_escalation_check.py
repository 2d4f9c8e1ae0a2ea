"""Roles and bindings: validation of their content, and the check that users grant only permissions that they have."""

from __future__ import annotations

from typing import Any

import pytest

from apiserver.meta import errors
from apiserver.meta.resource import Key, Object
from apiserver.request.context import User
from registry.embedded.auth.rbac_authorizer import RoleIndexUpdater
from tests.registry.embedded.embedded_storages import EmbeddedApi

RBAC = "rbac.authorization.k8s.io"
BOB = User(name="bob", groups=("devs",))
READ_PODS = {"verbs": ["get"], "apiGroups": [""], "resources": ["pods"]}
WRITE_PODS = {"verbs": ["update"], "apiGroups": [""], "resources": ["pods"]}


async def create(api: EmbeddedApi, path: str, user: User | None = None, /, **obj: Any) -> Object:
    more: dict[str, Any] = {"user": user} if user is not None else {}
    name = obj.pop("name")
    metadata = {"name": name} if path.startswith("cluster") else {"name": name, "namespace": "ns"}
    return await api.create(path, {"metadata": metadata, **obj}, group=RBAC, **more)


@pytest.fixture
async def bob(api: EmbeddedApi) -> User:
    """May read pods and manage RBAC in `ns`, and nothing else."""
    RoleIndexUpdater(database=api.database, index=api.index).load(api.backends)
    manage = {"verbs": ["*"], "apiGroups": [RBAC], "resources": ["roles", "rolebindings"], "resourceNames": ["x"]}
    await create(api, "roles", name="bob", rules=[READ_PODS, manage])
    await create(api, "clusterroles", name="writer", rules=[WRITE_PODS])
    await create(api, "clusterroles", name="reader", rules=[READ_PODS])
    subject = {"kind": "User", "name": "bob"}
    await create(api, "rolebindings", name="bob", roleRef={"kind": "Role", "name": "bob"}, subjects=[subject])
    return BOB


def binding_of(role: str) -> dict[str, Any]:
    return {"roleRef": {"kind": "ClusterRole", "name": role}, "subjects": [{"kind": "User", "name": "eve"}]}


async def test_a_user_can_create_a_role_with_permissions_they_have(api: EmbeddedApi, bob: User) -> None:
    await create(api, "roles", bob, name="y", rules=[READ_PODS])


async def test_a_role_with_more_permissions_is_rejected_with_the_kubernetes_message(
    api: EmbeddedApi, bob: User
) -> None:
    with pytest.raises(errors.Forbidden) as raised:
        await create(api, "roles", bob, name="y", rules=[READ_PODS, WRITE_PODS])
    assert raised.value.message == (
        'roles.rbac.authorization.k8s.io "y" is forbidden: user "bob" (groups=["devs"]) is attempting to grant RBAC '
        'permissions not currently held:\n{APIGroups:[""], Resources:["pods"], Verbs:["update"]}'
    )


async def test_a_rule_of_too_many_permissions_is_not_broken_down(api: EmbeddedApi, bob: User) -> None:
    """ATTACK-19: 50 values of each kind in a body of 2 kB are six million permissions. Administrators have no limit."""
    values = [f"v{number}" for number in range(50)]
    rule = {"verbs": values, "apiGroups": values, "resources": values, "resourceNames": values}
    with pytest.raises(errors.RequestEntityTooLarge, match="a role may have 5000 single permissions"):
        await create(api, "roles", bob, name="y", rules=[rule])
    await create(api, "roles", name="y", rules=[rule])


async def test_the_permissions_that_a_message_names_are_limited(api: EmbeddedApi, bob: User) -> None:
    rule = {"verbs": ["get"], "apiGroups": [""], "resources": [f"r{number}" for number in range(4000)]}
    with pytest.raises(errors.Forbidden) as raised:
        await create(api, "roles", bob, name="y", rules=[rule])
    assert raised.value.message.count("\n") == 100


async def test_permissions_in_a_namespace_do_not_allow_a_clusterrole(api: EmbeddedApi, bob: User) -> None:
    with pytest.raises(errors.Forbidden):
        await create(api, "clusterroles", bob, name="y", rules=[READ_PODS])


async def test_an_update_cannot_add_permissions_the_user_lacks(api: EmbeddedApi, bob: User) -> None:
    await create(api, "roles", bob, name="y", rules=[READ_PODS])
    with pytest.raises(errors.Forbidden):
        await api.update("roles", Key("ns", "y"), lambda obj: obj["rules"].append(WRITE_PODS), group=RBAC, user=bob)


async def test_a_role_with_more_permissions_can_be_labelled(api: EmbeddedApi, bob: User) -> None:
    await create(api, "roles", name="y", rules=[WRITE_PODS])
    change = lambda obj: obj["metadata"].update(labels={"a": "b"})  # noqa: E731
    await api.update("roles", Key("ns", "y"), change, group=RBAC, user=bob)


async def test_the_escalate_verb_skips_the_check_for_the_named_role(api: EmbeddedApi, bob: User) -> None:
    await create(api, "roles", bob, name="x", rules=[WRITE_PODS])


async def test_an_aggregation_rule_requires_all_permissions(api: EmbeddedApi, bob: User) -> None:
    everything = [{"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]}]
    await create(api, "clusterroles", name="almost", rules=everything)
    subject = {"kind": "User", "name": "ann"}
    reference = {"kind": "ClusterRole", "name": "almost"}
    await create(api, "clusterrolebindings", name="ann", roleRef=reference, subjects=[subject])
    selectors = [{"matchLabels": {"a": "b"}}]
    # she has no permissions for paths, but `*` includes the verb `escalate`
    await create(
        api,
        "clusterroles",
        User(name="ann"),
        name="z",
        aggregationRule={"clusterRoleSelectors": selectors},
    )
    with pytest.raises(errors.Forbidden, match="permissions not currently held"):
        await create(api, "clusterroles", bob, name="q", aggregationRule={"clusterRoleSelectors": selectors})


async def test_a_user_can_bind_a_role_whose_permissions_they_have(api: EmbeddedApi, bob: User) -> None:
    await create(api, "rolebindings", bob, name="b", **binding_of("reader"))
    with pytest.raises(errors.Forbidden, match='Verbs:\\["update"\\]'):
        await create(api, "rolebindings", bob, name="c", **binding_of("writer"))


async def test_the_bind_verb_skips_the_check_for_the_named_role(api: EmbeddedApi, bob: User) -> None:
    bind = {"verbs": ["bind"], "apiGroups": [RBAC], "resources": ["clusterroles"], "resourceNames": ["writer"]}
    await api.update("roles", Key("ns", "bob"), lambda obj: obj["rules"].append(bind), group=RBAC)
    await create(api, "rolebindings", bob, name="c", **binding_of("writer"))


async def test_binding_a_missing_role_is_not_found_without_the_bind_verb(api: EmbeddedApi, bob: User) -> None:
    with pytest.raises(errors.NotFound, match=r"clusterroles\.rbac"):
        await create(api, "rolebindings", bob, name="c", **binding_of("nothing"))
    # an administrator may bind a role that does not exist yet
    await create(api, "rolebindings", name="c", **binding_of("nothing"))


async def test_the_role_of_a_binding_is_immutable(api: EmbeddedApi, bob: User) -> None:
    await create(api, "rolebindings", name="c", **binding_of("reader"))
    with pytest.raises(errors.Invalid, match="cannot change roleRef"):
        await api.update("rolebindings", Key("ns", "c"), lambda obj: obj["roleRef"].update(name="writer"), group=RBAC)


async def test_api_groups_of_subjects_and_role_references_are_defaulted(api: EmbeddedApi) -> None:
    created = await create(api, "rolebindings", name="c", **binding_of("reader"))
    assert created["roleRef"] == {"apiGroup": RBAC, "kind": "ClusterRole", "name": "reader"}
    assert created["subjects"] == [{"kind": "User", "apiGroup": RBAC, "name": "eve"}]


@pytest.mark.parametrize(
    ("path", "content", "fields"),
    [
        pytest.param(
            "roles", {"rules": [{}]}, ["rules[0].verbs", "rules[0].apiGroups", "rules[0].resources"], id="an empty rule"
        ),
        pytest.param(
            "roles",
            {"rules": [{"verbs": ["get"], "nonResourceURLs": ["/x"]}]},
            ["rules[0].nonResourceURLs"],
            id="a path in a namespaced role",
        ),
        pytest.param(
            "clusterroles",
            {"rules": [{"verbs": ["get"], "nonResourceURLs": ["/x"], "resources": ["pods"]}]},
            ["rules[0].nonResourceURLs"],
            id="paths and resources in one rule",
        ),
        pytest.param(
            "clusterroles",
            {"aggregationRule": {"clusterRoleSelectors": [{"matchExpressions": [{"key": "a", "operator": "Is"}]}]}},
            ["aggregationRule.clusterRoleSelectors[0].matchExpressions[0].operator"],
            id="a selector with an unknown operator",
        ),
        pytest.param(
            "clusterroles",
            {"aggregationRule": {"clusterRoleSelectors": [{"matchExpressions": [{"key": "a", "operator": "In"}]}]}},
            [
                "aggregationRule.clusterRoleSelectors[0].matchExpressions[0].values",
                "aggregationRule.clusterRoleSelectors[0]",
            ],
            id="a selector without values",
        ),
        pytest.param(
            "clusterroles", {"aggregationRule": {}}, ["aggregationRule.clusterRoleSelectors"], id="no selector"
        ),
        pytest.param("rolebindings", {}, ["roleRef.kind", "roleRef.name"], id="no role reference"),
        pytest.param(
            "clusterrolebindings",
            {"roleRef": {"kind": "Role", "name": "a"}},
            ["roleRef.kind"],
            id="a ClusterRoleBinding to a Role",
        ),
        pytest.param(
            "rolebindings",
            {
                "roleRef": {"kind": "Role", "name": "a"},
                "subjects": [{"kind": "Robot"}, {"kind": "ServiceAccount", "name": "a"}],
            },
            ["subjects[0].name", "subjects[0].kind", "subjects[1].namespace"],
            id="invalid subjects",
        ),
    ],
)
async def test_invalid_roles_and_bindings_are_rejected(
    api: EmbeddedApi, path: str, content: dict[str, Any], fields: list[str]
) -> None:
    with pytest.raises(errors.Invalid) as raised:
        await create(api, path, name="a", **content)
    assert [cause["field"] for cause in raised.value.causes] == fields
