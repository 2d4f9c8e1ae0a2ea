"""Quotas of counts need room for the objects that the controllers create themselves."""

from __future__ import annotations

from typing import Any

import pytest

from controller.tenant.rbac_step import ROLES
from registry.tenant.own_objects import BINDINGS, room_errors
from registry.tenant.strategy import TenantStrategy
from tests.tenant_objects import tenant


@pytest.mark.parametrize(
    ("key", "value", "least"),
    [
        pytest.param("count/resourcequotas", "1", 2, id="quotas"),
        pytest.param("resourcequotas", 0, 2, id="quotas under their other name"),
        pytest.param("resourcequotas", 2, 0, id="enough quotas"),
        pytest.param(BINDINGS, "4", 5, id="bindings"),
        pytest.param(BINDINGS, "5", 0, id="enough bindings"),
        pytest.param("count/rolebindings.example.org", "0", 0, id="bindings of somebody else"),
        pytest.param("count/secrets", "0", 0, id="objects that are there before"),
        pytest.param("resourcequotas", "many", 0, id="what is no quantity"),
    ],
)
def test_a_tenant_declares_at_least_what_the_controller_creates(key: str, value: str | int, least: int) -> None:
    found = room_errors(key, value)
    assert [each.partition(":")[0] for each in found] == ([f"must be at least {least}"] if least else [])


def test_all_roles_of_a_tenant_are_bound() -> None:
    assert "creates 5 RoleBindings in the namespace" in room_errors(BINDINGS, 1)[0]
    assert len(ROLES) == 5


@pytest.mark.parametrize(
    ("spec", "stored", "fields"),
    [
        pytest.param({BINDINGS: "3", "pods": "3"}, {}, [f"spec.resourceQuotas[{BINDINGS}]"], id="new"),
        pytest.param({BINDINGS: "3", "pods": "4"}, {BINDINGS: "3"}, [], id="of an old tenant"),
    ],
)
def test_only_what_changes_is_rejected(spec: dict[str, Any], stored: dict[str, Any], fields: list[str]) -> None:
    new, old = (tenant("alpha", spec={"resourceQuotas": each}) for each in (spec, stored))
    strategy = TenantStrategy()
    strategy.prepare_for_update(new, old)
    assert [each.field for each in strategy.validate_update(new, old)] == fields
