"""Shared by the tests of the peer's bugs: writes to Tenants of the root namespace, watches and metrics."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tests.e2e.support.applying import MERGE
from tests.e2e.support.clusters.cluster import PATIENCE, ROOT, E2eCluster, tenants_path
from tests.e2e.support.http.https_client import Client, Response
from tests.e2e.support.tenants import Object, Tenants

JSON_PATCH = "application/json-patch+json"


def helmrelease_path(name: str, subresource: str = "") -> str:
    return f"/apis/helm.toolkit.fluxcd.io/v2/namespaces/{ROOT}/helmreleases/tenant-{name}{subresource}"


def create_settled_tenant(tenants: Tenants, **fields: Any) -> Object:
    """Creates a Tenant in the root namespace and returns it once the reconciler has written its status."""
    return tenants.wait_until_settled(tenants.create(**fields)["metadata"]["name"])


def patch(cluster: E2eCluster, name: str, body: Any, kind: str = MERGE, **query: str) -> Response:
    return cluster.client().request("PATCH", tenants_path(ROOT, name), body, content_type=kind, query=query or None)


def list_version(cluster: E2eCluster, namespace: str = ROOT) -> int:
    return int(cluster.client().get(tenants_path(namespace)).expect(200)["metadata"]["resourceVersion"])


def watch(cluster: E2eCluster, namespace: str = ROOT, **query: object) -> Any:
    return cluster.client().stream(tenants_path(namespace), query={"watch": "true", **query}, seconds=PATIENCE)


def next_event(frames: Iterator[Object], *types: str) -> Object:
    """Returns the next event of one of these types; any other ERROR event fails the test."""
    for frame in frames:
        assert frame["type"] != "ERROR" or "ERROR" in types, frame
        if frame["type"] in types:
            return frame
    raise AssertionError(f"the watch ended without one of {types}")


def metric_value(client: Client, name: str, *labels: str) -> float:
    """Sums the samples of a metric that have these labels, each written `key="value"`."""
    lines = client.get("/metrics").content.decode().splitlines()
    samples = [line for line in lines if line.startswith((f"{name}{{", f"{name} "))]
    return sum(float(line.rsplit(" ", 1)[1]) for line in samples if all(label in line for label in labels))
