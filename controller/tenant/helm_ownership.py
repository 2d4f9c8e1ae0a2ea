"""Decides who manages the objects in a Tenant's Namespace: Cozystack's chart creates the same ones. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum
from typing import Literal

from apiserver.meta.resource import Key, Object
from controller.runtime.conditions import Finding, find_condition
from registry.names import (
    RELEASE_NAME_ANNOTATION,
    RELEASE_NAMESPACE_ANNOTATION,
    release_name,
    tenant_name,
    workload_namespace,
)
from registry.tenant.readiness import READY, is_suspended
from registry.tenant.summary import TenantSummary

ChartMode = Literal["none", "flux"]
"""The setting `tenants.chart`: `flux` if Flux installs the chart of each Tenant's HelmRelease."""

CHART_CONFLICT = "ChartConflict"
MANAGED_BY_LABEL = "app.kubernetes.io/managed-by"
OURS = "tenant-controller"
GATEWAY_RELEASE = "gateway"
"""The Helm release that contains the TenantGateway. It is in the Tenant's Namespace, and is not that of the Tenant."""


class ObjectManager(Enum):
    """The manager of an object, by its label app.kubernetes.io/managed-by."""

    OURS = "ours"
    """We created it, and we delete it when it is no longer needed."""
    HELM = "helm"
    """We only add fields that Helm does not set."""
    OTHER = "other"
    """It was created by another client under the name of one of our objects: we update it, but never delete it."""


def object_manager(obj: Object) -> ObjectManager:
    label = (obj["metadata"].get("labels") or {}).get(MANAGED_BY_LABEL)
    return ObjectManager.HELM if label == "Helm" else ObjectManager.OURS if label == OURS else ObjectManager.OTHER


def tenant_release(tenant: TenantSummary) -> Key:
    """The Helm release of the Tenant's chart."""
    return Key(tenant.key.namespace, release_name(tenant.key.name))


def release_of(obj: Object) -> Key | None:
    """The Helm release that the object is part of, None if Helm does not manage it."""
    annotations = obj["metadata"].get("annotations") or {}
    namespace, name = annotations.get(RELEASE_NAMESPACE_ANNOTATION), annotations.get(RELEASE_NAME_ANNOTATION)
    if object_manager(obj) is not ObjectManager.HELM or not namespace or not name:
        return None
    return Key(namespace, name)


def is_of_own_chart(namespace: str, release: Key) -> bool:
    """True if the release is the chart of the Tenant whose workload namespace this is, or the chart of its Gateway."""
    tenant = tenant_name(release.name)
    if tenant is not None and workload_namespace(release.namespace, tenant) == namespace:
        return True
    return release == Key(namespace, GATEWAY_RELEASE)


def is_live(release: Object | None) -> bool:
    """True if Flux renders the HelmRelease, and would write again what others change: it has reported on it, and the
    HelmRelease is not suspended. None is one that does not exist."""
    if release is None or is_suspended(release):
        return False
    return find_condition((release.get("status") or {}).get("conditions"), READY) is not None


def as_taken_over(desired: Object) -> Object:
    """`desired` as a patch of an object that a Helm release has left behind: it becomes one of ours."""
    ours = with_manager_labels(desired, None)
    unmarked = {RELEASE_NAME_ANNOTATION: None, RELEASE_NAMESPACE_ANNOTATION: None}
    return {
        **ours,
        "metadata": {**ours["metadata"], "annotations": {**(ours["metadata"].get("annotations") or {}), **unmarked}},
    }


def with_manager_labels(desired: Object, release: Key | None) -> Object:
    """`desired` with the labels and annotations that make it part of the Helm release, or if `release` is None with
    the label of our own objects."""
    metadata = desired["metadata"]
    labels = {**(metadata.get("labels") or {}), MANAGED_BY_LABEL: "Helm" if release is not None else OURS}
    labelled = {**metadata, "labels": labels}
    if release is not None:
        names = {RELEASE_NAME_ANNOTATION: release.name, RELEASE_NAMESPACE_ANNOTATION: release.namespace}
        labelled["annotations"] = {**(metadata.get("annotations") or {}), **names}
    return {**desired, "metadata": labelled}


def chart_conflict(what: str, remedy: str = "") -> Finding:
    """The finding that an object managed by Helm differs from the desired one."""
    message = f"the tenant's chart manages {what}, which differs from what the tenant declares and is left as it is"
    return Finding(CHART_CONFLICT, "True", "ObjectsDiffer", f"{message}; {remedy}" if remedy else message)


def takeover_remedy(release: Key | None, namespace: str) -> str:
    """The advice for an object of Helm's where `tenants.chart` is none; `release` is the one that it is part of."""
    if release is None:
        return "it has the label of Helm and names no release: remove the label"
    name = f"{release.namespace}/{release.name}"
    if is_of_own_chart(namespace, release):
        return (
            f"Flux still installs HelmRelease {name}: suspend it, and its objects are taken over, or set tenants.chart "
            "to flux"
        )
    return f"it is part of another Helm release, {name}: delete it there"


def merge_chart_conflicts(findings: Sequence[Finding]) -> Sequence[Finding]:
    """Merge the chart conflicts of several objects into one finding, because a condition type occurs once."""
    conflicts = [each for each in findings if each.type == CHART_CONFLICT]
    others = [each for each in findings if each.type != CHART_CONFLICT]
    if len(conflicts) < 2:
        return [*others, *conflicts]
    return [*others, Finding(CHART_CONFLICT, "True", "ObjectsDiffer", "; ".join(each.message for each in conflicts))]
