"""The ServiceAccount and the RoleBindings of a Tenant: how they are rendered, and which ones are equivalent."""

from __future__ import annotations

import pytest

from controller.tenant import rbac_step as rbac
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
    """R-026: the service accounts of all ancestors, and of no descendant."""
    subjects = rbac.render_role_binding(role, BAR, (FOO, root_summary()))["subjects"]

    assert [each["name"] for each in subjects if each["kind"] == "Group"] == [
        f"tenant-foo-bar-{each}" for each in levels
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
