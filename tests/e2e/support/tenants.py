"""Tenants for a test, created under unique names."""

from __future__ import annotations

import uuid
from typing import Any

from tests.e2e.support.clusters.cluster import ROOT, E2eCluster, tenants_path
from tests.e2e.support.http.https_client import Client, Response

Object = dict[str, Any]
# of conditions that change once the reconciler has seen the Namespace or the values of the parent
_PASSING_REASONS = ("ParentNotFound", "ParentNamespaceNotReady", "ParentValuesMissing")

_RETRIED = (429, 504)


def manifest(name: str, namespace: str = ROOT, *, spec: Object | None = None, **metadata: Any) -> Object:
    """A Tenant as a request body."""
    return {
        "apiVersion": "apps.cozystack.io/v1alpha1",
        "kind": "Tenant",
        "metadata": {"name": name, "namespace": namespace, **metadata},
        "spec": spec or {},
    }


class Tenants:
    """Creates and reads Tenants as the administrator."""

    def __init__(self, cluster: E2eCluster) -> None:
        self._cluster = cluster
        self._created: list[tuple[str, str]] = []

    @property
    def client(self) -> Client:
        return self._cluster.client()

    def new_name(self, namespace: str = ROOT) -> str:
        """A unique name; a Tenant created under it is deleted with those that `create` has created."""
        name = f"t{uuid.uuid4().hex[:8]}"
        self._created.append((namespace, name))
        return name

    def create(self, namespace: str = ROOT, *, spec: Object | None = None, **metadata: Any) -> Object:
        """Creates a Tenant under a unique name and returns it as the server answered."""
        body = manifest(self.new_name(namespace), namespace, spec=spec, **metadata)
        created: Object = self.client.request("POST", tenants_path(namespace), body).expect(201)
        return created

    def create_with_namespace(self, namespace: str = ROOT, *, spec: Object | None = None) -> str:
        """Creates a Tenant and returns the name of its workload namespace once that exists."""
        tenant = self.create(namespace, spec=spec)
        workload: str = tenant["status"]["namespace"]
        self.wait_for_namespace(workload)
        return workload

    def get(self, name: str, namespace: str = ROOT) -> Object:
        """As client-go does, this asks again where the server says so: its cache can be late on a busy machine."""
        path = tenants_path(namespace, name)

        def answered() -> Response | None:
            response = self.client.get(path)
            return None if response.status in _RETRIED and "Retry-After" in response.headers else response

        found: Object = self.wait(f"{path} is answered", answered).expect(200)
        return found

    def exists(self, name: str, namespace: str = ROOT) -> bool:
        return self.client.get(tenants_path(namespace, name)).status == 200

    def patch(self, name: str, body: Object, namespace: str = ROOT) -> Object:
        """Sends a merge patch and returns the patched Tenant."""
        path, kind = tenants_path(namespace, name), "application/merge-patch+json"
        patched: Object = self.client.request("PATCH", path, body, content_type=kind).expect(200)
        return patched

    def wait_for_namespace(self, namespace: str) -> Object:
        """Returns the Namespace once the reconciler has created it."""
        path = f"/api/v1/namespaces/{namespace}"
        self.wait(f"namespace {namespace} exists", lambda: self.client.get(path).status == 200)
        found: Object = self.client.get(path).expect(200)
        return found

    def wait_until_settled(self, name: str, namespace: str = ROOT) -> Object:
        """Returns a Tenant once the reconciler has decided whether its current generation is ready, and its Namespace
        exists. It writes no other status until something changes."""
        self.wait_for_namespace(self.get(name, namespace)["status"]["namespace"])
        settled: Object = self.wait(f"{name} is settled", lambda: self._if_settled(name, namespace))
        return settled

    def _if_settled(self, name: str, namespace: str) -> Object | None:
        tenant = self.get(name, namespace)
        if tenant["status"]["observedGeneration"] != tenant["metadata"]["generation"]:
            return None
        conditions = tenant["status"]["conditions"]
        undecided = {each["type"] for each in conditions if each["status"] == "Unknown"}
        # what nobody installs is found out only after a minute
        is_decided = "Ready" not in undecided or "ReleaseReady" in undecided
        return tenant if is_decided and all(each.get("reason") not in _PASSING_REASONS for each in conditions) else None

    def wait_until_gone(self, path: str) -> None:
        self.wait(f"{path} is gone", lambda: self.client.get(path).status == 404)

    def wait(self, what: str, check: Any) -> Any:
        return self._cluster.wait_until(what, check)

    def clean_up(self) -> None:
        """Requests the deletion of all Tenants, children before parents, without waiting for it to finish.

        On a real control plane that is stopped after the tests, they stay: it would spend more on the deletion of their
        Namespaces, with two requests for each kind that it serves, than on all tests.
        """
        if self._cluster.is_disposable:
            return
        for namespace, name in reversed(self._created):
            query = {"propagationPolicy": "Foreground"}
            self.client.request("DELETE", tenants_path(namespace, name), query=query)
