"""A Tenant's conditions GatewayReady and WorkloadsReady, its number of external addresses, and the events of
changes."""

from __future__ import annotations

from typing import Any

import pytest

from apiserver.meta.resource import Object
from controller.runtime.conditions import Finding
from controller.tenant.gateway_ready_step import (
    GATEWAYS,
    ConditionState,
    GatewayState,
    ListenerState,
    gateway_finding,
    hostname_owners,
)
from controller.tenant.observe import ObservedTenant
from controller.tenant.workloads_ready_step import (
    WORKLOADMONITORS,
    external_ips,
    is_operational,
    project_monitor,
    workloads_finding,
)
from registry.cluster.interface import SERVICES
from registry.tenant.tree import EffectiveGateway
from registry.tenantgateway.types import TENANTGATEWAYS
from tests.controller.tenant.tenant_world import World
from tests.tenant_objects import names, release, tenant_summary, tree_of
from tests.virtual_time import virtual

ACCEPTED = ConditionState("True", "Accepted", "")
OWN = {"alpha.example.org", "*.alpha.example.org", "harbor.alpha.example.org"}


def observed(owner: str, namespace: str = "tenant-alpha") -> ObservedTenant:
    return ObservedTenant(
        tenant=tenant_summary(namespace.removeprefix("tenant-")),
        release=release("alpha"),
        ancestors=(),
        host=None,
        gateway=EffectiveGateway(value=bool(owner), namespace=owner),
        shares_host=False,
        shares_namespace=False,
        namespace=None,
        parent_namespace=None,
    )


def gateway_state(
    ready: ConditionState | None = None, accepted: ConditionState | None = ACCEPTED, **listeners: bool
) -> GatewayState:
    listener_states = [
        ListenerState(
            hostname=f"{name}.alpha.example.org" if name != "other" else "x.beta.example.org", ready=ok, reason="Late"
        )
        for name, ok in listeners.items()
    ]
    return GatewayState(tenantgateway={"metadata": {}}, ready=ready, accepted=accepted, listeners=listener_states)


@pytest.mark.parametrize(
    ("owner", "state", "expected"),
    [
        pytest.param("tenant-alpha", GatewayState(), ("Unknown", "Pending"), id="its own does not exist yet"),
        pytest.param(
            "tenant-alpha",
            gateway_state(ConditionState("True", "Reconciled", "")),
            ("True", "Reconciled"),
            id="its own",
        ),
        pytest.param(
            "tenant-alpha",
            gateway_state(ConditionState("False", "ReconcileError", "x")),
            ("False", "ReconcileError"),
            id="its own fails",
        ),
        pytest.param(
            "tenant-alpha",
            gateway_state(ConditionState("False", "ListenersNotReady", "x"), other=False),
            ("True", "Reconciled"),
            id="its own waits for an heir's listener",
        ),
        pytest.param(
            "tenant-alpha",
            gateway_state(ConditionState("False", "ListenersNotReady", "x"), harbor=False),
            ("False", "ListenersNotReady"),
            id="its own waits for its own listener",
        ),
        pytest.param("tenant-root", GatewayState(), ("Unknown", "Pending"), id="the ancestor's does not exist yet"),
        pytest.param(
            "tenant-root",
            gateway_state(accepted=ConditionState("False", "Invalid", "x")),
            ("False", "GatewayNotAccepted"),
            id="the ancestor's is not accepted",
        ),
        pytest.param(
            "tenant-root",
            gateway_state(ConditionState("False", "ReconcileError", "x"), other=False),
            ("True", "Reconciled"),
            id="a listener of another tenant fails",
        ),
        pytest.param(
            "tenant-root",
            gateway_state(harbor=False, other=True),
            ("False", "ListenersNotReady"),
            id="its own listener",
        ),
    ],
)
def test_gateway_ready_depends_on_own_listeners_only(
    owner: str, state: GatewayState, expected: tuple[str, str]
) -> None:
    found = finding(owner, state)
    assert (found.status, found.reason) == expected
    assert owner in found.message


def finding(owner: str, state: GatewayState) -> Finding:
    found = gateway_finding(observed(owner), state, lambda hostname: hostname in OWN)
    assert found is not None
    return found


def test_a_tenant_that_no_gateway_serves_has_no_condition_that_looks_like_a_fault() -> None:
    assert gateway_finding(observed(""), gateway_state(), lambda hostname: True) is None


@pytest.mark.parametrize(
    "state",
    [pytest.param(GatewayState(), id="no TenantGateway"), pytest.param(gateway_state(), id="no status")],
)
def test_an_owner_reports_that_it_waits_for_its_tenantgateway(state: GatewayState) -> None:
    found = finding("tenant-alpha", state)
    assert found.message == (
        'the Gateway of "tenant-alpha": its TenantGateway does not exist yet or has no status; '
        "kubectl -n tenant-alpha describe tgw cozystack"
    )


def test_listeners_that_are_not_ready_are_named_with_the_reason() -> None:
    found = finding("tenant-root", gateway_state(harbor=False))
    assert found.message == (
        'the Gateway of "tenant-root": listeners not ready: harbor.alpha.example.org (Late); '
        "ask those who administer it"
    )


@pytest.mark.parametrize(
    ("hostname", "owners"),
    [
        pytest.param("alpha.example.org", ["alpha"], id="the domain itself"),
        pytest.param("harbor.alpha.example.org", ["alpha"], id="below it"),
        pytest.param("a.b.ALPHA.example.org.", ["alpha"], id="far below it, in another spelling"),
        pytest.param("*.beta.alpha.example.org", ["beta"], id="a wildcard belongs to its domain"),
        pytest.param("x.beta.alpha.example.org", ["beta"], id="the longest domain wins"),
        pytest.param("alphabet.example.org", ["root"], id="only whole labels match"),
        pytest.param("elsewhere.net", [], id="no owner"),
    ],
)
def test_a_hostname_belongs_to_the_tenant_with_the_longest_domain(hostname: str, owners: list[str]) -> None:
    tree = tree_of(tenant_summary("alpha"), tenant_summary("beta", "tenant-alpha"))
    assert names(hostname_owners(tree, hostname)) == owners


@pytest.mark.parametrize(
    ("service", "expected"),
    [
        pytest.param({"type": "LoadBalancer", "ingress": [{"ip": "192.0.2.1"}]}, ["192.0.2.1"], id="an address"),
        pytest.param(
            {"type": "LoadBalancer", "ingress": [{"ip": "2001:db8::1"}, {"ip": "192.0.2.1"}, {"ip": "192.0.2.1"}]},
            ["192.0.2.1", "2001:db8::1"],
            id="several, sorted",
        ),
        pytest.param({"type": "LoadBalancer", "ingress": [{"hostname": "lb.example"}]}, [], id="a name is no address"),
        pytest.param({"type": "LoadBalancer", "ingress": [{"ip": ["x"]}, "x"]}, [], id="malformed"),
        pytest.param({"type": "LoadBalancer", "ingress": []}, [], id="none yet"),
        pytest.param({"type": "LoadBalancer", "ingress": None}, [], id="null"),
        pytest.param({"type": "ClusterIP", "ingress": [{"ip": "192.0.2.1"}]}, [], id="no longer a load balancer"),
    ],
)
def test_only_the_ips_of_load_balancers_are_external(service: dict[str, Any], expected: list[str]) -> None:
    obj = {"spec": {"type": service["type"]}, "status": {"loadBalancer": {"ingress": service["ingress"]}}}
    assert list(external_ips(obj)) == expected


@pytest.mark.parametrize(
    ("monitors", "expected"),
    [
        pytest.param({}, None, id="no monitors"),
        pytest.param({"a": "True", "b": "True"}, ("True", "WorkloadsOperational"), id="all are operational"),
        pytest.param({"a": "True", "b": "Unknown"}, ("Unknown", "Pending"), id="one has not reported"),
        pytest.param({"a": "False", "b": "Unknown"}, ("False", "WorkloadsNotOperational"), id="one is not operational"),
    ],
)
def test_all_monitors_must_be_operational(monitors: dict[str, str], expected: tuple[str, str] | None) -> None:
    found = workloads_finding(monitors)
    assert (None if found is None else (found.status, found.reason)) == expected


def service(name: str, *, ingress: list[Object]) -> Object:
    return {
        "metadata": {"name": name, "namespace": "tenant-alpha"},
        "spec": {"type": "LoadBalancer"},
        "status": {"loadBalancer": {"ingress": ingress}},
    }


@virtual
async def test_external_addresses_are_counted_as_services_change() -> None:
    world = World()
    async with world.running():
        await world.create("alpha")
        await world.settle()
        assert "externalIPsCount" not in world.tenant("alpha")["status"]
        world.cluster.add(SERVICES, service("a", ingress=[{"ip": "192.0.2.1"}]), service("b", ingress=[]))
        await world.settle()
        assert world.tenant("alpha")["status"]["externalIPsCount"] == 1
        world.cluster.clear_writes()
        shared = [{"ip": "192.0.2.1"}, {"ip": "192.0.2.2"}, {"hostname": "lb.example"}]
        await world.edit(SERVICES, "tenant-alpha", "b", service("b", ingress=shared))
        await world.settle()
        assert world.tenant("alpha")["status"]["externalIPsCount"] == 2
        assert world.writes()[1:] == [("patch", "helmreleases", "tenant-alpha")]
        for name in ("a", "b"):
            await world.cluster.delete(SERVICES, "tenant-alpha", name)
    assert "externalIPsCount" not in world.tenant("alpha")["status"]


def workload_monitor(name: str, **status: Any) -> Object:
    """A WorkloadMonitor with the fields of Cozystack's kind. Its controller fills in the status."""
    return {
        "metadata": {"name": name, "namespace": "tenant-alpha"},
        "spec": {"kind": "postgres", "type": "postgres", "replicas": 2, "minReplicas": 1, "selector": {"app": name}},
        "status": status,
    }


@pytest.mark.parametrize(
    ("status", "expected"),
    [
        pytest.param({"operational": True, "availableReplicas": 2, "observedReplicas": 2}, True, id="operational"),
        pytest.param({"operational": False, "availableReplicas": 0, "observedReplicas": 2}, False, id="few replicas"),
        pytest.param({"availableReplicas": 2, "observedReplicas": 2}, None, id="replicas alone say nothing"),
        pytest.param({}, None, id="no status yet"),
        pytest.param({"operational": "yes"}, None, id="malformed"),
    ],
)
def test_only_the_operational_field_of_a_workload_monitor_counts(status: dict[str, Any], expected: bool | None) -> None:
    assert is_operational(workload_monitor("db", **status)) is expected


def labels(kind: str, name: str = "") -> dict[str, str]:
    return {"apps.cozystack.io/application.kind": kind, "apps.cozystack.io/application.name": name}


@pytest.mark.parametrize(
    ("labels", "expected"),
    [
        pytest.param({}, ("True", ""), id="without labels"),
        pytest.param(labels("Tenant", "alpha"), ("True", "alpha"), id="of a tenant"),
        pytest.param(labels("Postgres", "db"), None, id="of another application"),
    ],
)
def test_workload_monitors_of_other_kinds_say_nothing_about_a_tenant(
    labels: dict[str, str], expected: tuple[str, str] | None
) -> None:
    monitor = workload_monitor("db", operational=True)
    monitor["metadata"]["labels"] = labels
    assert project_monitor(monitor) == expected


@virtual
async def test_only_monitors_of_the_tenant_itself_make_its_workloads_not_ready() -> None:
    world = World()
    async with world.running():
        await world.create("alpha")
        for name, of in (("db", labels("Postgres", "db")), ("child", labels("Tenant", "child"))):
            monitor = workload_monitor(name, operational=False)
            monitor["metadata"]["labels"] = of
            world.cluster.add(WORKLOADMONITORS, monitor)
        await world.settle()
        assert "WorkloadsReady" not in world.conditions("alpha")
        await world.edit(WORKLOADMONITORS, "tenant-alpha", "db", {"metadata": {"labels": labels("Tenant", "alpha")}})
    assert world.conditions("alpha")["WorkloadsReady"] == ("False", "WorkloadsNotOperational")


@virtual
async def test_workload_monitors_determine_the_condition_workloadsready() -> None:
    world = World()
    async with world.running():
        await world.create("alpha")
        await world.settle()
        assert "WorkloadsReady" not in world.conditions("alpha")
        world.cluster.add(WORKLOADMONITORS, workload_monitor("db"))
        await world.settle()
        assert world.conditions("alpha")["WorkloadsReady"] == ("Unknown", "Pending")
        too_few = {"operational": False, "availableReplicas": 0, "observedReplicas": 2}
        await world.edit(WORKLOADMONITORS, "tenant-alpha", "db", {"status": too_few})
        await world.settle()
        assert world.conditions("alpha")["WorkloadsReady"] == ("False", "WorkloadsNotOperational")
        assert world.conditions("alpha")["Ready"] == ("True", "Reconciled")
        await world.edit(WORKLOADMONITORS, "tenant-alpha", "db", {"status": {"operational": True}})
        await world.settle()
        assert world.conditions("alpha")["WorkloadsReady"] == ("True", "WorkloadsOperational")
        await world.cluster.delete(WORKLOADMONITORS, "tenant-alpha", "db")
    assert "WorkloadsReady" not in world.conditions("alpha")


def conditions(**statuses: str) -> list[Object]:
    return [{"type": type_, "status": status, "reason": f"{type_}Is{status}"} for type_, status in statuses.items()]


@virtual
async def test_a_listener_affects_the_tenant_of_its_hostname_and_the_gateway_affects_all_heirs() -> None:
    world = World()
    async with world.running():
        await world.create("alpha", gateway=True)
        await world.create("beta", "tenant-alpha")
        await world.create("gamma", "tenant-alpha")
        await world.create("own", "tenant-alpha", gateway=True)
        await world.settle()
        assert world.conditions("beta", "tenant-alpha")["GatewayReady"] == ("Unknown", "Pending")
        gateway = {"metadata": {"name": "cozystack", "namespace": "tenant-alpha"}}
        world.cluster.add(GATEWAYS, {**gateway, "status": {"conditions": conditions(Accepted="True")}})
        await world.settle()
        for name in ("beta", "gamma"):
            assert world.conditions(name, "tenant-alpha")["GatewayReady"] == ("True", "Reconciled")
        assert world.conditions("own", "tenant-alpha")["GatewayReady"] == ("Unknown", "Pending")
        world.cluster.clear_writes()
        listeners = [
            {"name": "https-x", "hostname": "x.beta.alpha.example.org", "ready": False, "reason": "Pending"},
            {"name": "https-y", "hostname": "y.alpha.example.org", "ready": True},
        ]
        status = {"conditions": conditions(Ready="True"), "listeners": listeners}
        await world.edit(TENANTGATEWAYS, "tenant-alpha", "cozystack", {"status": status})
        await world.settle()
        assert sorted(world.writes()[1:]) == [
            ("patch", "helmreleases", "tenant-alpha"),
            ("patch", "helmreleases", "tenant-beta"),
        ]
        assert world.conditions("alpha")["GatewayReady"] == ("True", "Reconciled")
        assert world.conditions("beta", "tenant-alpha")["GatewayReady"] == ("False", "ListenersNotReady")
        assert world.conditions("gamma", "tenant-alpha")["GatewayReady"] == ("True", "Reconciled")
        await world.edit(
            GATEWAYS, "tenant-alpha", "cozystack", {"status": {"conditions": conditions(Accepted="False")}}
        )
        await world.settle()
        assert world.conditions("gamma", "tenant-alpha")["GatewayReady"] == ("False", "GatewayNotAccepted")
        assert world.conditions("gamma", "tenant-alpha")["Ready"] == ("True", "Reconciled")


@virtual
async def test_transition_times_change_with_the_status_and_the_generation_with_the_spec() -> None:
    world = World()
    async with world.running():
        await world.create("alpha")
        await world.settle()
        before = _condition(world, "NamespaceReady")
        world.now = world.now.replace(year=2027)
        await world.change("alpha", host="new.example")
        await world.settle()
        after = _condition(world, "NamespaceReady")
        assert (before["observedGeneration"], after["observedGeneration"]) == (1, 2)
        assert before["lastTransitionTime"] == after["lastTransitionTime"]


def _condition(world: World, type_: str) -> Object:
    [one] = [each for each in world.tenant("alpha")["status"]["conditions"] if each["type"] == type_]
    return dict(one)


@virtual
async def test_a_new_problem_is_reported_in_one_event() -> None:
    world = World()
    async with world.running():
        await world.create("alpha", host="x.example")
        await world.settle()
        assert world.events.of("alpha") == [("Normal", "Reconciled")]
        await world.create("bob", host="x.example")
        await world.settle()
        await world.reconcile_all()
        assert world.events.of("alpha")[1:] == [("Warning", "HostConflict")]
        await world.change("bob", host="y.example")
    assert world.events.of("alpha")[2:] == [("Normal", "Reconciled")]
    successor = World(world.cluster)
    async with successor.running():
        pass
    assert successor.events.all == []
