"""A tenant is ready, for kubectl, Helm and Flux alike, only when everything that its spec asks for is there."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.e2e.support.clusters.cluster import KUBECTL_PATIENCE, PATIENCE, ROOT, E2eCluster, tenants_path
from tests.e2e.support.clusters.processes import wait_until
from tests.e2e.support.gateways import MERGE, Gateways
from tests.e2e.support.peer_lessons import next_event, watch
from tests.e2e.support.tenants import Object, Tenants, manifest
from tests.kstatus import kstatus

RELEASE = f"/apis/helm.toolkit.fluxcd.io/v2/namespaces/{ROOT}/helmreleases/tenant-{{}}"


def condition(tenant: Object, type_: str) -> tuple[str, str] | None:
    """(status, reason), None if there is no such condition."""
    found = [each for each in tenant["status"]["conditions"] if each["type"] == type_]
    return (found[0]["status"], found[0]["reason"]) if found else None


def flux_status(generation: int, status: str, reason: str) -> Object:
    ready = {
        "type": "Ready",
        "status": status,
        "reason": reason,
        "message": "of Flux",
        "lastTransitionTime": "2026-01-01T00:00:00Z",
        "observedGeneration": generation,
    }
    return {"status": {"conditions": [ready], "observedGeneration": generation}}


def test_the_answer_to_a_create_and_to_a_change_says_that_nobody_has_looked(
    cluster: E2eCluster, tenants: Tenants
) -> None:
    created = tenants.create()
    name = created["metadata"]["name"]
    assert created["status"]["observedGeneration"] == -1
    assert condition(created, "Ready") == ("Unknown", "Progressing")
    settled = tenants.wait_until_settled(name)
    assert (kstatus(created), kstatus(settled)) == ("InProgress", "Current")
    assert condition(settled, "Ready") == ("True", "Reconciled")
    assert condition(settled, "GatewayReady") is None
    changed = tenants.patch(name, {"spec": {"host": f"{name}.changed.example"}})
    assert (changed["metadata"]["generation"], changed["status"]["observedGeneration"]) == (2, 1)
    assert condition(changed, "Ready") == ("Unknown", "Progressing")
    assert kstatus(tenants.wait_until_settled(name)) == "Current"


def test_no_watch_event_shows_ready_with_an_older_generation(
    cluster: E2eCluster, tenants: Tenants, unique: str
) -> None:
    """Helm and Flux wait by watching: the first event that kstatus takes for current ends the wait."""
    body = manifest(tenants.new_name(), labels={"e2e": unique})
    version = cluster.client().get(tenants_path(ROOT)).expect(200)["metadata"]["resourceVersion"]
    with watch(cluster, resourceVersion=version, labelSelector=f"e2e={unique}") as frames:
        tenants.client.request("POST", tenants_path(ROOT), body).expect(201)
        for change in range(4):
            if change:
                tenants.patch(body["metadata"]["name"], {"spec": {"host": f"{unique}{change}.example"}})
            shown = next_event(frames, "ADDED", "MODIFIED")["object"]
            while shown["metadata"]["generation"] <= change or kstatus(shown) != "Current":
                shown = next_event(frames, "ADDED", "MODIFIED")["object"]
                status, generation = shown["status"], shown["metadata"]["generation"]
                is_ready = condition(shown, "Ready") == ("True", "Reconciled")
                assert not is_ready or status["observedGeneration"] == generation
            host = shown["spec"]["host"] or f"{body['metadata']['name']}.example.org"
            assert shown["status"]["host"]["value"] == host


def test_kubectl_waits_until_the_tenant_is_ready(cluster: E2eCluster, tenants: Tenants) -> None:
    name = tenants.create()["metadata"]["name"]
    cluster.kubectl("wait", f"tenant/{name}", "-n", ROOT, "--for=condition=Ready", KUBECTL_PATIENCE)
    assert cluster.client().get(f"/api/v1/namespaces/tenant-{name}").status == 200


def test_a_tenant_whose_gateway_is_not_programmed_is_not_ready(
    cluster: E2eCluster, tenants: Tenants, gateways: Gateways
) -> None:
    namespace = tenants.create_with_namespace(spec={"gateway": True})
    name = namespace.removeprefix("tenant-")
    tenants.wait("the Gateway is waited for", lambda: condition(tenants.get(name), "GatewayReady"))
    assert condition(tenants.get(name), "Ready") != ("True", "Reconciled")
    gateways.wait_until("the Gateway exists", lambda: gateways.listener_hostnames(namespace))
    gateways.mark_certificates_ready(namespace)
    gateways.mark_gateway_programmed(namespace)
    tenants.wait("the tenant is ready", lambda: condition(tenants.get(name), "Ready") == ("True", "Reconciled"))


def test_a_service_that_nobody_installs_is_admitted_with_a_warning(cluster: E2eCluster, tenants: Tenants) -> None:
    body = manifest(tenants.new_name(), spec={"monitoring": True})
    name = body["metadata"]["name"]
    answer = tenants.client.request("POST", tenants_path(ROOT), body)
    assert answer.status == 201
    [warning] = answer.warnings
    assert "spec.monitoring: no controller on this cluster is known to install this" in warning
    tenants.wait_until_settled(name)
    assert condition(tenants.get(name), "ReleaseReady") == ("Unknown", "Pending")
    assert condition(tenants.get(name), "Ready") == ("Unknown", "Pending")
    release = RELEASE.format(name)
    client = cluster.client()
    client.request("PATCH", release, {"spec": {"suspend": True}}, content_type=MERGE).expect(200)
    tenants.wait(
        "nobody installs a suspended release",
        lambda: condition(tenants.get(name), "Ready") == ("False", "NoController"),
    )
    resumed = client.request("PATCH", release, {"spec": {"suspend": False}}, content_type=MERGE).expect(200)
    report = flux_status(resumed["metadata"]["generation"], "True", "InstallSucceeded")
    client.request("PATCH", f"{release}/status", report, content_type=MERGE).expect(200)
    tenants.wait("what Flux reports is shown", lambda: kstatus(tenants.get(name)) == "Current")
    assert condition(tenants.get(name), "ReleaseReady") == ("True", "InstallSucceeded")
    answer = tenants.client.update(tenants_path(ROOT, name), lambda tenant: tenant)
    assert (answer.status, answer.warnings) == (200, [])


def test_the_wide_table_shows_providers_and_quota(cluster: E2eCluster, tenants: Tenants) -> None:
    name = tenants.create(spec={"etcd": True, "resourceQuotas": {"pods": "7", "limits.cpu": "2"}})["metadata"]["name"]
    tenants.wait_until_settled(name)

    def row(of: str) -> dict[str, Any]:
        shown = cluster.kubectl("get", "tenant", of, "-n", ROOT, "-o", "wide").stdout
        header, cells = (line.split() for line in shown.splitlines())
        # without a Gateway and a version, their cells are empty
        return dict(zip([each for each in header if each not in ("GATEWAY", "VERSION")], cells, strict=False))

    assert row(name)["SERVICES"] == (
        f"etcd=tenant-{name},monitoring=tenant-root,ingress=tenant-root,seaweedfs=tenant-root"
    )
    assert row(name)["QUOTA"] == "limits.cpu=2,pods=7"
    assert row("root")["SERVICES"].startswith("etcd=tenant-root,monitoring=tenant-root")


@pytest.fixture
def own_flags(tmp_path: Path, mode: str) -> list[str]:
    path = tmp_path / "platform.yaml"
    path.write_text(f"tenants: {{release: {mode}}}\n")
    return [f"--config={path}"]


@pytest.mark.parametrize(
    ("mode", "fields"),
    [
        pytest.param("suspended", {"maxHistory", "install", "upgrade", "valuesFrom"}, id="to be resumed later"),
        pytest.param("none", set(), id="storage only"),
    ],
)
def test_without_cozystack_flux_leaves_the_releases_of_tenants_alone(
    own_cluster: E2eCluster, mode: str, fields: set[str]
) -> None:
    """`mode` is that of the settings, as `own_flags` has them."""
    tenants, client = Tenants(own_cluster), own_cluster.client()
    plain, flagged = (tenants.create(spec=spec)["metadata"]["name"] for spec in ({}, {"etcd": True}))
    spec = client.get(RELEASE.format(plain)).expect(200)["spec"]
    assert spec["suspend"] is True
    assert fields <= spec.keys()
    assert fields or spec.keys() <= {"chartRef", "interval", "suspend", "values"}
    expected = {plain: ("True", "Reconciled"), flagged: ("False", "NoController")}

    def shown() -> dict[str, tuple[str, str] | None]:
        return {name: condition(tenants.get(name), "Ready") for name in expected}

    wait_until("both are looked at", lambda: shown() == expected, seconds=PATIENCE)
