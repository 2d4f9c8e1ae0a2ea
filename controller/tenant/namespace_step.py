"""The step that makes a Tenant's Namespace, labels it, and keeps it so (R-054 to R-056, ATTACK-07)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import partial

from apiserver.meta.label_validation import label_value_errors
from apiserver.meta.resource import Object
from controller.runtime.apply import ClusterWriter, ForeignObject, missing_fields
from controller.runtime.conditions import Finding
from controller.tenant.helm_ownership import CHART_CONFLICT, ChartMode, tenant_release, with_manager_labels
from controller.tenant.namespace_ownership import (
    Ownership,
    conflict_message,
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
# A condition shows what is wrong, and not all of it.
_SHOWN = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class InheritedSettings:
    """What the labels of a Namespace say besides its place: of the Tenant, or of an ancestor.

    `gateway` is the workload namespace of the Gateway's owner, empty if the tree gives none.
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
    """The Namespace of a Tenant, as a merge patch: None is what must not be there (R-054 to R-074).

    `parent` is the Namespace of the parent, `current` the Namespace as it is. All ancestor labels are ours: one that
    names somebody else would open the tenant to them, and goes.
    """
    held = _strings(current, "labels")
    labels: dict[str, str | None] = {
        HOST_LABEL: host_label(inherited.host),
        SCHEDULING_CLASS_LABEL: scheduling_class_label(inherited.scheduling_class),
    }
    labels |= {NAMESPACE_LABEL_PREFIX + name: owner or None for name, owner in inherited.services.by_name().items()}
    labels |= {key: None for key in held if key.startswith(ANCESTOR_LABEL_PREFIX)}
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
        metadata["ownerReferences"] = [
            {"apiVersion": "v1", "kind": "Namespace", "name": owner["name"], "uid": owner["uid"]}
        ]
    return {"metadata": metadata}


def host_label(host: EffectiveHost | None) -> str | None:
    """None for a host that no label can hold, or that is no domain (FACT-6)."""
    if host is None or len(host.value) > MAX_LABEL_VALUE or host_errors(host.value):
        return None
    return host.value


def scheduling_class_label(name: str) -> str | None:
    """None for a name that no label can hold."""
    return name if name and not label_value_errors(name) else None


def _is_attached(namespace: Object | None) -> bool:
    """Whether the gateway label is the gateway part's: where the tree gives no owner, it stays as it is."""
    return GATEWAY_ATTACHED_BY_ANNOTATION in _strings(namespace, "annotations")


def _strings(namespace: Object | None, field: str) -> Mapping[str, str]:
    return (namespace["metadata"].get(field) or {}) if namespace is not None else {}


def conflicting_labels(desired: Object, current: Object) -> list[str]:
    """The labels of a Namespace that somebody else manages whose values are not ours. The chart writes empty ones."""
    held, wanted = _strings(current, "labels"), desired["metadata"]["labels"]
    return sorted(key for key in wanted.keys() & held.keys() if _said(key, held[key]) != _said(key, wanted[key]))


def _said(key: str, value: str | None) -> str | None:
    return (value or None) if key.startswith(NAMESPACE_LABEL_PREFIX) else value


def helm_patch(desired: Object, current: Object) -> Object:
    """What we write on a Namespace that Helm manages: what is missing, and the gateway label that is not Helm's but the
    gateway part's."""
    added = missing_fields(desired, current)
    if desired["metadata"]["labels"].get(GATEWAY_LABEL) and _is_attached(current):
        metadata = added.setdefault("metadata", {})
        metadata["labels"] = {**metadata.get("labels", {}), GATEWAY_LABEL: desired["metadata"]["labels"][GATEWAY_LABEL]}
        metadata["annotations"] = {**metadata.get("annotations", {}), GATEWAY_ATTACHED_BY_ANNOTATION: None}
    return added


def blocking_finding(observed: ObservedTenant) -> Finding | None:
    """What keeps us from writing the Namespace at present. Its end is an event that leads back here."""
    tenant = observed.tenant
    if observed.shares_namespace:
        return Finding(
            NAMESPACE_READY, "False", "NamespaceConflict", f'namespace "{tenant.namespace}" is an older tenant\'s'
        )
    if observed.namespace is not None and is_terminating(observed.namespace):
        return Finding(
            NAMESPACE_READY, "False", "NamespaceTerminating", f'namespace "{tenant.namespace}" is being deleted'
        )
    if is_of_former_tenant(observed.namespace, tenant):
        why = f'namespace "{tenant.namespace}" is a former tenant\'s, and is about to be deleted'
        return Finding(NAMESPACE_READY, "False", "NamespaceOfFormerTenant", why)
    if tenant.is_root:
        return None
    if not observed.ancestors:
        why = f'namespace "{tenant.key.namespace}" is not the workload namespace of a tenant'
        return Finding(NAMESPACE_READY, "False", "ParentNotFound", why)
    if observed.parent_namespace is None or is_terminating(observed.parent_namespace):
        why = f'namespace "{tenant.key.namespace}" does not exist, or is being deleted'
        return Finding(NAMESPACE_READY, "False", "ParentNamespaceNotReady", why)
    return None


class _NamespaceOwner:
    def __init__(self, tenant: TenantSummary) -> None:
        self._facts = tenant

    def refusal(self, current: Object) -> str:
        return conflict_message(self._facts) if ownership(current, self._facts) is Ownership.FOREIGN else ""


class NamespaceStep:
    """Findings: NamespaceReady, and while they hold, NamespaceConflict and ChartConflict."""

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
            return _refused(found)
        tenant = observed.tenant
        owner = _NamespaceOwner(tenant)
        try:
            await self._writer.ensure(
                NAMESPACES, partial(self._desire, observed), observed=observed.namespace, owner=owner
            )
        except ForeignObject as e:
            return _refused(Finding(NAMESPACE_READY, "False", "NamespaceConflict", str(e)))
        ready = Finding(NAMESPACE_READY, "True", "Reconciled", f'namespace "{tenant.namespace}" is as wanted')
        return [ready, *_scheduling(observed), *_chart(observed)]

    def _desire(self, observed: ObservedTenant, current: Object | None) -> Object:
        tenant, desired = observed.tenant, _render(observed, current)
        if current is not None and ownership(current, tenant) is Ownership.HELM:
            return helm_patch(desired, current)
        if current is None and not tenant.is_root:
            annotations = desired["metadata"].get("annotations", {})
            desired["metadata"]["annotations"] = {**annotations, **record_annotations(tenant, self._now())}
        # what was adopted, and the root, must not go with a release
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


def _refused(finding: Finding) -> Sequence[Finding]:
    if finding.reason != "NamespaceConflict":
        return [finding]
    return [finding, Finding("NamespaceConflict", "True", "NotOwned", finding.message)]


def _scheduling(observed: ObservedTenant) -> Sequence[Finding]:
    if not observed.scheduling_class or scheduling_class_label(observed.scheduling_class):
        return []
    why = f"the name of the scheduling class in effect is no value of a label: {observed.scheduling_class[:_SHOWN]}"
    return [Finding("SchedulingClassInvalid", "True", "NotALabel", why)]


def _chart(observed: ObservedTenant) -> Sequence[Finding]:
    """Of a Namespace that Helm manages we write only what Helm does not: a difference is told, not fought over."""
    current = observed.namespace
    if current is None or ownership(current, observed.tenant) is not Ownership.HELM:
        return []
    labels = conflicting_labels(_render(observed, current), current)
    if not labels:
        return []
    why = f"the tenant's chart gives the namespace other values of these labels, and keeps them: {', '.join(labels)}"
    return [Finding(CHART_CONFLICT, "True", "LabelsDiffer", why)]
