"""Helpers for tests of visibility: RBAC objects, filtered lists and the events of watches."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from tests.e2e.support.clusters.cluster import CORE_GROUP_VERSION, PATIENCE, RBAC, E2eCluster
from tests.e2e.support.clusters.processes import wait_until
from tests.e2e.support.http.https_client import Client
from tests.e2e.support.tenants import Tenants

Object = dict[str, Any]
NAMESPACES = f"{CORE_GROUP_VERSION}/tenantnamespaces"
ROLEBINDINGS, ROLES = "rolebindings", "roles"
TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io"
PARTIAL = "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io"
GET_TENANTS = {"apiGroups": ["apps.cozystack.io"], "resources": ["tenants"], "verbs": ["get"]}


def rbac_path(kind: str, namespace: str = "", name: str = "") -> str:
    parts = [f"/apis/{RBAC}/v1", *(["namespaces", namespace] if namespace else []), kind, name]
    return "/".join(part for part in parts if part)


class RbacObjects:
    """Creates the Roles and bindings of a test and deletes them after it."""

    def __init__(self, cluster: E2eCluster) -> None:
        self._client = cluster.client()
        self._created: list[str] = []

    def create(self, kind: str, body: Object, namespace: str = "") -> None:
        self._client.request("POST", rbac_path(kind, namespace), body).expect(201)
        self._created.append(rbac_path(kind, namespace, body["metadata"]["name"]))

    def create_role(self, name: str, namespace: str, *rules: Object) -> None:
        self.create(ROLES, {"metadata": {"name": name}, "rules": list(rules)}, namespace)

    def bind(self, name: str, namespace: str, subject: Object, role: str = "cozy:tenant:view") -> None:
        kind = "ClusterRole" if ":" in role else "Role"
        reference = {"apiGroup": RBAC, "kind": kind, "name": role}
        body = {"metadata": {"name": name}, "roleRef": reference, "subjects": [subject]}
        self.create(ROLEBINDINGS if namespace else "clusterrolebindings", body, namespace)

    def replace_rules(self, name: str, namespace: str, *rules: Object) -> None:
        body = {"rules": list(rules)}
        path = rbac_path(ROLES, namespace, name)
        self._client.request("PATCH", path, body, content_type="application/merge-patch+json").expect(200)

    def delete(self, kind: str, name: str, namespace: str = "") -> None:
        assert self._client.request("DELETE", rbac_path(kind, namespace, name)).status == 200

    def clean_up(self) -> None:
        for path in reversed(self._created):
            self._client.request("DELETE", path)


def user_subject(name: str) -> Object:
    return {"kind": "User", "apiGroup": RBAC, "name": name}


def group_subject(name: str) -> Object:
    return {"kind": "Group", "apiGroup": RBAC, "name": name}


def list_names(client: Client, path: str, **query: object) -> list[str]:
    return [item["metadata"]["name"] for item in client.get(path, query=query).expect(200)["items"]]


def wait_until_listed(client: Client, path: str, expected: Sequence[str]) -> None:
    """The list changes only after the new roles have reached the server. It may be in any order."""
    wait_until(
        f"{path} shows {expected}", lambda: sorted(list_names(client, path)) == sorted(expected), seconds=PATIENCE
    )


def create_child(tenants: Tenants, namespace: str) -> str:
    name: str = tenants.create(namespace)["metadata"]["name"]
    return name


class WatchReader:
    """Reads the frames of a watch until an expected event arrives."""

    def __init__(self, frames: Iterator[Object]) -> None:
        self._frames = frames
        self.version = "0"

    def wait_for_event(self, type_: str, name: str) -> Object:
        """Returns the object of the first event of this type and name; an ERROR event fails the test."""
        for frame in self._frames:
            assert frame["type"] != "ERROR", frame
            if (frame["type"], frame["object"]["metadata"].get("name")) == (type_, name):
                found: Object = frame["object"]
                return found
        raise AssertionError(f"the watch ended without {type_} of {name}")

    def wait_for_bookmark(self) -> str:
        for frame in self._frames:
            if frame["type"] == "BOOKMARK":
                version: str = frame["object"]["metadata"]["resourceVersion"]
                return version
        raise AssertionError("the watch ended without a bookmark")


def open_watch(client: Client, path: str, version: str = "", **query: object) -> Any:
    version = version or client.get(path).expect(200)["metadata"]["resourceVersion"]
    query |= {"watch": "true", "allowWatchBookmarks": "true", "resourceVersion": version}
    return client.stream(path, query=query)
