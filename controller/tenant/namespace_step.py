"""The step that creates a Tenant's Namespace, labels it, and reverts drift (R-054 to R-056, ATTACK-07)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import partial

from apiserver.meta.label_validation import label_value_errors
from apiserver.meta.resource import Object
from controller.runtime.apply import ClusterWriter, ControllerOwner, ForeignObject, missing_fields
from controller.runtime.conditions import Finding
from controller.tenant.helm_ownership import CHART_CONFLICT, ChartMode, tenant_release, with_manager_labels
from controller.tenant.namespace_ownership import (
    Ownership,
    conflict_message,
    former_tenant_message,
    is_of_former_tenant,
    may_be_deleted,
    ownership,
    record_annotations,
)
from controller.tenant.observe import ObservedTenant
from registry.cluster.interface import NAMESPACES, is_terminating
from registry.names import (
    ANCESTOR_LABEL_PREFIX,
    GATEWAY_ATTACHED_BY_ANNOTATION,
    GATEWAY_LABEL,
    HOST_LABEL,
    MAX_LABEL_VALUE,
    NAMESPACE_LABEL_PREFIX,
    NO_DELETE_LABEL,
    SCHEDULING_CLASS_LABEL,
    host_errors,
)
from registry.tenant.inheritance import NO_SERVICES, Services
from registry.tenant.summary import TenantSummary
from registry.tenant.types import EffectiveHost

NAMESPACE_READY = "NamespaceReady"
# The number of characters of an invalid name that a message shows.
_MAX_SHOWN = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class InheritedSettings:
    """Settings of a Tenant, its own or inherited, that the labels of its Namespace show.

    `gateway` is the workload namespace of the Gateway's owner, empty if the Tenant and its ancestors have no Gateway.
    """

    host: EffectiveHost | None = None
    services: Services = NO_SERVICES
    gateway: str = ""
    scheduling_class: str = ""


def render_namespace(
    tenant: TenantSummary,
    ancestors: Sequence[TenantSummary],
    inherited: InheritedSettings,
    *,
    parent: Object | None = None,
    current: Object | None = None,
) -> Object:
    """The Namespace of a Tenant as a merge patch, with None for labels that must be absent (R-054 to R-074).

    `parent` is the parent's Namespace, `current` the stored Namespace. All ancestor labels are ours: one that names
    another tenant would grant it access, and is removed.
    """
    current_labels = _strings(current, "labels")
    labels: dict[str, str | None] = {
        HOST_LABEL: host_label(inherited.host),
        SCHEDULING_CLASS_LABEL: scheduling_class_label(inherited.scheduling_class),
    }
    labels |= {NAMESPACE_LABEL_PREFIX + name: owner or None for name, owner in inherited.services.by_name().items()}
    labels |= {key: None for key in current_labels if key.startswith(ANCESTOR_LABEL_PREFIX)}
    labels |= {ANCESTOR_LABEL_PREFIX + each.namespace: "" for each in (tenant, *ancestors)}
    if tenant.is_root:
        labels[NO_DELETE_LABEL] = "true"
    metadata: Object = {"name": tenant.namespace, "labels": labels}
    if inherited.gateway:
        labels[GATEWAY_LABEL] = inherited.gateway
        metadata["annotations"] = {GATEWAY_ATTACHED_BY_ANNOTATION: None}
    elif not _is_attached(current):
        labels[GATEWAY_LABEL] = None
    metadata["labels"] = dict(sorted(labels.items()))
    if parent is not None:
        owner = parent["metadata"]
        above = ControllerOwner(api_version="v1", kind=NAMESPACES.kind, name=owner["name"], uid=owner["uid"])
        metadata["ownerReferences"] = [above.reference()]
    return {"metadata": metadata}


def host_label(host: EffectiveHost | None) -> str | None:
    """None for a host that is too long for a label value or not a valid domain (FACT-6)."""
    if host is None or len(host.value) > MAX_LABEL_VALUE or host_errors(host.value):
        return None
    return host.value


def scheduling_class_label(name: str) -> str | None:
    """None for a name that is not a valid label value."""
    return name if name and not label_value_errors(name) else None


def _is_attached(namespace: Object | None) -> bool:
    """True if the TenantGateway controller has set the gateway label. It remains if no ancestor has a Gateway."""
    return GATEWAY_ATTACHED_BY_ANNOTATION in _strings(namespace, "annotations")


def _strings(namespace: Object | None, field: str) -> Mapping[str, str]:
    return (namespace["metadata"].get(field) or {}) if namespace is not None else {}


def conflicting_labels(desired: Object, current: Object) -> list[str]:
    """The labels of a Namespace managed by Helm that have other values than the desired ones."""
    present, expected = _strings(current, "labels"), desired["metadata"]["labels"]
    return sorted(
        key
        for key in expected.keys() & present.keys()
        if _comparable(key, present[key]) != _comparable(key, expected[key])
    )


def _comparable(key: str, value: str | None) -> str | None:
    """The chart writes every service label, empty if there is no owner: that equals an absent label."""
    return (value or None) if key.startswith(NAMESPACE_LABEL_PREFIX) else value


def helm_patch(desired: Object, current: Object) -> Object:
    """The patch of a Namespace that Helm manages: the missing fields, and the gateway label if the TenantGateway
    controller has set it, because then it is not Helm's."""
    added = missing_fields(desired, current)
    if desired["metadata"]["labels"].get(GATEWAY_LABEL) and _is_attached(current):
        metadata = added.setdefault("metadata", {})
        metadata["labels"] = {**metadata.get("labels", {}), GATEWAY_LABEL: desired["metadata"]["labels"][GATEWAY_LABEL]}
        metadata["annotations"] = {**metadata.get("annotations", {}), GATEWAY_ATTACHED_BY_ANNOTATION: None}
    return added


def blocking_finding(observed: ObservedTenant) -> Finding | None:
    """The reason why the Namespace must not be written now. When it no longer holds, an event enqueues the Tenant."""
    tenant = observed.tenant
    if observed.shares_namespace:
        return Finding(
            NAMESPACE_READY, "False", "NamespaceConflict", f'namespace "{tenant.namespace}" belongs to an older tenant'
        )
    if observed.namespace is not None and is_terminating(observed.namespace):
        return Finding(
            NAMESPACE_READY, "False", "NamespaceTerminating", f'namespace "{tenant.namespace}" is being deleted'
        )
    if is_of_former_tenant(observed.namespace, tenant):
        if observed.has_children:
            return Finding(NAMESPACE_READY, "False", "NamespaceConflict", former_tenant_message(tenant))
        message = f'namespace "{tenant.namespace}" belongs to a deleted tenant and is about to be deleted'
        return Finding(NAMESPACE_READY, "False", "NamespaceOfFormerTenant", message)
    if tenant.is_root:
        return None
    if not observed.ancestors:
        message = f'namespace "{tenant.key.namespace}" is not the workload namespace of a tenant'
        return Finding(NAMESPACE_READY, "False", "ParentNotFound", message)
    if observed.parent_namespace is None or is_terminating(observed.parent_namespace):
        message = f'namespace "{tenant.key.namespace}" does not exist or is being deleted'
        return Finding(NAMESPACE_READY, "False", "ParentNamespaceNotReady", message)
    return None


class _NamespaceOwner:
    def __init__(self, tenant: TenantSummary) -> None:
        self._facts = tenant

    def refusal(self, current: Object) -> str:
        return conflict_message(self._facts) if ownership(current, self._facts) is Ownership.FOREIGN else ""


class NamespaceStep:
    """Findings: NamespaceReady always, NamespaceConflict, ChartConflict and SchedulingClassInvalid while they hold."""

    name = "namespace"
    condition = NAMESPACE_READY

    def __init__(
        self, *, writer: ClusterWriter, now: Callable[[], datetime], chart: Callable[[], ChartMode] = lambda: "none"
    ) -> None:
        self._writer = writer
        self._now = now
        self._chart = chart

    async def run(self, observed: ObservedTenant) -> Sequence[Finding]:
        if (found := blocking_finding(observed)) is not None:
            return _with_conflict(found)
        tenant = observed.tenant
        owner = _NamespaceOwner(tenant)
        try:
            await self._writer.ensure(
                NAMESPACES, partial(self._render_for, observed), observed=observed.namespace, owner=owner
            )
        except ForeignObject as e:
            return _with_conflict(Finding(NAMESPACE_READY, "False", "NamespaceConflict", str(e)))
        ready = Finding(NAMESPACE_READY, "True", "Reconciled", f'namespace "{tenant.namespace}" is up to date')
        return [ready, *_scheduling_class_findings(observed), *_chart_conflicts(observed)]

    def _render_for(self, observed: ObservedTenant, current: Object | None) -> Object:
        tenant, desired = observed.tenant, _render(observed, current)
        if current is not None and ownership(current, tenant) is Ownership.HELM:
            return helm_patch(desired, current)
        if current is None and not tenant.is_root:
            annotations = desired["metadata"].get("annotations", {})
            desired["metadata"]["annotations"] = {**annotations, **record_annotations(tenant, self._now())}
        # an adopted Namespace and the root's must not be deleted with a release
        if self._chart() == "flux" and not tenant.is_root and (current is None or may_be_deleted(current)):
            return with_manager_labels(desired, tenant_release(tenant))
        return desired


def _render(observed: ObservedTenant, current: Object | None) -> Object:
    inherited = InheritedSettings(
        host=observed.host,
        services=observed.services,
        gateway=observed.gateway.namespace,
        scheduling_class=observed.scheduling_class,
    )
    return render_namespace(
        observed.tenant, observed.ancestors, inherited, parent=observed.parent_namespace, current=current
    )


def _with_conflict(finding: Finding) -> Sequence[Finding]:
    if finding.reason != "NamespaceConflict":
        return [finding]
    return [finding, Finding("NamespaceConflict", "True", "NotOwned", finding.message)]


def _scheduling_class_findings(observed: ObservedTenant) -> Sequence[Finding]:
    if not observed.scheduling_class or scheduling_class_label(observed.scheduling_class):
        return []
    message = f"the effective scheduling class is not a valid label value: {observed.scheduling_class[:_MAX_SHOWN]}"
    return [Finding("SchedulingClassInvalid", "True", "NotALabel", message)]


def _chart_conflicts(observed: ObservedTenant) -> Sequence[Finding]:
    """Differing labels of a Namespace that Helm manages are reported, not overwritten: Helm would write them again."""
    current = observed.namespace
    if current is None or ownership(current, observed.tenant) is not Ownership.HELM:
        return []
    labels = conflicting_labels(_render(observed, current), current)
    if not labels:
        return []
    message = f"the tenant's chart sets other values for labels of the namespace, which are kept: {', '.join(labels)}"
    return [Finding(CHART_CONFLICT, "True", "LabelsDiffer", message)]
