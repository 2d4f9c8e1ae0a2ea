"""Whose the objects in a Tenant's Namespace are where Cozystack's chart makes the same ones. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum
from typing import Literal

from apiserver.meta.resource import Key, Object
from controller.runtime.conditions import Finding
from registry.names import release_name
from registry.tenant.summary import TenantSummary

ChartMode = Literal["none", "flux"]
"""Whether Flux installs the chart of each Tenant's HelmRelease: the setting `tenants.chart`."""

CHART_CONFLICT = "ChartConflict"
MANAGED_BY_LABEL = "app.kubernetes.io/managed-by"
RELEASE_NAME_ANNOTATION = "meta.helm.sh/release-name"
RELEASE_NAMESPACE_ANNOTATION = "meta.helm.sh/release-namespace"
OURS = "tenant-controller"


class ObjectManager(Enum):
    """Who keeps an object as it is."""

    OURS = "ours"
    """Made by us, so it goes when it is no longer wanted."""
    HELM = "helm"
    """We write only what Helm does not."""
    OTHER = "other"
    """It has the name of an object of ours: we keep it as wanted, and never delete it."""


def object_manager(obj: Object) -> ObjectManager:
    held = (obj["metadata"].get("labels") or {}).get(MANAGED_BY_LABEL)
    return ObjectManager.HELM if held == "Helm" else ObjectManager.OURS if held == OURS else ObjectManager.OTHER


def tenant_release(tenant: TenantSummary) -> Key:
    """The Helm release of the Tenant's chart."""
    return Key(tenant.key.namespace, release_name(tenant.key.name))


def with_manager_labels(desired: Object, release: Key | None) -> Object:
    """`desired` as a new object has it: so that Helm takes it over as part of `release`, or as our own."""
    metadata = desired["metadata"]
    labels = {**(metadata.get("labels") or {}), MANAGED_BY_LABEL: "Helm" if release is not None else OURS}
    marked = {**metadata, "labels": labels}
    if release is not None:
        names = {RELEASE_NAME_ANNOTATION: release.name, RELEASE_NAMESPACE_ANNOTATION: release.namespace}
        marked["annotations"] = {**(metadata.get("annotations") or {}), **names}
    return {**desired, "metadata": marked}


def chart_conflict(what: str) -> Finding:
    """The finding of an object that Helm manages otherwise than we would."""
    why = f"the tenant's chart has {what} otherwise than the tenant asks for, and keeps it so"
    return Finding(CHART_CONFLICT, "True", "ObjectsDiffer", why)


def merge_chart_conflicts(findings: Sequence[Finding]) -> Sequence[Finding]:
    """One condition a type: several objects may differ from the chart's."""
    conflicts = [each for each in findings if each.type == CHART_CONFLICT]
    others = [each for each in findings if each.type != CHART_CONFLICT]
    if len(conflicts) < 2:
        return [*others, *conflicts]
    return [*others, Finding(CHART_CONFLICT, "True", "ObjectsDiffer", "; ".join(each.message for each in conflicts))]
