"""A pool of counts that has no room for the controllers' own objects is admitted with a Warning."""

from __future__ import annotations

from typing import Any

import pytest

from admission.tenant.room_for_own_objects import RoomForOwnObjects, room_warnings
from registry.tenant.summary import TenantSummary
from tests.tenant_objects import attributes, tenant, tenant_summary, tree_of

BINDINGS = "count/rolebindings.rbac.authorization.k8s.io"


def summary(name: str, namespace: str = "tenant-root", **quotas: Any) -> TenantSummary:
    found = {"bindings": BINDINGS, "quotas": "count/resourcequotas"}
    return tenant_summary(name, namespace, spec={"resourceQuotas": {found[key]: n for key, n in quotas.items()}})


@pytest.mark.parametrize(
    ("existing", "new", "expected"),
    [
        pytest.param([], summary("a", bindings=5, quotas=2), [], id="room for one"),
        pytest.param([summary("a", bindings=11)], summary("b", "tenant-a"), [], id="room for a child in the pool"),
        pytest.param(
            [summary("a", bindings=10)],
            summary("b", "tenant-a"),
            [f"the quota of {BINDINGS} that this tenant shares with an ancestor is too small for the RoleBindings"],
            id="the people of the child are bound in its parent's namespace, too",
        ),
        pytest.param(
            [summary("a", bindings=11)],
            summary("b", "tenant-a", bindings=5),
            [],
            id="a child that declares enough takes it out of the pool",
        ),
        pytest.param(
            [summary("a"), summary("b", "tenant-a")],
            summary("a", bindings=6),
            [f"spec.resourceQuotas[{BINDINGS}]: there is no room for the 11 RoleBindings"],
            id="a parent that declares too few for those that share it",
        ),
        pytest.param(
            [summary("a", quotas=2)],
            summary("b", "tenant-a"),
            ["the quota of resourcequotas that this tenant shares with an ancestor is too small"],
            id="quotas",
        ),
        pytest.param([summary("a")], summary("b", "tenant-a"), [], id="no such quota"),
    ],
)
def test_a_pool_without_room(existing: list[TenantSummary], new: TenantSummary, expected: list[str]) -> None:
    found = list(room_warnings(tree_of(*existing), new))
    assert len(found) == len(expected)
    assert all(text.startswith(start) for text, start in zip(found, expected, strict=True))


async def test_only_writes_that_change_quotas_are_warned_of() -> None:
    plugin = RoomForOwnObjects(tree=tree_of(summary("a", bindings=10)))
    found = []
    for old in (None, tenant("b", "tenant-a")):
        request = attributes("CREATE" if old is None else "UPDATE", tenant("b", "tenant-a"), old)
        assert plugin.handles(request)
        await plugin.validate(request)
        found.append(len(request.context.warnings))
    assert found == [1, 0]
