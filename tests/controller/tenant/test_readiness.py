"""Ready is True only if everything that the spec asks for is there. Time is virtual."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from apiserver.meta.resource import Key, Object
from controller.runtime.conditions import Finding
from controller.tenant.observe import ObservedTenant
from controller.tenant.readiness.parts import PARTS, ready_finding, with_part_conditions
from controller.tenant.readiness.release_ready_step import release_finding, wanted_of_release
from controller.tenant.readiness.unanswered import Unanswered
from registry.cluster.interface import HELMRELEASES
from registry.tenant.tree import EffectiveGateway
from tests.controller.tenant.tenant_world import World
from tests.kstatus import kstatus
from tests.tenant_objects import release, tenant_summary
from tests.virtual_time import virtual

NAMESPACE = Finding("NamespaceReady", "True", "Reconciled")
NO_NAMESPACE = Finding("NamespaceReady", "False", "ParentNotFound", "no parent")
REFUSED = Finding("QuotaReady", "False", "Refused", "the cluster rejected the quota")
GATEWAY_WAITS = Finding("GatewayReady", "Unknown", "Pending", "waits")
GATEWAY_FAILS = Finding("GatewayReady", "False", "GatewayNotAccepted", "no controller")
TERMINATING = Finding("Terminating", "True", "NamespaceRemains", "waits for the namespace")
NOT_ISOLATED = Finding("IsolationReady", "False", "ClusterNetworksUnknown", "set isolation.clusterCIDRs")
OPEN_ON_PURPOSE = Finding("IsolationReady", "False", "TurnedOff", "tenants.isolation is off")
LEFT_TO_CHART = Finding("IsolationReady", "False", "LeftToChart", "the chart isolates the namespace")
MISSING = Finding("TenantGatewayMissing", "True", "NoApex", "no domain")
ALL = [part.condition for part in PARTS]


def observed(**spec: Any) -> ObservedTenant:
    return ObservedTenant(
        tenant=tenant_summary("alpha", spec=spec),
        release=release("alpha"),
        ancestors=(),
        host=None,
        gateway=EffectiveGateway(value=True, namespace="tenant-root"),
        shares_host=False,
        shares_namespace=False,
        namespace=None,
        parent_namespace=None,
    )


@pytest.mark.parametrize(
    ("spec", "findings", "expected"),
    [
        pytest.param({}, [NAMESPACE], ("True", "Reconciled"), id="nothing more is asked for"),
        pytest.param({}, [NO_NAMESPACE], ("False", "ParentNotFound"), id="no namespace"),
        pytest.param({}, [NAMESPACE, GATEWAY_FAILS], ("True", "Reconciled"), id="an inherited Gateway fails"),
        pytest.param({"gateway": True}, [NAMESPACE, GATEWAY_WAITS], ("Unknown", "Pending"), id="its own is pending"),
        pytest.param(
            {"gateway": True}, [NAMESPACE, GATEWAY_FAILS], ("False", "GatewayNotAccepted"), id="its own fails"
        ),
        pytest.param(
            {"gateway": True}, [NAMESPACE, GATEWAY_WAITS, REFUSED], ("False", "Refused"), id="False beats Unknown"
        ),
        pytest.param({}, [NAMESPACE, REFUSED], ("False", "Refused"), id="what the cluster rejects always counts"),
        pytest.param(
            {"resourceQuotas": {"cpu": "1"}},
            [NAMESPACE, Finding("QuotaReady", "False", "InvalidQuantity")],
            ("False", "InvalidQuantity"),
            id="a quota is not in force",
        ),
        pytest.param(
            {"resourceQuotas": {"cpu": "1"}},
            [NAMESPACE, Finding("QuotaReady", "False", "NotEnforced")],
            ("True", "Reconciled"),
            id="a cluster without enforcement of quotas",
        ),
        pytest.param(
            {}, [NAMESPACE, Finding("ValuesReady", "False", "Malformed")], ("False", "Malformed"), id="values"
        ),
        pytest.param(
            {},
            [NAMESPACE, Finding("WorkloadsReady", "False", "X")],
            ("True", "Reconciled"),
            id="workloads do not count",
        ),
        pytest.param(
            {}, [NAMESPACE, Finding("HostConflict", "True", "X")], ("True", "Reconciled"), id="a host is inherited"
        ),
        pytest.param(
            {"host": "a.example"},
            [NAMESPACE, Finding("HostConflict", "True", "X")],
            ("False", "HostConflict"),
            id="its own host is taken",
        ),
        pytest.param(
            {"schedulingClass": "not a label"},
            [NAMESPACE, Finding("SchedulingClassInvalid", "True", "X")],
            ("False", "SchedulingClassInvalid"),
            id="its own scheduling class is none",
        ),
        pytest.param({}, [NAMESPACE, NOT_ISOLATED], ("False", "ClusterNetworksUnknown"), id="not isolated"),
        pytest.param({}, [NAMESPACE, OPEN_ON_PURPOSE], ("True", "Reconciled"), id="open on purpose"),
        pytest.param({}, [NAMESPACE, LEFT_TO_CHART], ("True", "Reconciled"), id="isolation is the chart's"),
        pytest.param({"gateway": True}, [TERMINATING], ("False", "Terminating"), id="being deleted"),
    ],
)
def test_ready_is_true_only_if_every_part_is_that_was_asked_for(
    spec: dict[str, Any], findings: Sequence[Finding], expected: tuple[str, str]
) -> None:
    found = ready_finding(observed(**spec), findings)
    assert (found.status, found.reason) == expected


@pytest.mark.parametrize(
    ("findings", "expected"),
    [
        pytest.param(
            [GATEWAY_FAILS, NAMESPACE, REFUSED],
            Finding("Ready", "False", "GatewayNotAccepted", "no controller; the cluster rejected the quota"),
            id="two fail",
        ),
        pytest.param(
            [GATEWAY_WAITS, NAMESPACE, REFUSED],
            Finding("Ready", "False", "Refused", "the cluster rejected the quota; waits"),
            id="one fails, and another one is not known yet",
        ),
    ],
)
def test_the_message_of_ready_names_all_that_is_not_ready(findings: Sequence[Finding], expected: Finding) -> None:
    assert ready_finding(observed(gateway=True), findings) == expected


@pytest.mark.parametrize(
    ("spec", "findings", "ran", "expected"),
    [
        pytest.param({}, [NAMESPACE], ALL, {"AccessReady": "True"}, id="a bare tenant"),
        pytest.param(
            {"resourceQuotas": {"cpu": 1}},
            [NAMESPACE],
            ALL,
            {"AccessReady": "True", "QuotaReady": "True"},
            id="a quota",
        ),
        pytest.param(
            {"resourceQuotas": {"cpu": 1}},
            [NO_NAMESPACE],
            ["NamespaceReady"],
            {"AccessReady": "Unknown", "QuotaReady": "Unknown"},
            id="the steps have not run",
        ),
        pytest.param(
            {"gateway": True},
            [NAMESPACE, GATEWAY_WAITS, MISSING],
            ALL,
            {"AccessReady": "True", "GatewayReady": "False"},
            id="no TenantGateway can be created",
        ),
    ],
)
def test_each_part_that_is_asked_for_has_a_condition(
    spec: dict[str, Any], findings: Sequence[Finding], ran: Sequence[str], expected: dict[str, str]
) -> None:
    found = {each.type: each.status for each in with_part_conditions(observed(**spec), findings, ran)}
    given = {each.type: each.status for each in findings}
    assert found == {**given, **expected}


@pytest.mark.parametrize(
    ("flags", "chart", "expected"),
    [
        pytest.param({}, "none", [], id="nothing"),
        pytest.param({}, "flux", ["the chart of the tenant"], id="Flux installs a chart for each tenant"),
        pytest.param({"monitoring": True, "etcd": True}, "none", ["etcd", "monitoring"], id="flags"),
        pytest.param({"computeplane": True}, "flux", ["computeplane"], id="flags with a chart"),
    ],
)
def test_the_release_is_wanted_for_flags_or_for_the_chart(flags: Object, chart: Any, expected: list[str]) -> None:
    assert wanted_of_release(tenant_summary("alpha", spec=flags), chart) == expected


def test_the_message_about_a_release_says_what_to_do() -> None:
    found = release_finding(["etcd", "monitoring"], release("alpha"), overdue=True)
    assert found.message == (
        "nobody installs etcd, monitoring: no controller has looked at HelmRelease tenant-root/tenant-alpha for 60 s; "
        "install Flux's helm-controller and the charts of Cozystack, or set spec.etcd and spec.monitoring to false"
    )
    suspended = release("alpha")
    suspended["spec"]["suspend"] = True
    found = release_finding(["the chart of the tenant"], suspended, overdue=False)
    assert (found.status, found.reason) == ("False", "NoController")
    assert found.message == (
        "nobody installs the chart of the tenant: HelmRelease tenant-root/tenant-alpha is suspended; resume it where "
        "Flux and the charts of Cozystack are"
    )


def test_tenants_wait_from_the_first_look_at_a_version() -> None:
    time = 0.0
    waits = Unanswered(clock=lambda: time)
    alpha, beta = Key("tenant-root", "alpha"), Key("tenant-root", "beta")
    assert waits.seconds(alpha, ("u", 1)) == 0
    time = 50
    assert (waits.seconds(alpha, ("u", 1)), waits.seconds(beta, ("v", 1))) == (50, 0)
    assert waits.seconds(alpha, ("u", 2)) == 0
    waits.forget(beta)
    assert waits.seconds(beta, ("v", 1)) == 0
    time = 500
    waits.seconds(beta, ("v", 2))
    assert len(waits._since) == 1, "a tenant that was deleted while it waited is dropped"


@virtual
async def test_a_flag_that_nobody_serves_is_told_after_a_minute_with_one_write() -> None:
    world = World()
    async with world.running():
        await world.create("alpha", monitoring=True)
        await world.settle(50)
        assert world.conditions("alpha")["ReleaseReady"] == ("Unknown", "Pending")
        assert world.conditions("alpha")["Ready"] == ("Unknown", "Pending")
        assert world.events.of("alpha") == []
        world.cluster.clear_writes()
        await world.settle(300)
        assert world.conditions("alpha")["ReleaseReady"] == ("False", "NoController")
        assert world.conditions("alpha")["Ready"] == ("False", "NoController")
        assert world.events.of("alpha") == [("Warning", "NoController")]
        assert world.writes() == [("patch", "helmreleases", "tenant-alpha")]
        await world.change("alpha", monitoring=False)
        await world.settle()
        assert "ReleaseReady" not in world.conditions("alpha")
        assert world.conditions("alpha")["Ready"] == ("True", "Reconciled")


@virtual
async def test_a_new_leader_knows_that_nobody_serves_a_flag() -> None:
    world = World()
    async with world.running():
        await world.create("alpha", etcd=True)
        await world.settle(100)
    successor = World(world.cluster)
    world.cluster.clear_writes()
    async with successor.running():
        await successor.settle(100)
    assert successor.writes() == []
    assert successor.conditions("alpha")["Ready"] == ("False", "NoController")


async def report(world: World, *conditions: Object) -> None:
    """Flux writes the status of HelmRelease tenant-alpha."""
    found = world.cluster.peek(HELMRELEASES, "tenant-root", "tenant-alpha")
    assert found is not None
    generation = found["metadata"].get("generation", 1)
    found["status"] = {"conditions": [{**each, "observedGeneration": generation} for each in conditions]}
    await world.cluster.update(HELMRELEASES, found, subresource="status")


def flux_ready(status: str, reason: str) -> Object:
    return {"type": "Ready", "status": status, "reason": reason, "lastTransitionTime": "2026-01-05T00:00:00Z"}


@virtual
async def test_reports_of_flux_show_at_once_and_cost_no_write() -> None:
    world = World(settings={"tenants": {"chart": "flux"}})
    async with world.running():
        await world.create("alpha")
        await world.settle(10)
        world.cluster.clear_writes()
        for status, reason in (("Unknown", "Progressing"), ("True", "InstallSucceeded"), ("False", "UpgradeFailed")):
            await report(world, flux_ready(status, reason))
            expected = (status, reason) if status != "True" else ("True", "Reconciled")
            assert world.conditions("alpha")["Ready"] == expected
            await world.settle(100)
            assert world.conditions("alpha")["Ready"] == expected
        # three times Flux
        assert [each for each in world.writes() if each[2] == "tenant-alpha"] == [
            ("update", "helmreleases", "tenant-alpha")
        ] * 3


@virtual
async def test_a_controller_that_comes_late_is_shown() -> None:
    world = World()
    async with world.running():
        await world.create("alpha", etcd=True)
        await world.settle(100)
        assert world.conditions("alpha")["Ready"] == ("False", "NoController")
        await report(world, flux_ready("True", "InstallSucceeded"))
        assert world.conditions("alpha")["Ready"] == ("True", "Reconciled")
        await world.settle()
        assert world.conditions("alpha")["ReleaseReady"] == ("True", "InstallSucceeded")


@virtual
async def test_a_suspended_release_has_no_controller_at_once() -> None:
    world = World(settings={"tenants": {"chart": "flux"}})
    async with world.running():
        await world.create("alpha")
        await report(world, flux_ready("True", "InstallSucceeded"))
        await world.settle(5)
        assert world.conditions("alpha")["Ready"] == ("True", "Reconciled")
        await world.edit(HELMRELEASES, "tenant-root", "tenant-alpha", {"spec": {"suspend": True}})
        await world.settle(5)
        assert world.conditions("alpha")["Ready"] == ("False", "NoController")
        await world.edit(HELMRELEASES, "tenant-root", "tenant-alpha", {"spec": {"suspend": None}})
        await world.settle(5)
        assert world.conditions("alpha")["Ready"] == ("Unknown", "Pending")


@virtual
async def test_a_tenant_is_never_current_before_its_generation_was_looked_at() -> None:
    world = World()
    async with world.running():
        await world.create("alpha")
        assert kstatus(world.tenant("alpha")) == "InProgress"
        await world.settle(5)
        assert kstatus(world.tenant("alpha")) == "Current"
        await world.change("alpha", host="new.example")
        changed = world.tenant("alpha")
        assert kstatus(changed) == "InProgress"
        assert world.conditions("alpha")["Ready"] == ("Unknown", "Progressing")
        await world.settle(5)
        assert kstatus(world.tenant("alpha")) == "Current"
        assert world.tenant("alpha")["status"]["observedGeneration"] == changed["metadata"]["generation"]


@virtual
async def test_a_tenant_whose_own_gateway_is_pending_is_not_ready() -> None:
    world = World()
    async with world.running():
        await world.create("alpha", gateway=True)
        await world.create("beta", "tenant-alpha")
        await world.settle(5)
        assert world.conditions("alpha")["Ready"] == ("Unknown", "Pending")
        assert world.conditions("beta", "tenant-alpha")["Ready"] == ("True", "Reconciled")


@virtual
async def test_the_status_shows_each_service_with_its_provider() -> None:
    world = World()
    async with world.running():
        await world.create("alpha", etcd=True, computeplane=True)
        await world.create("beta", "tenant-alpha")
        await world.settle(5)
    root = dict.fromkeys(("etcd", "ingress", "monitoring", "seaweedfs"), "tenant-root")
    assert world.tenant("root")["status"]["services"] == root
    own = {**root, "etcd": "tenant-alpha"}
    assert world.tenant("alpha")["status"]["services"] == {**own, "computeplane": "tenant-alpha"}
    assert world.tenant("beta", "tenant-alpha")["status"]["services"] == own


def test_a_message_is_written_once_even_if_two_parts_say_it() -> None:
    both = [GATEWAY_FAILS, replace(REFUSED, message=GATEWAY_FAILS.message)]
    assert ready_finding(observed(gateway=True, resourceQuotas={"cpu": 1}), both).message == GATEWAY_FAILS.message
