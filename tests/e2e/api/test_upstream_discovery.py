"""Upstream's discovery tests, step by step, through the aggregator and at our own server (WIRE-J22 to WIRE-J26)."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import partial

from tests.e2e.support.clusters.cluster import AGGREGATED_DISCOVERY, GROUP_VERSION, E2eCluster
from tests.e2e.support.clusters.kube import KubeCluster
from tests.e2e.support.http.https_client import Client
from tests.e2e.support.tenants import Object

GROUP = "apps.cozystack.io"


def clients(cluster: E2eCluster) -> Iterator[Client]:
    yield cluster.client()
    if isinstance(cluster, KubeCluster):
        yield cluster.direct_client()


def test_every_group_prefers_one_of_its_versions(cluster: E2eCluster) -> None:
    for client in clients(cluster):
        for path in ("/apis", "/apis/"):
            groups = client.get(path).expect(200)["groups"]
            assert GROUP in {group["name"] for group in groups}
            for listed in groups:
                assert listed["preferredVersion"] in listed["versions"], listed["name"]
        group = client.get(f"/apis/{GROUP}/").expect(200)
        assert group["preferredVersion"] in group["versions"]
        assert [each["groupVersion"] for each in group["versions"]] == [f"{GROUP}/v1alpha1"]


def test_every_version_lists_its_resources_under_its_own_name(cluster: E2eCluster) -> None:
    for client in clients(cluster):
        # a version whose last kind has just been deleted remains listed for a moment
        documents = cluster.wait_until("every listed version is served", partial(read_documents, client))
        for version, document in documents.items():
            assert document["groupVersion"] == version
            assert document["resources"], version
            assert all(each["name"] and each["kind"] for each in document["resources"])


def read_documents(client: Client) -> dict[str, Object] | None:
    """The discovery document of each listed version; None if one of them is not served."""
    groups = client.get("/apis").expect(200)["groups"]
    versions = [version["groupVersion"] for group in groups for version in group["versions"]]
    answers = {version: client.get(f"/apis/{version}") for version in versions}
    if any(answer.status == 404 for answer in answers.values()):
        return None
    return {version: answer.expect(200) for version, answer in answers.items()}


def test_discovery_distinguishes_served_from_unknown_resources(cluster: E2eCluster) -> None:
    for client in clients(cluster):
        names = {each["name"] for each in client.get(GROUP_VERSION).expect(200)["resources"]}
        assert "tenants" in names
        assert "nothings" not in names
        for missing in (f"/apis/{GROUP}/v9", "/apis/not.these.example/v1"):
            assert client.get(missing).status == 404


def test_aggregated_discovery_has_the_requested_media_type(cluster: E2eCluster) -> None:
    for client in clients(cluster):
        answer = client.get("/apis", headers={"Accept": AGGREGATED_DISCOVERY})
        document = answer.expect(200)
        assert answer.headers["Content-Type"] == AGGREGATED_DISCOVERY
        assert (document["kind"], document["apiVersion"]) == ("APIGroupDiscoveryList", "apidiscovery.k8s.io/v2")
        (ours,) = (item for item in document["items"] if item["metadata"]["name"] == GROUP)
        (version,) = ours["versions"]
        assert (version["version"], version["freshness"]) == ("v1alpha1", "Current")
        (tenants,) = (each for each in version["resources"] if each["resource"] == "tenants")
        assert tenants["responseKind"] == {"group": GROUP, "version": "v1alpha1", "kind": "Tenant"}
        assert (tenants["scope"], tenants["singularResource"]) == ("Namespaced", "tenant")
        subresources = {each["subresource"]: each for each in tenants["subresources"]}
        assert {name: each["verbs"] for name, each in subresources.items()} == {
            "diff": ["create", "get"],
            "explain": ["get"],
            "status": ["get"],
        }
        kinds = {name: each["responseKind"]["kind"] for name, each in subresources.items()}
        assert kinds == {"diff": "TenantDiff", "explain": "TenantExplanation", "status": "Tenant"}


def test_the_version_has_the_format_that_tools_parse(cluster: E2eCluster) -> None:
    for client in clients(cluster):
        version = client.get("/version").expect(200)
        assert re.fullmatch("[1-9]", version["major"])
        assert re.fullmatch("[0-9]+", version["minor"])
        assert version["gitVersion"].startswith(f"v{version['major']}.{version['minor']}.")
