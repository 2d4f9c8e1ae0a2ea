"""A kind that a CustomResourceDefinition of the test adds to the cluster."""

from __future__ import annotations

from typing import Any

from tests.e2e.support.clusters.cluster import E2eCluster
from tests.e2e.support.http.https_client import Client

DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"


class CustomKind:
    """A kind of the test's own, whose definition is deleted after the test."""

    def __init__(self, cluster: E2eCluster, unique: str) -> None:
        self.cluster = cluster
        self.client: Client = cluster.client()
        self.group, self.plural, self.kind = f"{unique}.example.com", "widgets", "Widget"
        self.name = f"{self.plural}.{self.group}"

    def definition(self, *versions: dict[str, Any], **spec: Any) -> dict[str, Any]:
        return {
            "apiVersion": "apiextensions.k8s.io/v1",
            "kind": "CustomResourceDefinition",
            "metadata": {"name": self.name},
            "spec": {
                "group": self.group,
                "scope": "Namespaced",
                "names": {"plural": self.plural, "kind": self.kind, "shortNames": [f"wd{self.group[:5]}"]},
                "versions": list(versions) or [version()],
                **spec,
            },
        }

    def create(self, *versions: dict[str, Any], **spec: Any) -> None:
        self.client.request("POST", DEFINITIONS, self.definition(*versions, **spec)).expect(201)
        self.wait_for("Established")

    def delete(self, name: str = "") -> None:
        """Deletes the definition, or that of another `name`, and waits until it is gone with its objects: tests that
        follow read lists of all kinds."""
        one = f"{DEFINITIONS}/{name or self.name}"
        if self.client.request("DELETE", one).status != 404:
            self.cluster.wait_until(f"{one} is gone", lambda: self.client.get(one).status == 404)

    def wait_for(self, condition: str, status: str = "True") -> dict[str, Any]:
        def found() -> dict[str, Any] | None:
            crd: dict[str, Any] = self.client.get(f"{DEFINITIONS}/{self.name}").expect(200)
            conditions = crd["status"].get("conditions") or ()
            return crd if any((each["type"], each["status"]) == (condition, status) for each in conditions) else None

        crd = self.cluster.wait_until(f"{condition} is {status}", found)
        if condition == "Established" and status == "True":
            served = next(each["name"] for each in crd["spec"]["versions"] if each["served"])
            self.cluster.wait_until_served(f"/apis/{self.group}/{served}/{self.plural}")
        return crd

    def path(self, name: str = "", version: str = "v1", subresource: str = "") -> str:
        parts = [f"/apis/{self.group}/{version}/namespaces/default/{self.plural}", name, subresource]
        return "/".join(part for part in parts if part)

    def widget(self, name: str = "a", version: str = "v1", **spec: Any) -> dict[str, Any]:
        return {
            "apiVersion": f"{self.group}/{version}",
            "kind": self.kind,
            "metadata": {"name": name},
            "spec": {"size": 1, **spec},
        }


def version(name: str = "v1", *, storage: bool = True, **more: Any) -> dict[str, Any]:
    spec: dict[str, Any] = {
        "type": "object",
        "required": ["size"],
        "properties": {"size": {"type": "integer", "minimum": 1}, "color": {"type": "string", "default": "red"}},
    }
    spec["properties"].update(more.pop("properties", {}))
    schema = {"type": "object", "properties": {"spec": spec, "status": {"type": "object", "properties": {}}}}
    return {"name": name, "served": True, "storage": storage, "schema": {"openAPIV3Schema": schema}, **more}
