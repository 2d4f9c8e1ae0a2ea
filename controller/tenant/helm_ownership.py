"""Decides who manages the objects in a Tenant's Namespace: Cozystack's chart creates the same ones. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum
from typing import Literal

from apiserver.meta.resource import Key, Object
from controller.runtime.conditions import Finding
from registry.names import RELEASE_NAME_ANNOTATION, RELEASE_NAMESPACE_ANNOTATION, release_name
from registry.tenant.summary import TenantSummary

ChartMode = Literal["none", "flux"]
"""The setting `tenants.chart`: `flux` if Flux installs the chart of each Tenant's HelmRelease."""

CHART_CONFLICT = "ChartConflict"
MANAGED_BY_LABEL = "app.kubernetes.io/managed-by"
OURS = "tenant-controller"


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


def chart_conflict(what: str) -> Finding:
    """The finding that an object managed by Helm differs from the desired one."""
    message = f"the tenant's chart manages {what}, which differs from what the tenant declares and is left as it is"
    return Finding(CHART_CONFLICT, "True", "ObjectsDiffer", message)


def merge_chart_conflicts(findings: Sequence[Finding]) -> Sequence[Finding]:
    """Merge the chart conflicts of several objects into one finding, because a condition type occurs once."""
    conflicts = [each for each in findings if each.type == CHART_CONFLICT]
    others = [each for each in findings if each.type != CHART_CONFLICT]
    if len(conflicts) < 2:
        return [*others, *conflicts]
    return [*others, Finding(CHART_CONFLICT, "True", "ObjectsDiffer", "; ".join(each.message for each in conflicts))]
