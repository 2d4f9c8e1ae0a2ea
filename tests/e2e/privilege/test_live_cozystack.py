"""Onto a live Cozystack and off again, as docs/live-cozystack.md has it."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import pytest

from tests.e2e.support.client_load import ClientLoad
from tests.e2e.support.clusters.audit_log import OPERATOR, SHADOW, verbs_of
from tests.e2e.support.clusters.cluster import CORE_GROUP_VERSION, GROUP_VERSION, ROOT, tenants_path
from tests.e2e.support.clusters.peer import NAME, PROGRAM, LiveCluster, program
from tests.e2e.support.clusters.processes import REPOSITORY, free_port, run_command, wait_until
from tests.e2e.support.http.https_client import Client
from tests.server_fixtures import prepared_kube_cluster

OURS = "tenant-apiserver"
RELEASES = "/apis/helm.toolkit.fluxcd.io/v2/helmreleases"
DEPLOYMENT = "/apis/apps/v1/namespaces/cozy-system/deployments/tenant-apiserver"
FINALIZER = "apps.cozystack.io/tenant"


@pytest.fixture(scope="module", params=["stand-in", "real"])
def live(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiveCluster]:
    real = request.param == "real"
    if real and program() is None:
        pytest.skip(f"no cozystack-api: build it with `go build ./cmd/cozystack-api`, and set {PROGRAM} to its path")
    # the peer's own watches fail beside old versions of etcd, unless they come from etcd itself
    flags = {"--watch-cache": "false"} if real else {}
    directory = tmp_path_factory.mktemp(request.param)
    running = LiveCluster(prepared_kube_cluster(directory, tmp_path_factory, more_flags=flags), real=real)
    yield running
    running.stop()


def releases(live: LiveCluster) -> dict[str, Any]:
    """The fields that Flux acts on, by name."""
    found = live.client.get(RELEASES).expect(200)["items"]
    return {each["metadata"]["name"]: (each["metadata"]["generation"], each["spec"]) for each in found}


def create(live: LiveCluster, name: str) -> None:
    body = {
        "apiVersion": "apps.cozystack.io/v1alpha1",
        "kind": "Tenant",
        "metadata": {"name": name, "namespace": ROOT},
        "spec": {"host": f"{name}.example.org"},
    }
    live.client.request_with_retries("POST", tenants_path(ROOT), body).expect(201)


def groups_of(live: LiveCluster) -> list[str]:
    """The real peer has kinds in its other groups that this version does not serve."""
    return [] if live.groups == ("apps", "core") else ["--groups=apps.cozystack.io"]


def test_preflight_says_who_serves_the_groups_and_writes_nothing(live: LiveCluster) -> None:
    status, printed = live.command("preflight", *groups_of(live))
    assert status == 0, printed
    assert "cozy-system/cozystack-api, available" in printed
    status, printed = live.command("preflight", "--for=register")
    assert status == 1
    assert "FAIL  v1alpha1.apps.cozystack.io" in printed
    verbs = {verb for verb, _ in verbs_of(live.kube.audit_log, OPERATOR)}
    assert {"get", "list"} <= verbs


def test_a_shadow_answers_as_the_peer_does_and_writes_nothing(live: LiveCluster) -> None:
    create(live, "shadowed")
    live.kube.kubectl("apply", "--server-side", "-k", str(REPOSITORY / "manifests" / "overlays" / "shadow"))
    account = live.kube.account_of("tenant-apiserver-shadow")
    port, directory = free_port(), live.kube.directory
    shadow = run_command(
        "serve",
        "--shadow",
        f"--kubeconfig={account.kubeconfig}",
        "--bind-address=127.0.0.1",
        f"--secure-port={port}",
        f"--cert-dir={directory / 'shadow'}",
        log=directory / "shadow.log",
    )
    try:
        ca = directory / "shadow" / "ca.crt"
        wait_until("the shadow has a certificate", ca.is_file, seconds=120, processes=[shadow])
        client = live.kube.client_at(port, ca)
        wait_until("the shadow is ready", lambda: client.serves("/readyz"), seconds=120, processes=[shadow])
        names = {each["metadata"]["name"] for each in client.get(tenants_path()).expect(200)["items"]}
        peers = {each["metadata"]["name"] for each in live.client.get(tenants_path()).expect(200)["items"]}
        assert names == peers >= {"shadowed"}
        for method, path in (("POST", tenants_path(ROOT)), ("DELETE", tenants_path(ROOT, "shadowed"))):
            refused = client.request(method, path, {}, query={"dryRun": "All"})
            assert "only reads" in refused.expect(405)["message"]
        _check_nobody_gets_secrets(live, client)
    finally:
        assert shadow.stop() == 0
    reviews = {("create", "tokenreviews"), ("create", "subjectaccessreviews")}
    used = verbs_of(live.kube.audit_log, SHADOW)
    assert "helmreleases" in {resource for _, resource in used}
    assert {each for each in used if each[0] not in ("get", "list", "watch")} <= reviews


def _check_nobody_gets_secrets(live: LiveCluster, client: Client) -> None:
    """An account without the component `tenantsecrets` may not read what TenantSecrets are made from. Lists must not
    fail, as Kubernetes would delete no namespace."""
    metadata = {"name": "shadowed", "labels": {"internal.cozystack.io/tenantresource": "true"}}
    stored = f"/api/v1/namespaces/{ROOT}/secrets"
    live.kube.client().request("POST", stored, {"metadata": metadata}).expect(201)
    path = f"{CORE_GROUP_VERSION}/namespaces/{ROOT}/tenantsecrets"
    listed = client.get(path)
    assert listed.expect(200)["items"] == []
    assert any("may not read what tenantsecrets are made from" in each for each in listed.warnings), listed.warnings
    assert client.get(f"{path}/shadowed").status == 503
    assert "tenantsecrets: " in client.get("/readyz", query={"verbose": ""}).content.decode()
    live.kube.client().request("DELETE", f"{stored}/shadowed").expect(200)


def test_the_move_there_and_back_under_load_and_off_again(live: LiveCluster) -> None:
    for number in range(5):
        create(live, f"still{number}")
    wait_until("our controllers have seen the Tenants", lambda: _finalized(live), seconds=120)
    before, registered = releases(live), live.api_services()
    load = ClientLoad(live.client, "moving")
    with load.running():
        time.sleep(2)
        assert live.served_by() == NAME
        status, printed = live.command("replace", *groups_of(live))
        assert status == 0, printed
        assert live.served_by() == OURS
        created = len(load.acknowledged)
        wait_until("clients write through our server", lambda: len(load.acknowledged) > created + 3, seconds=60)
        status, printed = live.command("back")
        assert status == 0, printed
        assert live.served_by() == NAME
        created = len(load.acknowledged)
        wait_until("clients write through the peer again", lambda: len(load.acknowledged) > created + 3, seconds=60)
        wait_until("the watch has shown all", lambda: load.seen >= set(load.acknowledged[:created]), seconds=60)
    assert live.api_services() == registered
    after = releases(live)
    assert {name: after[name] for name in before} == before
    _check_nothing_is_lost(live, load)
    print(load.summary())
    _uninstall(live)


def _finalized(live: LiveCluster) -> int:
    found = live.client.get(RELEASES).expect(200)["items"]
    ours = [each for each in found if each["metadata"]["name"].startswith("tenant-still")]
    return len(ours) if all(FINALIZER in each["metadata"].get("finalizers", ()) for each in ours) else 0


def _check_nothing_is_lost(live: LiveCluster, load: ClientLoad) -> None:
    stored = {each["metadata"]["name"]: each for each in live.client.get(tenants_path()).expect(200)["items"]}
    assert set(load.acknowledged) <= set(stored)
    lost = [name for name in load.patched if stored[name]["spec"].get("resourceQuotas") != {"cpu": "1"}]
    assert lost == []


def _uninstall(live: LiveCluster) -> None:
    """With the peer back, our server goes, and its Tenants are all there."""
    tenants = {each["metadata"]["name"] for each in live.client.get(tenants_path()).expect(200)["items"]}
    before = releases(live)
    assert live.kube.server.stop() == 0
    status, printed = live.command("uninstall")
    assert status == 0, printed
    assert "stay, as they are of others" not in printed
    found = live.client.get(RELEASES).expect(200)["items"]
    assert [each["metadata"]["name"] for each in found if FINALIZER in each["metadata"].get("finalizers", ())] == []
    assert releases(live) == before
    assert {each["metadata"]["name"] for each in live.client.get(tenants_path()).expect(200)["items"]} == tenants
    assert live.client.get(DEPLOYMENT).status == 404
    for path in ("namespaces/cozy-system", f"namespaces/{ROOT}", "namespaces/tenant-still0"):
        assert live.client.get(f"/api/v1/{path}").status == 200
    assert live.client.get(f"{GROUP_VERSION}/tenants").status == 200
    crd = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/tenantgateways.gateway.cozystack.io"
    assert live.client.get(crd).status == 200
    # once more, as after a kill
    assert live.command("uninstall")[0] == 0
