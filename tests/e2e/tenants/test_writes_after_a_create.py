"""The cost of a create: one write for each object that the tenant needs, and one for its finalizer and its status."""

from __future__ import annotations

from collections import Counter
from functools import partial

from tests.e2e.support.clusters import audit_log
from tests.e2e.support.clusters.cluster import E2eCluster
from tests.e2e.support.clusters.kube import KubeCluster
from tests.e2e.support.http.api_request_counts import wait_until_quiet
from tests.e2e.support.tenants import Tenants

Write = tuple[str, str, str]
_ROLES = ("admin", "super-admin", "use", "view")
_WRITES = {"create", "update", "patch", "delete", "deletecollection"}


def _writes(kube: KubeCluster, name: str, _: E2eCluster) -> Counter[Write]:
    """All writes of our server of objects in the namespace of the Tenant `name`, or with this name in theirs, by verb,
    resource and name. Subresources and refused writes count; the random names of Events are left out."""
    counts: Counter[Write] = Counter()
    for event in audit_log.events(kube.audit_log):
        target = event.get("objectRef", {})
        of_this_tenant = name in target.get("name", "") or target.get("namespace") == f"tenant-{name}"
        if event.get("userAgent") == audit_log.SERVER and event["verb"] in _WRITES and of_this_tenant:
            resource = "/".join(filter(None, (target["resource"], target.get("subresource"))))
            counts[event["verb"], resource, "" if resource == "events" else target.get("name", "")] += 1
    return counts


def _needed(name: str) -> dict[Write, int]:
    workload = f"tenant-{name}"
    created = {
        "events": [""],
        "helmreleases": [workload],
        "namespaces": [workload],
        "networkpolicies": ["tenant-apiserver", "tenant-ingress", "tenant-isolation", "tenant-to-etcd"],
        "rolebindings": ["cozy:tenant", f"cozy:tenant-self:{name}", *(f"cozy:tenant:{each}" for each in _ROLES)],
        "roles": [f"cozy:tenant-self:{name}"],
        "secrets": ["cozystack-values"],
        "serviceaccounts": [workload],
    }
    # the finalizer and the status are in one
    patched = {("patch", "helmreleases", workload): 1}
    return {("create", resource, each): 1 for resource, names in created.items() for each in names} | patched


def test_a_create_costs_one_write_for_each_object(kube: KubeCluster) -> None:
    """Of ten creates, because on a busy machine a status may be due before the last of its objects is there."""
    tenants = Tenants(kube)
    different = []
    for _ in range(10):
        name = tenants.create_with_namespace().removeprefix("tenant-")
        tenants.wait_until_settled(name)
        wait_until_quiet(kube, partial(_writes, kube, name))
        found, needed = _writes(kube, name, kube), _needed(name)
        if found == needed:
            return
        different.append({write: count for write, count in found.items() if needed.get(write) != count})
        assert found.keys() == needed.keys(), different
    raise AssertionError(different)
