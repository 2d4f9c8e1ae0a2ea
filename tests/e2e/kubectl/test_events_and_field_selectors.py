"""Events, field selectors and table columns of built-in kinds."""

from __future__ import annotations

from typing import Any

import pytest

from tests.e2e.support.built_in_kinds import document, service
from tests.e2e.support.clusters.cluster import RBAC, E2eCluster


def event(namespace: str, name: str, about: str, **content: Any) -> dict[str, Any]:
    subject = {"kind": "ConfigMap", "apiVersion": "v1", "namespace": namespace, "name": about}
    return document(
        "v1",
        "Event",
        name,
        involvedObject=subject,
        source={"component": "tester"},
        firstTimestamp="2026-01-01T00:00:00Z",
        lastTimestamp="2026-01-01T00:00:00Z",
        **content,
    )


@pytest.fixture
def events(cluster: E2eCluster, namespace: str) -> str:
    """A namespace with the Events `a` (Warning, Broken) of the ConfigMap `x` and `b` (Normal, Fine) of `y`."""
    client, path = cluster.client(), f"/api/v1/namespaces/{namespace}"
    made = client.request("POST", f"{path}/configmaps", document("v1", "ConfigMap", "x")).expect(201)
    for each in (
        event(namespace, "a", "x", type="Warning", reason="Broken", message="it broke"),
        event(namespace, "b", "y", type="Normal", reason="Fine", message="it holds"),
    ):
        each["involvedObject"]["uid"] = made["metadata"]["uid"]
        client.request("POST", f"{path}/events", each).expect(201)
    return namespace


def test_describe_shows_events(cluster: E2eCluster, events: str) -> None:
    description = cluster.kubectl("describe", "configmap", "x", "-n", events).stdout
    (line,) = [line.split() for line in description.splitlines() if "it broke" in line]
    assert (line[:2], line[-3:]) == (["Warning", "Broken"], ["tester", "it", "broke"])
    assert "it holds" not in description
    listed = cluster.kubectl("events", "-n", events, "--for=configmap/x").stdout
    assert ("it broke" in listed, "it holds" in listed) == (True, False)


@pytest.mark.parametrize(
    ("group", "selector", "expected"),
    [
        pytest.param("", "involvedObject.name=x,involvedObject.kind=ConfigMap", ["a"], id="by object"),
        pytest.param("", "type!=Warning", ["b"], id="by another type"),
        pytest.param("", "reason=Fine,source=tester", ["b"], id="by reason and source"),
        pytest.param("", "reportingComponent=tester", [], id="by reporting component"),
        pytest.param("", "metadata.name=a,type=Normal", [], id="by name and type"),
        pytest.param("events.k8s.io", "regarding.name=y", ["b"], id="events.k8s.io by regarding"),
        pytest.param("events.k8s.io", "type=Warning,reason=Broken", ["a"], id="events.k8s.io by type"),
        pytest.param("events.k8s.io", "reportingController=", ["a", "b"], id="events.k8s.io by an empty value"),
    ],
)
def test_events_are_selected_by_field(
    cluster: E2eCluster, events: str, group: str, selector: str, expected: list[str]
) -> None:
    base = f"/apis/{group}/v1" if group else "/api/v1"
    found = cluster.client().get(f"{base}/namespaces/{events}/events", query={"fieldSelector": selector}).expect(200)
    assert [each["metadata"]["name"] for each in found["items"]] == expected


def test_a_watch_by_field_follows_changes_of_the_field(cluster: E2eCluster, events: str) -> None:
    client, path = cluster.client(), f"/api/v1/namespaces/{events}/events"
    version = client.get(path).expect(200)["metadata"]["resourceVersion"]
    query = {"watch": "1", "fieldSelector": "type=Warning", "resourceVersion": version}
    for kind in ("Warning", "Normal"):
        client.request("PATCH", f"{path}/b", {"type": kind}, content_type="application/merge-patch+json").expect(200)
    with client.stream(path, query=query) as frames:
        seen = [next(frames) for _ in range(2)]
    assert [(frame["type"], frame["object"]["metadata"]["name"]) for frame in seen] == [
        ("ADDED", "b"),
        ("DELETED", "b"),
    ]


@pytest.mark.parametrize(
    ("path", "selector", "message"),
    [
        pytest.param("/api/v1/events", "foo=x", "field label not supported: foo", id="events"),
        pytest.param(
            "/api/v1/events",
            "regarding.name=x",
            "field label not supported: regarding.name",
            id="a field of events.k8s.io",
        ),
        pytest.param("/api/v1/secrets", "data=x", "field label not supported: data", id="secrets"),
        pytest.param(
            "/api/v1/configmaps",
            "type=x",
            '"type" is not a known field selector: only "metadata.name", "metadata.namespace"',
            id="configmaps",
        ),
    ],
)
def test_unsupported_field_selectors_are_rejected(cluster: E2eCluster, path: str, selector: str, message: str) -> None:
    assert cluster.client().get(path, query={"fieldSelector": selector}).expect(400)["message"].endswith(message)


def test_secrets_services_and_namespaces_have_their_own_selectable_fields(cluster: E2eCluster, namespace: str) -> None:
    client, path = cluster.client(), f"/api/v1/namespaces/{namespace}"
    client.request("POST", f"{path}/services", service(80, clusterIP="None")).expect(201)
    for name, type_ in (("s", "example.org/x"), ("t", "Opaque")):
        client.request("POST", f"{path}/secrets", document("v1", "Secret", name, type=type_)).expect(201)

    def names(path: str, selector: str) -> list[str]:
        items = client.get(path, query={"fieldSelector": selector}).expect(200)["items"]
        return [each["metadata"]["name"] for each in items]

    assert names(f"{path}/secrets", "type=example.org/x") == ["s"]
    assert names(f"{path}/services", "spec.clusterIP=None,spec.type=ClusterIP") == ["web"]
    assert namespace in names("/api/v1/namespaces", "status.phase=Active")
    assert names("/api/v1/namespaces", f"status.phase=Terminating,metadata.name={namespace}") == []


@pytest.mark.parametrize(
    ("resource", "heading"),
    [
        pytest.param("events", "LAST SEEN   TYPE      REASON   OBJECT        MESSAGE", id="events"),
        pytest.param("roles", "NAME   CREATED AT", id="roles"),
        pytest.param("limitranges", "NAME   CREATED AT", id="limitranges"),
        pytest.param("serviceaccounts", "NAME", id="serviceaccounts"),
    ],
)
def test_tables_have_the_usual_columns_of_kubectl(
    cluster: E2eCluster, events: str, resource: str, heading: str
) -> None:
    path = f"/api/v1/namespaces/{events}"
    client = cluster.client()
    client.request("POST", f"{path}/limitranges", document("v1", "LimitRange", "l", spec={"limits": []})).expect(201)
    roles = f"/apis/{RBAC}/v1/namespaces/{events}/roles"
    client.request("POST", roles, document(f"{RBAC}/v1", "Role", "r", rules=[])).expect(201)
    client.request("POST", f"{path}/serviceaccounts", document("v1", "ServiceAccount", "sa")).expect(201)
    first = cluster.kubectl("get", resource, "-n", events).stdout.splitlines()[0]
    assert first.split() == (heading.split() if resource != "serviceaccounts" else ["NAME", "AGE"])
