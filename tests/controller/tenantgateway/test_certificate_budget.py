"""Budgets of heirs: how many hostnames they may have on the Gateway of an ancestor."""

from __future__ import annotations

import pytest

from apiserver.encoding.encoded_object import encode
from apiserver.meta.resource import Key, Object
from apiserver.storage.watch_cache import CacheEvent, EventType
from controller.tenantgateway.certificate_budget import (
    QUOTA,
    BudgetListener,
    CertificateBudgets,
    HostnameBudget,
    declared_limit,
)
from registry.tenant.summary import TenantSummary
from registry.tenant.tree import TenantTree
from registry.tenant.types import tenant_resource
from tests.controller.tenantgateway.gateway_builders import existing_gateway, gateway, hostnames, planned, route

PER_HEIR = 5
HEIR, OTHER = "tenant-foo-heir", "tenant-foo-other"


def tenant(namespace: str, name: str, limit: str | int | None = None) -> TenantSummary:
    own = f"{namespace}-{name}" if namespace != "tenant-root" else f"tenant-{name}"
    return TenantSummary(key=Key(namespace, name), namespace=own, quotas={} if limit is None else {QUOTA: limit})


def budgets(owner: str, namespace: str, *tenants: TenantSummary) -> list[HostnameBudget]:
    return list(CertificateBudgets(tree=TenantTree(tenants), per_heir=lambda: PER_HEIR).of(owner, namespace))


FOO = tenant("tenant-root", "foo", "100")
DEFAULT = HostnameBudget(HEIR, PER_HEIR, declared=False)


@pytest.mark.parametrize(
    ("tenants", "namespace", "expected"),
    [
        pytest.param([FOO], "tenant-foo", [], id="the owner itself"),
        pytest.param([FOO], "cozy-harbor", [], id="no tenant's namespace"),
        pytest.param([FOO, tenant("tenant-foo", "heir")], HEIR, [DEFAULT], id="an heir without a quota"),
        pytest.param([FOO, tenant("tenant-foo", "heir", 2)], HEIR, [HostnameBudget(HEIR, 2)], id="a quota"),
        pytest.param([FOO, tenant("tenant-foo", "heir", "0")], HEIR, [HostnameBudget(HEIR, 0)], id="none at all"),
        pytest.param([FOO, tenant("tenant-foo", "heir", "x")], HEIR, [DEFAULT], id="an invalid quota"),
        pytest.param(
            [FOO, tenant("tenant-foo", "heir"), tenant(HEIR, "kid")],
            f"{HEIR}-kid",
            [DEFAULT],
            id="a grandchild shares the budget of the child",
        ),
        pytest.param(
            [FOO, tenant("tenant-foo", "heir"), tenant(HEIR, "kid", "900")],
            f"{HEIR}-kid",
            [HostnameBudget(f"{HEIR}-kid", 900), DEFAULT],
            id="a quota of its own does not free it",
        ),
        pytest.param(
            [FOO, tenant("tenant-foo", "heir", 9), tenant(HEIR, "kid", 1)],
            f"{HEIR}-kid",
            [HostnameBudget(f"{HEIR}-kid", 1), HostnameBudget(HEIR, 9)],
            id="both quotas bind",
        ),
        pytest.param(
            [tenant("tenant-root", "zoe")],
            "tenant-zoe",
            [HostnameBudget("tenant-zoe", PER_HEIR, declared=False)],
            id="attached to a Gateway that is not above it",
        ),
    ],
)
def test_the_budgets_of_a_namespace(
    tenants: list[TenantSummary], namespace: str, expected: list[HostnameBudget]
) -> None:
    assert budgets("tenant-foo", namespace, *tenants) == expected


@pytest.mark.parametrize(
    ("quotas", "limit"),
    [
        ({}, None),
        ({"count/services": "1"}, None),
        ({QUOTA: "3"}, 3),
        ({QUOTA: 3}, 3),
        ({QUOTA: "1k"}, 1000),
        ({QUOTA: "-1"}, None),
        ({QUOTA: "1e999999999"}, None),
    ],
)
def test_the_declared_limit(quotas: dict[str, str | int], limit: int | None) -> None:
    assert declared_limit(quotas) == limit


def many(prefix: str, number: int) -> list[str]:
    return [f"{prefix}{index}.foo.example.com" for index in range(number)]


def plan_with(budget: HostnameBudget, *, served: int = 0) -> tuple[list[str], dict[str, str]]:
    """The hostnames that are served, and the messages of the others, if the heir has a budget and claims five."""
    routes = [route(HEIR, "app", *many("h", 5)), route(OTHER, "app", "other.foo.example.com")]
    current = (
        existing_gateway(gateway(), planned(gateway(), route(HEIR, "app", *many("h", served)))) if served else None
    )
    plan = planned(
        gateway(), *routes, current=current, budgets_of=lambda namespace: [budget] if namespace == HEIR else []
    )
    assert len(plan.certificates) == len(hostnames(plan))
    assert {each.reason for each in plan.omitted} <= {"QuotaExceeded"}
    assert {each.route for each in plan.omitted} <= {routes[0].id}
    return sorted(hostnames(plan)), {each.hostname: each.message for each in plan.omitted}


def test_a_hostname_beyond_the_budget_gets_neither_listener_nor_certificate() -> None:
    served, refused = plan_with(HostnameBudget(HEIR, 2))
    assert served == [*many("h", 2), "other.foo.example.com"]
    assert refused["h2.foo.example.com"] == f'"h2.foo.example.com" exceeds the quota {QUOTA} of its tenant, which is 2'
    assert len(refused) == 3


@pytest.mark.parametrize(
    ("budget", "message"),
    [
        pytest.param(
            HostnameBudget("tenant-foo", 1), f"exceeds the quota {QUOTA} of a tenant above its own", id="ATTACK-15"
        ),
        pytest.param(
            HostnameBudget("tenant-foo", 1, declared=False),
            "exceeds the 1 hostnames that a tenant may have on the gateway of another (gateway.hostnamesPerHeir)",
            id="the setting",
        ),
    ],
)
def test_the_quota_of_another_tenant_is_not_told(budget: HostnameBudget, message: str) -> None:
    _, refused = plan_with(budget)
    assert refused["h4.foo.example.com"] == f'"h4.foo.example.com" {message}'


@pytest.mark.parametrize(("declared", "left"), [(True, 1), (False, 3)])
def test_only_a_declared_quota_ends_what_is_served(declared: bool, left: int) -> None:
    served, _ = plan_with(HostnameBudget(HEIR, 1, declared=declared), served=3)
    assert served == [*many("h", left), "other.foo.example.com"]


def test_siblings_share_the_budget_of_the_tenant_above_them() -> None:
    routes = [route(namespace, "app", *many(prefix, 3)) for namespace, prefix in ((HEIR, "a"), (OTHER, "b"))]
    plan = planned(gateway(), *routes, budgets_of=lambda namespace: [HostnameBudget("tenant-foo", 4)])
    assert sorted(hostnames(plan)) == sorted([*many("a", 2), *many("b", 2)])


def event(type_: EventType, rv: int, spec: Object) -> CacheEvent:
    metadata = {"namespace": "tenant-root", "name": "foo", "resourceVersion": str(rv)}
    return CacheEvent(type_, encode(tenant_resource(), {"metadata": metadata, "spec": spec}))


def test_only_changes_of_the_quota_are_reported() -> None:
    """Statuses of Tenants change all the time, and a plan is expensive."""
    reported: list[str] = []
    tree = TenantTree()
    listener = BudgetListener(tree, reported.append)
    changes: list[tuple[EventType, Object | None, list[str]]] = [
        ("ADDED", None, []),
        ("MODIFIED", {"cpu": "1"}, []),
        ("MODIFIED", {QUOTA: "1"}, ["tenant-foo"]),
        ("MODIFIED", {QUOTA: "1", "cpu": "2"}, []),
        ("MODIFIED", {QUOTA: "2"}, ["tenant-foo"]),
        ("DELETED", {QUOTA: "2"}, ["tenant-foo"]),
        ("ADDED", None, []),
    ]
    for number, (type_, quotas, expected) in enumerate(changes):
        reported.clear()
        changed = event(type_, number, {"resourceQuotas": quotas})
        tree.on_event(changed)
        listener.on_event(changed)
        assert reported == expected
