"""The component deletion-guard: who may delete the HelmRelease of a Tenant, as requests to the cluster."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pytest

from tests.e2e.support.applying import MERGE
from tests.e2e.support.clusters.cluster import ROOT, E2eCluster, tenants_path
from tests.e2e.support.clusters.processes import REPOSITORY
from tests.e2e.support.http.https_client import Client
from tests.e2e.support.tenants import Tenants, manifest
from tests.e2e.support.visibility import RbacObjects, group_subject, user_subject

GUARD = REPOSITORY / "manifests" / "components" / "deletion-guard"
WRITERS = "helmrelease-writers"
LABEL = "apps.cozystack.io/application.kind"
DENIED = "the HelmRelease of a tenant is deleted with the Tenant (tenants.apps.cozystack.io): delete that"
HELMRELEASES = f"/apis/helm.toolkit.fluxcd.io/v2/namespaces/{ROOT}/helmreleases"
SERVICEACCOUNTS = "system:serviceaccounts"


def service_account(namespace: str, name: str) -> tuple[str, Sequence[str]]:
    return f"system:serviceaccount:{namespace}:{name}", [SERVICEACCOUNTS, f"{SERVICEACCOUNTS}:{namespace}"]


@pytest.fixture(scope="module")
def guarded(cluster: E2eCluster) -> Iterator[E2eCluster]:
    """The cluster with the component, and a group of users who may do everything with HelmReleases."""
    cluster.kubectl("apply", "-k", str(GUARD))
    access = RbacObjects(cluster)
    rule = {"apiGroups": ["helm.toolkit.fluxcd.io"], "resources": ["helmreleases"], "verbs": ["*"]}
    access.create("clusterroles", {"metadata": {"name": f"e2e:{WRITERS}"}, "rules": [rule]})
    access.bind(f"e2e:{WRITERS}", "", group_subject(WRITERS), f"e2e:{WRITERS}")
    yield cluster
    access.clean_up()
    cluster.kubectl("delete", "-k", str(GUARD))


class Release:
    """The HelmRelease of a Tenant, and its writers."""

    def __init__(self, cluster: E2eCluster, tenants: Tenants) -> None:
        self._cluster = cluster
        self.name = tenants.create()["metadata"]["name"]
        self.path = f"{HELMRELEASES}/tenant-{self.name}"
        tenants.wait("the guard is enforced", lambda: self.delete("alice", ()) == DENIED)

    def client(self, user: str, groups: Sequence[str]) -> Client:
        return self._cluster.client(user, [*groups, WRITERS])

    def delete(self, user: str, groups: Sequence[str], path: str = "") -> str:
        """Sends a dry run, and returns the reason of a denial by the guard, or else the code."""
        answer = self.client(user, groups).request("DELETE", path or self.path, query={"dryRun": "All"})
        if answer.status != 403:
            return str(answer.status)
        message: str = answer.json()["message"]
        return message.partition("denied request: ")[2]


@pytest.fixture
def release(guarded: E2eCluster, tenants: Tenants) -> Release:
    return Release(guarded, tenants)


@pytest.mark.parametrize(
    ("user", "groups", "outcome"),
    [
        pytest.param("alice", [], DENIED, id="a user who may write HelmReleases"),
        pytest.param("root-admin", ["system:masters"], "200", id="system:masters"),
        pytest.param(*service_account("cozy-system", "tenant-apiserver"), "200", id="our account"),
        pytest.param(*service_account("cozy-system", "other"), DENIED, id="another account of our namespace"),
        pytest.param(*service_account("cozy-fluxcd", "helm-controller"), "200", id="Flux"),
        pytest.param(*service_account("other", "helm-controller"), DENIED, id="an account with the name of Flux's"),
        pytest.param(*service_account("kube-system", "namespace-controller"), "200", id="the namespace controller"),
        pytest.param(*service_account("kube-system", "generic-garbage-collector"), DENIED, id="the garbage collector"),
    ],
)
def test_who_may_delete_the_helmrelease_of_a_tenant(
    release: Release, user: str, groups: Sequence[str], outcome: str
) -> None:
    assert release.delete(user, groups) == outcome


def test_a_collection_is_guarded_as_well(release: Release) -> None:
    selected = f"{HELMRELEASES}?fieldSelector=metadata.name%3Dtenant-{release.name}"
    answer = release.client("alice", ()).request("DELETE", selected)
    assert answer.status == 403
    assert DENIED in answer.json()["message"]


@pytest.mark.parametrize("value", [None, "Bucket"])
def test_the_label_that_makes_it_a_tenants_stays(release: Release, value: str | None) -> None:
    client = release.client("alice", ())
    answer = client.request("PATCH", release.path, {"metadata": {"labels": {LABEL: value}}}, content_type=MERGE)
    assert answer.status == 403
    assert DENIED in answer.json()["message"]
    other = {"metadata": {"labels": {"team": "a"}}}
    assert client.request("PATCH", release.path, other, content_type=MERGE).status == 200


def test_other_helmreleases_are_not_guarded(guarded: E2eCluster, release: Release, unique: str) -> None:
    spec = {"interval": "5m", "chartRef": {"kind": "ExternalArtifact", "name": "x", "namespace": "cozy-system"}}
    kind = {"apiVersion": "helm.toolkit.fluxcd.io/v2", "kind": "HelmRelease"}
    body = {**kind, "metadata": {"name": unique}, "spec": spec}
    guarded.client().request("POST", HELMRELEASES, body).expect(201)
    assert release.client("alice", ()).request("DELETE", f"{HELMRELEASES}/{unique}").status == 200


def test_tenants_are_deleted_as_before(
    guarded: E2eCluster, release: Release, tenants: Tenants, access: RbacObjects, unique: str
) -> None:
    """Also by users who may not write HelmReleases, together with children, and with the namespace."""
    namespace = tenants.get(release.name)["status"]["namespace"]
    tenants.wait_for_namespace(namespace)
    tenants.create(namespace)
    rule = {"apiGroups": ["apps.cozystack.io"], "resources": ["tenants"], "verbs": ["delete"]}
    access.create_role(unique, ROOT, rule)
    access.bind(unique, ROOT, user_subject(unique), unique)
    client, path = guarded.client(unique), tenants_path(ROOT, release.name)
    query = {"propagationPolicy": "Foreground"}
    tenants.wait("the user may delete it", lambda: client.request("DELETE", path, query=query).status == 200)
    tenants.wait_until_gone(path)
    tenants.wait_until_gone(f"/api/v1/namespaces/{namespace}")
    assert client.request("POST", tenants_path(ROOT), manifest(unique)).status == 403
