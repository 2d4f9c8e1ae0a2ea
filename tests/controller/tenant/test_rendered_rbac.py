"""The ServiceAccount and the RoleBindings of a Tenant: how they are rendered, and which ones are equivalent."""

from __future__ import annotations

import pytest

from apiserver.meta.resource import Object
from controller.tenant import rbac_step as rbac
from controller.tenant import self_access
from tests.controller.golden_files import assert_golden
from tests.tenant_objects import root_summary, tenant_summary

FOO = tenant_summary("foo", spec={"etcd": True, "monitoring": True})
BAR = tenant_summary("bar", "tenant-foo", spec={"etcd": True, "gateway": True, "resourceQuotas": {"cpu": 4}})


def test_the_rendered_service_account() -> None:
    assert_golden("tenant-serviceaccount", rbac.render_service_account(BAR))


@pytest.mark.parametrize("role", rbac.ROLES)
def test_the_rendered_role_bindings(role: str) -> None:
    """R-024: ClusterRoles cozy:tenant*, bound in the tenant's own namespace."""
    rendered = rbac.render_role_binding(role, BAR, (FOO, root_summary()))

    assert rendered["roleRef"] == {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": role}
    assert rendered["metadata"]["namespace"] == "tenant-foo-bar"
    assert_golden(f"rolebinding-{role.replace(':', '-')}", rendered)


@pytest.mark.parametrize(
    ("role", "levels"),
    [
        pytest.param("cozy:tenant", ["view", "use", "admin", "super-admin"], id="all"),
        pytest.param("cozy:tenant:view", ["view", "use", "admin", "super-admin"], id="view or above"),
        pytest.param("cozy:tenant:use", ["use", "admin", "super-admin"], id="use or above"),
        pytest.param("cozy:tenant:admin", ["admin", "super-admin"], id="R-025 admin or above"),
        pytest.param("cozy:tenant:super-admin", ["super-admin"], id="super-admin"),
    ],
)
def test_a_role_is_bound_to_the_groups_of_its_level_and_above(role: str, levels: list[str]) -> None:
    """R-026: the groups and the service accounts of all ancestors, and of no descendant."""
    subjects = rbac.render_role_binding(role, BAR, (FOO, root_summary()))["subjects"]

    assert [each["name"] for each in subjects if each["kind"] == "Group"] == [
        f"{namespace}-{level}" for namespace in ("tenant-foo-bar", "tenant-foo", "tenant-root") for level in levels
    ]
    accounts = [(each["namespace"], each["name"]) for each in subjects if each["kind"] == "ServiceAccount"]
    assert accounts == [(name, name) for name in ("tenant-foo-bar", "tenant-foo", "tenant-root")]


def test_defaults_and_the_order_of_subjects_do_not_change_the_digest_of_a_binding() -> None:
    desired = rbac.render_role_binding("cozy:tenant", BAR, ())
    stored = {**desired, "subjects": [{**each, "apiGroup": each.get("apiGroup", "")} for each in desired["subjects"]]}

    assert rbac.MANAGED_ROLE_BINDING.digest(stored) == rbac.MANAGED_ROLE_BINDING.digest(desired)
    reversed_ = {**desired, "subjects": desired["subjects"][::-1]}
    assert rbac.MANAGED_ROLE_BINDING.digest(reversed_) == rbac.MANAGED_ROLE_BINDING.digest(desired)
    assert rbac.MANAGED_ROLE_BINDING.digest(
        {**desired, "subjects": reversed_["subjects"][1:]}
    ) != rbac.MANAGED_ROLE_BINDING.digest(desired)
    assert not rbac.MANAGED_ROLE_BINDING.must_be_replaced(stored, desired)
    other = {**desired, "roleRef": {**desired["roleRef"], "name": "cluster-admin"}}
    assert rbac.MANAGED_ROLE_BINDING.must_be_replaced(other, desired)


def test_the_rendered_role_and_binding_of_the_own_tenant() -> None:
    """In the parent's namespace, owned by the HelmRelease: the garbage collector deletes what no finalizer did."""
    role, binding = self_access.render_self_role(BAR), self_access.render_self_role_binding(BAR)

    assert_golden("role-cozy-tenant-self", role)
    assert_golden("rolebinding-cozy-tenant-self", binding)
    assert binding["metadata"] == role["metadata"]
    assert role["metadata"]["namespace"] == "tenant-foo"


def test_the_digests_of_an_own_role_and_its_binding_have_what_we_decide_on() -> None:
    """Their order of verbs and subjects has no meaning; a successor of the same name is another owner."""
    role, binding = self_access.render_self_role(BAR), self_access.render_self_role_binding(BAR)
    [rule] = role["rules"]
    digest = self_access.MANAGED_SELF_ROLE.digest

    assert digest({**role, "rules": [{**rule, "verbs": ["watch", "list", "get"]}]}) == digest(role)
    changes: list[Object] = [{"verbs": ["*"]}, {"resourceNames": ["bar", "foo"]}, {"resourceNames": []}]
    for changed in changes:
        assert digest({**role, "rules": [{**rule, **changed}]}) != digest(role)
    of_binding = self_access.MANAGED_SELF_ROLE_BINDING.digest
    assert of_binding({**binding, "subjects": binding["subjects"][::-1]}) == of_binding(binding)
    assert of_binding({**binding, "subjects": binding["subjects"][1:]}) != of_binding(binding)
    for kind, obj in ((self_access.MANAGED_SELF_ROLE, role), (self_access.MANAGED_SELF_ROLE_BINDING, binding)):
        [owner] = obj["metadata"]["ownerReferences"]
        successor = {**obj, "metadata": {**obj["metadata"], "ownerReferences": [{**owner, "uid": "other"}]}}
        assert kind.digest(successor) != kind.digest(obj)
        assert kind.selects("tenant-foo", obj["metadata"]["name"])
        assert not kind.selects("tenant-foo", "cozy:tenant:view")
    assert not self_access.MANAGED_SELF_ROLE_BINDING.must_be_replaced(binding, binding)
    other = {**binding, "roleRef": {**binding["roleRef"], "name": "admin"}}
    assert self_access.MANAGED_SELF_ROLE_BINDING.must_be_replaced(other, binding)
