"""Onto a live Cozystack and off again, as docs/live-cozystack.md has it."""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from apiserver.tls import certificates
from registry.application.kept_forms import NAME as KEPT_FORMS
from tests.e2e.support.client_load import POSTGRES, TENANTS, ClientLoad
from tests.e2e.support.clusters import cainjector, flux
from tests.e2e.support.clusters.audit_log import OPERATOR, SHADOW, verbs_of
from tests.e2e.support.clusters.cainjector import CaInjector
from tests.e2e.support.clusters.cluster import CORE_GROUP_VERSION, GROUP_VERSION, ROOT, tenants_path
from tests.e2e.support.clusters.peer import NAME, PROGRAM, LiveCluster, program
from tests.e2e.support.clusters.processes import REPOSITORY, free_port, run_command, wait_until
from tests.e2e.support.helm import run_helm
from tests.e2e.support.http.https_client import Client
from tests.server_fixtures import prepared_kube_cluster

OURS = "tenant-apiserver"
RELEASES = "/apis/helm.toolkit.fluxcd.io/v2/helmreleases"
DEPLOYMENT = "/apis/apps/v1/namespaces/cozy-system/deployments/tenant-apiserver"
FINALIZER = "apps.cozystack.io/tenant"
READ_BY_PREFLIGHT = (
    "apiservices",
    "applicationdefinitions",
    "clusterrolebindings",
    "clusterroles",
    "customresourcedefinitions",
    "deployments",
    "helmreleases",
    "namespaces",
    "poddisruptionbudgets",
    "rolebindings",
    "roles",
    "serviceaccounts",
    "services",
    "validatingadmissionpolicybindings",
)
"""All that it reads but for the ValidatingAdmissionPolicies."""


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


def _create_postgres(live: LiveCluster, name: str) -> None:
    """An application whose values no schema has, as well."""
    body = POSTGRES.object(name)
    body["spec"] |= {"external": True, "undocumented": {"empty": None}}
    collection = POSTGRES.path(name).removesuffix(f"/{name}")
    live.client.request_with_retries("POST", collection, body).expect(201)


def metadata(api_services: dict[str, Any]) -> dict[str, Any]:
    return {group: each["metadata"] for group, each in api_services.items()}


def succeeds(live: LiveCluster, command: str) -> None:
    status, printed = live.command(command)
    assert status == 0, printed


def test_preflight_says_who_serves_the_groups_and_writes_nothing(live: LiveCluster) -> None:
    status, printed = live.command("preflight")
    assert status == 0, printed
    assert "cozy-system/cozystack-api, available" in printed
    status, printed = live.command("preflight", "--for=register")
    assert status == 1
    assert "FAIL  v1alpha1.apps.cozystack.io" in printed
    verbs = {verb for verb, _ in verbs_of(live.kube.audit_log, OPERATOR)}
    assert {"get", "list"} <= verbs


def test_commands_of_somebody_without_rights_say_which_are_missing(live: LiveCluster) -> None:
    before = live.api_services(), releases(live)
    for command in ("preflight", "replace", "back", "uninstall"):
        status, printed = live.command(command, user="nobody", groups=())
        assert status == 2, printed
        assert 'User "nobody" cannot ' in printed
        assert "Traceback" not in printed
    assert (live.api_services(), releases(live)) == before
    # all that the page says of preflight, but for one kind
    role = {
        "metadata": {"name": "almost"},
        "rules": [{"apiGroups": ["*"], "resources": [*READ_BY_PREFLIGHT], "verbs": ["get", "list"]}],
    }
    rbac = "/apis/rbac.authorization.k8s.io/v1"
    live.client.request("POST", f"{rbac}/clusterroles", role).expect(201)
    binding = {
        "metadata": {"name": "almost"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "almost"},
        "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "almost"}],
    }
    live.client.request("POST", f"{rbac}/clusterrolebindings", binding).expect(201)
    status, printed = live.command("preflight", user="almost", groups=())
    unknown = [line for line in printed.splitlines() if line.startswith("  UNKN")]
    assert status == 2, printed
    assert unknown
    assert [line for line in unknown if 'cannot get resource "validatingadmissionpolicies"' not in line] == []


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
        assert f"serve --shadow listens on https://127.0.0.1:{port}, controllers: none" in shadow.log()
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
    refused = "may not read what tenantsecrets are made from: the component tenantsecrets gives the right"
    assert any(refused in each for each in listed.warnings), listed.warnings
    assert client.get(f"{path}/shadowed").status == 503
    assert "tenantsecrets: " in client.get("/readyz", query={"verbose": ""}).content.decode()
    live.kube.client().request("DELETE", f"{stored}/shadowed").expect(200)


@pytest.mark.skipif(
    cainjector.program() is None,
    reason=f"no cainjector: build it with `go build .` in cert-manager's cmd/cainjector, and set {cainjector.PROGRAM}",
)
def test_cert_managers_cainjector_writes_the_ca_of_each_server_only_for_that_server(live: LiveCluster) -> None:
    """The annotation of cozystack-api's chart names its Certificate; ours has a CA that cert-manager does not know."""
    injector, renewed = CaInjector(live.kube, NAME), certificates.make_ca("renewed").certificate + live.ca
    with injector.running(live.ca):
        registered = live.api_services()
        succeeds(live, "replace")
        moved = live.api_services()
        # the renewal is an event for every object that names the Certificate
        injector.issue(renewed)
        assert live.api_services() == moved
        assert not live.has_ca(live.ca)
        assert live.client.get(f"{GROUP_VERSION}/tenants").status == 200
        succeeds(live, "back")
        wait_until("the peer has its renewed CA", lambda: live.has_ca(renewed), seconds=120)
        assert live.client.get(f"{GROUP_VERSION}/tenants").status == 200
        assert metadata(live.api_services()) == metadata(registered)


@pytest.mark.skipif(flux.program() is None, reason=f"no helm-controller of Flux: set {flux.PROGRAM} to its program")
def test_flux_reconciles_nothing_because_of_the_move(live: LiveCluster) -> None:
    """Not even the status of a HelmRelease is written, except where a caller changes a Tenant."""
    live.restart_ours("--controllers=none")
    names = [f"tenant-flux{number}" for number in range(3)]
    for name in names:
        create(live, name.removeprefix("tenant-"))
    with flux.running(live.kube) as controller:
        installed = flux.wait_until_installed(live.kube, controller, names)
        succeeds(live, "replace")
        _change_host(live, "flux0")
        moved = flux.wait_until_installed(live.kube, controller, names)
        succeeds(live, "back")
        _change_host(live, "flux1")
        back = flux.wait_until_installed(live.kube, controller, names)
    assert [len(each["status"]["history"]) for each in back.values()] == [2, 2, 1]
    assert moved["tenant-flux1"] == installed["tenant-flux1"]
    assert back["tenant-flux0"] == moved["tenant-flux0"]
    assert back["tenant-flux2"] == installed["tenant-flux2"]


def _change_host(live: LiveCluster, name: str) -> None:
    change = {"spec": {"host": f"changed-{name}.example.org"}}
    path, merge_patch = tenants_path(ROOT, name), "application/merge-patch+json"

    def is_changed() -> bool:
        """The peer finds a Tenant late that was created or changed just now."""
        return live.client.request("PATCH", path, change, content_type=merge_patch).status == 200

    wait_until("the Tenant is changed", is_changed, seconds=60)


Upgrade = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def upgrade(live: LiveCluster, tmp_path: Path) -> Iterator[Upgrade]:
    """Upgrades the release of cozystack-api's chart with more flags of Helm 4. The registration in the chart has not
    changed, except for the fields that are named."""
    chart, release = live.write_chart(tmp_path), (NAME, "--namespace=cozy-system")
    # helm/helm#31510: with server-side apply, Helm 4.0 takes over nothing
    installed = run_helm(live.kube, tmp_path, "install", *release, chart, "--server-side=false")
    assert installed.returncode == 0, installed.stderr

    def upgraded(flags: str, **changes: Any) -> subprocess.CompletedProcess[str]:
        live.write_chart(tmp_path, changes)
        return run_helm(live.kube, tmp_path, "upgrade", *release, chart, *flags.split())

    yield upgraded
    live.command("back")
    # Helm forgets the release, and its objects stay
    live.client.request("DELETE", "/api/v1/namespaces/cozy-system/secrets", query={"labelSelector": "owner=helm"})


def test_an_upgrade_of_the_peers_chart_that_is_merged_leaves_the_groups_with_us(
    live: LiveCluster, upgrade: Upgrade
) -> None:
    """As Helm 3 does: it sends what differs between the two versions of the chart, and nothing differs there."""
    registered = live.api_services()
    succeeds(live, "replace")
    moved = live.api_services()
    done = upgrade("--server-side=false")
    assert done.returncode == 0, done.stderr
    assert live.api_services() == moved
    succeeds(live, "back")
    assert live.api_services() == registered


def test_an_upgrade_that_is_merged_writes_only_what_the_peers_chart_has_changed(
    live: LiveCluster, upgrade: Upgrade
) -> None:
    """A priority is kept, also by `back`. At a port that our Service does not have, nobody answers until `replace`."""
    registered = live.api_services()
    succeeds(live, "replace")
    moved = live.api_services()
    _merge(live, upgrade, groupPriorityMinimum=1100)
    assert live.api_services() == {group: _with_priority(each, 1100) for group, each in moved.items()}
    assert live.client.get(f"{GROUP_VERSION}/tenants").status == 200
    _merge(live, upgrade, service={"namespace": "cozy-system", "name": NAME, "port": free_port()})
    assert live.served_by() == OURS
    _, printed = live.command("preflight")
    assert "helm has written a port that our Service does not have" in printed, printed
    succeeds(live, "replace")
    assert {each["spec"]["service"]["port"] for each in live.api_services().values()} == {live.kube.port}
    assert live.client.get(f"{GROUP_VERSION}/tenants").status == 200
    _merge(live, upgrade, groupPriorityMinimum=1100)
    succeeds(live, "back")
    assert live.api_services() == {group: _with_priority(each, 1100) for group, each in registered.items()}
    assert live.client.get(f"{GROUP_VERSION}/tenants").status == 200
    _merge(live, upgrade)
    assert live.api_services() == registered


def _merge(live: LiveCluster, upgrade: Upgrade, **changes: Any) -> None:
    done = upgrade("--server-side=false", **changes)
    assert done.returncode == 0, done.stderr


def _with_priority(api_service: dict[str, Any], priority: int) -> dict[str, Any]:
    return {**api_service, "spec": {**api_service["spec"], "groupPriorityMinimum": priority}}


def test_an_upgrade_of_the_peers_chart_that_is_applied_is_refused_while_we_have_the_groups(
    live: LiveCluster, upgrade: Upgrade
) -> None:
    """As Helm 4 does without more flags. After the move back, it succeeds."""
    succeeds(live, "replace")
    moved = live.api_services()
    refused = upgrade("--server-side=true")
    assert refused.returncode != 0
    assert 'with "tenant-apiserver-operator"' in refused.stderr, refused.stderr
    assert live.api_services() == moved
    succeeds(live, "back")
    done = upgrade("--server-side=true")
    assert done.returncode == 0, done.stderr


def test_an_upgrade_that_is_forced_takes_the_groups_back_and_preflight_says_who_did_it(
    live: LiveCluster, upgrade: Upgrade
) -> None:
    registered = live.api_services()
    succeeds(live, "replace")
    done = upgrade("--server-side=true --force-conflicts")
    assert done.returncode == 0, done.stderr
    assert live.served_by() == NAME
    _, printed = live.command("preflight")
    assert "it was moved to us before, and helm has put it back" in printed, printed
    # once more, and back to the CA that the peer had at first: the chart names none
    succeeds(live, "replace")
    assert live.served_by() == OURS
    assert live.client.get(f"{GROUP_VERSION}/tenants").status == 200
    succeeds(live, "back")
    assert live.api_services() == registered
    assert live.client.get(f"{GROUP_VERSION}/tenants").status == 200


def test_after_the_move_tenants_are_ready_and_a_bad_definition_takes_no_kind_down(live: LiveCluster) -> None:
    """With our controllers off: Flux says whether a Tenant is ready, and the forms of kinds outlast a restart."""
    live.restart_ours("--controllers=none")
    create(live, "installed")
    path = "/apis/helm.toolkit.fluxcd.io/v2/namespaces/tenant-root/helmreleases/tenant-installed/status"
    time, merge_patch = "2026-01-01T00:00:00Z", "application/merge-patch+json"
    ready = {"type": "Ready", "status": "True", "reason": "InstallSucceeded", "message": "", "lastTransitionTime": time}
    said = {"status": {"conditions": [{**ready, "observedGeneration": 1}]}}
    live.client.request("PATCH", path, said, content_type=merge_patch).expect(200)
    succeeds(live, "replace")
    try:
        live.kube.kubectl("wait", "tenant/installed", f"--namespace={ROOT}", "--for=condition=Ready", "--timeout=60s")
        if live.real:
            _check_a_bad_definition(live)
    finally:
        succeeds(live, "back")


def _check_a_bad_definition(live: LiveCluster) -> None:
    definition, redises = "/apis/cozystack.io/v1alpha1/applicationdefinitions/redis", f"{GROUP_VERSION}/redises"
    merge_patch = "application/merge-patch+json"
    good = live.client.get(definition).expect(200)["spec"]["application"]["openAPISchema"]
    forms = f"/api/v1/namespaces/cozy-system/configmaps/{KEPT_FORMS}"
    wait_until("the forms are kept", lambda: "redis" in live.client.get(forms).json().get("binaryData", {}), seconds=60)

    def change(schema: str) -> None:
        body = {"spec": {"application": {"openAPISchema": schema}}}
        live.client.request("PATCH", definition, body, content_type=merge_patch).expect(200)

    def is_told() -> bool:
        events = live.client.get("/apis/events.k8s.io/v1/namespaces/default/events").expect(200)["items"]
        return "FormRefused" in {each["reason"] for each in events if each["regarding"].get("name") == "redis"}

    change("no JSON")
    try:
        wait_until("an Event tells of it", is_told, seconds=60)
        live.restart_ours("--controllers=none")
        wait_until("the kind is served", lambda: live.client.get(redises).status == 200, seconds=60)
    finally:
        change(good)


def test_the_move_there_and_back_under_load_and_off_again(live: LiveCluster) -> None:
    """With two kube-apiservers, each of which moves at its own moment."""
    live.restart_ours("--controllers=none")
    for number in range(5):
        create(live, f"still{number}")
        _create_postgres(live, f"still{number}")
    before, registered = releases(live), live.api_services()
    assert {f"{kind}-still0" for kind in ("tenant", "postgres")} < before.keys()
    clients = {"moving": live.client, "beside": live.kube.client_of_another_apiserver()}
    loads = [
        ClientLoad(client, prefix, kind, finds_late=live.real)
        for prefix, client in clients.items()
        for kind in (TENANTS, POSTGRES)
    ]
    with ExitStack() as running:
        for load in loads:
            running.enter_context(load.running())
        wait_until_written(loads)
        assert live.served_by() == NAME
        succeeds(live, "replace")
        assert live.served_by() == OURS
        wait_until_written(loads)
        succeeds(live, "back")
        assert live.served_by() == NAME
        for load, names in zip(loads, wait_until_written(loads), strict=True):
            wait_until("the watch has shown all", partial(load.seen.issuperset, names), seconds=60)
    _check_only_the_peer_finds_late(live)
    assert live.api_services() == registered
    after = releases(live)
    assert {name: after[name] for name in before} == before
    for load in loads:
        _check_nothing_is_lost(live, load)
        print(load.summary())
    _take_over(live)
    _uninstall(live)


def _check_only_the_peer_finds_late(live: LiveCluster) -> None:
    """Clients patch what they have just created: each 404 that they got is of the peer."""
    metrics = live.kube.direct_client().get("/metrics").content.decode().splitlines()
    patches = [each for each in metrics if each.startswith("apiserver_request_total{") and 'verb="PATCH"' in each]
    assert any('code="200"' in each for each in patches)
    assert [each for each in patches if 'code="404"' in each] == []


def wait_until_written(loads: Sequence[ClientLoad]) -> Sequence[set[str]]:
    """Waits until each client has created some more. Returns the names that were created before."""
    created = [set(load.acknowledged) for load in loads]

    def have_written() -> bool:
        return all(len(load.acknowledged) > len(names) + 3 for load, names in zip(loads, created, strict=True))

    wait_until("clients write", have_written, seconds=60)
    return created


def _take_over(live: LiveCluster) -> None:
    """Our controllers run instead of the peer's, by their flag, and no HelmRelease gets another spec by that."""
    before, chart = releases(live), {"meta.helm.sh/release-name": "tenant-still0"}
    namespaces = "/api/v1/namespaces"
    made = {"name": "tenant-still0", "annotations": chart, "labels": {"app.kubernetes.io/managed-by": "Helm"}}
    by_the_chart = live.client.request("POST", namespaces, {"metadata": made}).expect(201)["metadata"]
    succeeds(live, "replace")
    live.restart_ours()
    wait_until("our controllers have seen the Tenants", lambda: _finalized(live), seconds=120)
    assert releases(live) == before
    kept = live.client.get(f"{namespaces}/tenant-still0").expect(200)["metadata"]
    assert kept["uid"] == by_the_chart["uid"]
    succeeds(live, "back")


def _finalized(live: LiveCluster) -> int:
    found = live.client.get(RELEASES).expect(200)["items"]
    ours = [each for each in found if each["metadata"]["name"].startswith("tenant-still")]
    return len(ours) if all(FINALIZER in each["metadata"].get("finalizers", ()) for each in ours) else 0


def _check_nothing_is_lost(live: LiveCluster, load: ClientLoad) -> None:
    """Neither in the objects, nor in what Flux installs."""
    kind, patch = load.kind, load.kind.patch
    stored = {each["metadata"]["name"]: each for each in live.client.get(kind.path()).expect(200)["items"]}
    assert set(load.acknowledged) <= set(stored)
    found = releases(live)
    for name in load.acknowledged:
        values = found[f"{kind.kind.lower()}-{name}"][1]["values"]
        created = {field: value for field, value in kind.object(name)["spec"].items() if field not in patch}
        assert {field: values[field] for field in created} == created
    for name in load.patched:
        values = found[f"{kind.kind.lower()}-{name}"][1]["values"]
        for fields in (stored[name]["spec"], values):
            assert {field: fields.get(field) for field in patch} == patch


def _uninstall(live: LiveCluster) -> None:
    """With the peer back, our server goes, and its Tenants are all there."""
    tenants = {each["metadata"]["name"] for each in live.client.get(tenants_path()).expect(200)["items"]}
    before = releases(live)
    assert live.kube.server.stop() == 0
    configmap = _make_untracked_forms(live)
    status, printed = live.command("uninstall")
    assert status == 0, printed
    assert live.client.get(configmap).status == 404
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


def _make_untracked_forms(live: LiveCluster) -> str:
    """The ConfigMap of the forms as earlier versions left it where the first definition came after our server: created
    without a key, so Kubernetes records no field manager of it. Returns its path."""
    path, query = "/api/v1/namespaces/cozy-system/configmaps", {"fieldManager": "tenant-controller"}
    found = live.client.get(f"{path}/{KEPT_FORMS}")
    live.client.request("DELETE", f"{path}/{KEPT_FORMS}")
    live.client.request("POST", path, {"metadata": {"name": KEPT_FORMS}}, query=query).expect(201)
    forms = {"binaryData": found.json().get("binaryData", {})}
    merge_patch = "application/merge-patch+json"
    patched = live.client.request("PATCH", f"{path}/{KEPT_FORMS}", forms, query=query, content_type=merge_patch)
    assert "managedFields" not in patched.expect(200)["metadata"]
    return f"{path}/{KEPT_FORMS}"
