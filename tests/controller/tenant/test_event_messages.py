"""The Events that follow from changed conditions of a Tenant."""

from __future__ import annotations

from typing import Any

import pytest

from controller.tenant.event_messages import events_for_tenant_conditions


def condition(type_: str, status: str, reason: str, message: str = "why") -> dict[str, Any]:
    return {"type": type_, "status": status, "reason": reason, "message": message}


READY = condition("Ready", "True", "Reconciled")


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        pytest.param([], [READY], [("Normal", "Reconciled")], id="ready"),
        pytest.param([READY], [READY], [], id="unchanged"),
        pytest.param(
            [READY],
            [condition("NamespaceReady", "False", "X"), condition("Ready", "False", "X")],
            [("Warning", "X")],
            id="one event for one message",
        ),
        pytest.param([], [condition("GatewayReady", "Unknown", "Pending")], [], id="unknown"),
        pytest.param([], [condition("HostConflict", "True", "Duplicate")], [("Warning", "HostConflict")], id="problem"),
        pytest.param(
            [condition("Terminating", "True", "ChildTenantsRemain")],
            [condition("Terminating", "True", "NamespaceRemains")],
            [("Normal", "NamespaceRemains")],
            id="the next step of a deletion",
        ),
        *(
            pytest.param([], [condition("Terminating", "True", reason)], [("Warning", reason)], id=reason)
            for reason in ("HasChildTenants", "NamespaceProtected", "Refused")
        ),
        pytest.param("malformed", [READY], [("Normal", "Reconciled")], id="the previous conditions are malformed"),
    ],
)
def test_only_changed_conditions_that_matter_become_events(
    before: object, after: list[dict[str, Any]], expected: list[tuple[str, str]]
) -> None:
    assert [(each.type, each.reason) for each in events_for_tenant_conditions(before, after)] == expected
