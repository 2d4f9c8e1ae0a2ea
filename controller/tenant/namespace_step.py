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
from controller.tenant.helm_ownership import (
    CHART_CONFLICT,
    MANAGED_BY_LABEL,
    ChartMode,
    is_live,
    release_of,
    takeover_remedy,
    tenant_release,
    with_manager_labels,
)
from controller.tenant.namespace_ownership import (
    Ownership,
    conflict_message,
    former_tenant_message,
    is_of_former_tenant,
    may_be_deleted,
    ownership,
    read_record,
    record_annotations,
)
from controller.tenant.observe import ObservedTenant
from controller.tenant.planning.context import PlanningContext
from registry.cluster.interface import NAMESPACES, is_terminating
from registry.names import (
    ANCESTOR_LABEL_PREFIX,
    GATEWAY_ATTACHED_BY_ANNOTATION,
    GATEWAY_LABEL,
    HOST_LABEL,
    MAX_LABEL_VALUE,
    NAMESPACE_LABEL_PREFIX,
    NO_DELETE_LABEL,
    RELEASE_NAME_ANNOTATION,
    RELEASE_NAMESPACE_ANNOTATION,
    SCHEDULING_CLASS_LABEL,
    SYSTEM_LABEL,
    host_errors,
)
from registry.tenant.inheritance import NO_SERVICES, Services
from registry.tenant.summary import TenantSummary
from registry.tenant.tree import EffectiveHost

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
    another tenant would grant it access, and is removed. So is the label of the platform's Namespaces, whose Pods reach
    those of all tenants.
    """
    current_labels = _strings(current, "labels")
    labels: dict[str, str | None] = {
        HOST_LABEL: host_label(inherited.host),
        SCHEDULING_CLASS_LABEL: scheduling_class_label(inherited.scheduling_class),
    }
    labels |= {NAMESPACE_LABEL_PREFIX + name: owner or None for name, owner in inherited.services.by_name().items()}
    labels |= {key: None for key in current_labels if key.startswith(ANCESTOR_LABEL_PREFIX)}
    labels |= {ANCESTOR_LABEL_PREFIX + each.namespace: "" for each in (tenant, *ancestors)}
    if SYSTEM_LABEL in current_labels:
        labels[SYSTEM_LABEL] = None
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
    """The reason why the Namespace must not be written now. An event enqueues the Tenant once it no longer holds."""
    tenant = observed.tenant
    if observed.shares_namespace:
        message = f'namespace "{tenant.namespace}" belongs to an older tenant; create this one under another name'
        return Finding(NAMESPACE_READY, "False", "NamespaceConflict", message)
    if observed.namespace is not None and is_terminating(observed.namespace):
        message = (
            f'namespace "{tenant.namespace}" is being deleted, and is created again after that; if it stays, its '
            "conditions tell what remains"
        )
        return Finding(NAMESPACE_READY, "False", "NamespaceTerminating", message)
    if is_of_former_tenant(observed.namespace, tenant):
        if observed.has_children:
            return Finding(NAMESPACE_READY, "False", "NamespaceConflict", former_tenant_message(tenant))
        message = f'namespace "{tenant.namespace}" belongs to a deleted tenant; wait, it is about to be deleted'
        return Finding(NAMESPACE_READY, "False", "NamespaceOfFormerTenant", message)
    if tenant.is_root:
        return None
    if not observed.ancestors:
        message = (
            f'namespace "{tenant.key.namespace}" is not the workload namespace of a tenant; create that tenant, or '
            "delete this one"
        )
        return Finding(NAMESPACE_READY, "False", "ParentNotFound", message)
    if observed.parent_namespace is None or is_terminating(observed.parent_namespace):
        message = (
            f'namespace "{tenant.key.namespace}" does not exist or is being deleted; the conditions of the parent '
            "tenant tell why"
        )
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

    def planning(self, context: PlanningContext) -> NamespaceStep:
        return NamespaceStep(writer=context.writer, now=self._now, chart=self._chart)

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
        return [
            ready,
            *_scheduling_class_findings(observed),
            *_system_label_findings(observed),
            *self._chart_conflicts(observed),
        ]

    def _render_for(self, observed: ObservedTenant, current: Object | None) -> Object:
        tenant, desired = observed.tenant, _render(observed, current)
        if current is not None and ownership(current, tenant) is Ownership.HELM:
            return self._render_helms(observed, desired, current)
        if current is None and not tenant.is_root:
            annotations = desired["metadata"].get("annotations", {})
            desired["metadata"]["annotations"] = {**annotations, **record_annotations(tenant, self._now())}
        # an adopted Namespace and the root's must not be deleted with a release
        if self._chart() == "flux" and not tenant.is_root and (current is None or may_be_deleted(current)):
            return with_manager_labels(desired, tenant_release(tenant))
        return desired

    def _render_helms(self, observed: ObservedTenant, desired: Object, current: Object) -> Object:
        """A Namespace that the chart has left behind becomes the Tenant's; it is kept if we did not create it."""
        if not self._was_left_behind(observed, current):
            return helm_patch(desired, current)
        tenant, metadata = observed.tenant, desired["metadata"]
        annotations: Object = {RELEASE_NAME_ANNOTATION: None, RELEASE_NAMESPACE_ANNOTATION: None}
        record = read_record(current)
        if not tenant.is_root and (record is None or record.tenant != tenant.key or record.uid != tenant.uid):
            annotations |= record_annotations(tenant, self._now())
        return {
            "metadata": {
                **metadata,
                "labels": {**metadata["labels"], MANAGED_BY_LABEL: None},
                "annotations": {**(metadata.get("annotations") or {}), **annotations},
            }
        }

    def _was_left_behind(self, observed: ObservedTenant, current: Object) -> bool:
        """True for a Namespace of the Tenant's chart that nobody renders any more."""
        is_own = release_of(current) == tenant_release(observed.tenant)
        return is_own and self._chart() == "none" and not is_live(observed.release)

    def _chart_conflicts(self, observed: ObservedTenant) -> Sequence[Finding]:
        """Differing labels of a Namespace that Helm manages are reported, not overwritten: Helm would write them
        again."""
        current, chart = observed.namespace, self._chart()
        if current is None or ownership(current, observed.tenant) is not Ownership.HELM:
            return []
        labels = conflicting_labels(_render(observed, current), current)
        if not labels or self._was_left_behind(observed, current):
            return []
        message = (
            f"the tenant's chart sets other values for labels of the namespace, which are kept: {', '.join(labels)}"
        )
        if chart == "none":
            message += f"; {takeover_remedy(release_of(current), observed.tenant.namespace)}"
        return [Finding(CHART_CONFLICT, "True", "LabelsDiffer", message)]


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
    message = (
        f"the effective scheduling class is not a valid label value: {observed.scheduling_class[:_MAX_SHOWN]}; correct "
        "spec.schedulingClass, or that of the ancestor"
    )
    return [Finding("SchedulingClassInvalid", "True", "NotALabel", message)]


def _system_label_findings(observed: ObservedTenant) -> Sequence[Finding]:
    """Holds in the pass that removes the label; so there is an Event of it."""
    current = observed.namespace
    if SYSTEM_LABEL not in _strings(current, "labels") or current is None:
        return []
    if ownership(current, observed.tenant) is Ownership.HELM:
        return []
    message = f"the label {SYSTEM_LABEL} was removed from the namespace: it opens all tenants to its Pods"
    return [Finding("SystemLabelRemoved", "True", "NotOfThePlatform", message)]
