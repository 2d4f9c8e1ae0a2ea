"""The cost of a create: one write for each object that the tenant needs, and one for its finalizer and its status.

None is sent twice because the watch event of the first one had not arrived."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from http import HTTPStatus
from typing import Any

from tests.e2e.support.clusters import audit_log
from tests.e2e.support.clusters.cluster import ROOT, E2eCluster
from tests.e2e.support.clusters.kube import KubeCluster
from tests.e2e.support.http.api_request_counts import wait_until_quiet
from tests.e2e.support.tenants import Tenants
from tests.tenant_objects import release

Write = tuple[str, str, str]
_ROLES = ("admin", "super-admin", "use", "view")
_HELM_API = "/apis/helm.toolkit.fluxcd.io/v2"
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


def _is_conflict(event: Mapping[str, Any]) -> bool:
    return event.get("userAgent") == audit_log.SERVER and event["responseStatus"].get("code") == HTTPStatus.CONFLICT


def test_many_new_tenants_and_their_children_cost_no_conflicts(kube: KubeCluster) -> None:
    """Nobody else writes their HelmReleases and Namespaces, so a Conflict could only be with our own last write. The
    HelmReleases are created by somebody else, as by Flux, so that finalizer and status are two writes; children and
    quotas are events of their Tenants meanwhile."""
    tenants = Tenants(kube)

    def create(place: tuple[str, str]) -> None:
        namespace, name = place
        tenants.wait_for_namespace(namespace)
        body = release(name, namespace, spec={"resourceQuotas": {"cpu": "4" if namespace == ROOT else "1"}})
        kube.client().request("POST", f"{_HELM_API}/namespaces/{namespace}/helmreleases", body).expect(201)

    parents = [tenants.new_name() for _ in range(10)]
    places = [(ROOT, each) for each in parents]
    places += [(f"tenant-{parent}", tenants.new_name(f"tenant-{parent}")) for parent in parents for _ in range(2)]
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(create, places))
    for namespace, name in places:
        tenants.wait_until_settled(name, namespace)

    refused = [event.get("objectRef", {}) for event in audit_log.events(kube.audit_log) if _is_conflict(event)]
    ours = [each for each in refused if any(parent in str(each) for parent in parents)]
    assert [(each["resource"], each.get("namespace"), each.get("name")) for each in ours] == []
