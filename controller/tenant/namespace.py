"""The step that makes a Tenant's Namespace, labels it, and keeps it so (R-054 to R-056, S-07)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime
from functools import partial

from admission.hosts import MAX_LABEL_VALUE
from admission.namespaces import is_terminating
from apiserver.resource import Object
from controller.apply import Apply, ForeignObject, additions
from controller.conditions import Finding
from controller.tenant.observed import Observed
from controller.tenant.ownership import (
    Ownership,
    annotations_of_record,
    conflict,
    is_of_former,
    ownership,
)
from registry.host import NAMESPACES
from registry.names import ANCESTOR_LABEL_PREFIX, HOST_LABEL, NO_DELETE_LABEL, host_errors
from registry.tenant.facts import TenantFacts
from registry.types import EffectiveHost

READY = "NamespaceReady"


def render_namespace(
    facts: TenantFacts,
    ancestors: Sequence[TenantFacts],
    host: EffectiveHost | None,
    *,
    parent: Object | None = None,
    current: Object | None = None,
) -> Object:
    """The Namespace of a Tenant, as a merge patch: None is what must not be there.

    `parent` is the Namespace of the parent, `current` the Namespace as it is. All ancestor labels are ours: one that
    names somebody else would open the tenant to them, and goes.
    """
    labels: dict[str, str | None] = {HOST_LABEL: host_label(host)}
    held = (current["metadata"].get("labels") or {}) if current is not None else {}
    labels |= {key: None for key in held if key.startswith(ANCESTOR_LABEL_PREFIX)}
    labels |= {ANCESTOR_LABEL_PREFIX + each.namespace: "" for each in (facts, *ancestors)}
    if facts.is_root:
        labels[NO_DELETE_LABEL] = "true"
    metadata: Object = {"name": facts.namespace, "labels": dict(sorted(labels.items()))}
    if parent is not None:
        owner = parent["metadata"]
        metadata["ownerReferences"] = [
            {"apiVersion": "v1", "kind": "Namespace", "name": owner["name"], "uid": owner["uid"]}
        ]
    return {"metadata": metadata}


def host_label(host: EffectiveHost | None) -> str | None:
    """None for a host that no label can hold, or that is no domain (N-6)."""
    if host is None or len(host.value) > MAX_LABEL_VALUE or host_errors(host.value):
        return None
    return host.value


def contradictions(desired: Object, current: Object) -> list[str]:
    """The labels of a Namespace that somebody else manages whose values are not ours."""
    held = current["metadata"].get("labels") or {}
    wanted = desired["metadata"]["labels"]
    return sorted(key for key in wanted.keys() & held.keys() if held[key] != wanted[key])


def obstacle(observed: Observed) -> Finding | None:
    """What keeps us from writing the Namespace at present. Its end is an event that leads back here."""
    facts = observed.facts
    if observed.shares_namespace:
        return Finding(READY, "False", "NamespaceConflict", f'namespace "{facts.namespace}" is an older tenant\'s')
    if observed.namespace is not None and is_terminating(observed.namespace):
        return Finding(READY, "False", "NamespaceTerminating", f'namespace "{facts.namespace}" is being deleted')
    if is_of_former(observed.namespace, facts):
        why = f'namespace "{facts.namespace}" is a former tenant\'s, and is about to be deleted'
        return Finding(READY, "False", "NamespaceOfFormerTenant", why)
    if facts.is_root:
        return None
    if not observed.ancestors:
        why = f'namespace "{facts.key.namespace}" is not the workload namespace of a tenant'
        return Finding(READY, "False", "ParentNotFound", why)
    if observed.parent_namespace is None or is_terminating(observed.parent_namespace):
        why = f'namespace "{facts.key.namespace}" does not exist, or is being deleted'
        return Finding(READY, "False", "ParentNamespaceNotReady", why)
    return None


class _NamespaceOwner:
    def __init__(self, facts: TenantFacts) -> None:
        self._facts = facts

    def refusal(self, current: Object) -> str:
        return conflict(self._facts) if ownership(current, self._facts) is Ownership.FOREIGN else ""


class NamespaceStep:
    """Findings: NamespaceReady, and while they hold, NamespaceConflict and ChartConflict."""

    name = "namespace"
    condition = READY

    def __init__(self, *, apply: Apply, now: Callable[[], datetime]) -> None:
        self._apply = apply
        self._now = now

    async def run(self, observed: Observed) -> Sequence[Finding]:
        if (found := obstacle(observed)) is not None:
            return _refused(found)
        facts = observed.facts
        owner = _NamespaceOwner(facts)
        try:
            await self._apply.ensure(
                NAMESPACES, partial(self._desire, observed), observed=observed.namespace, owner=owner
            )
        except ForeignObject as e:
            return _refused(Finding(READY, "False", "NamespaceConflict", str(e)))
        return [Finding(READY, "True", "Reconciled", f'namespace "{facts.namespace}" is as wanted'), *_chart(observed)]

    def _desire(self, observed: Observed, current: Object | None) -> Object:
        desired = _render(observed, current)
        if current is None and not observed.facts.is_root:
            desired["metadata"]["annotations"] = annotations_of_record(observed.facts, self._now())
        if current is not None and ownership(current, observed.facts) is Ownership.HELM:
            return additions(desired, current)
        return desired


def _render(observed: Observed, current: Object | None) -> Object:
    return render_namespace(
        observed.facts, observed.ancestors, observed.host, parent=observed.parent_namespace, current=current
    )


def _refused(finding: Finding) -> Sequence[Finding]:
    if finding.reason != "NamespaceConflict":
        return [finding]
    return [finding, Finding("NamespaceConflict", "True", "NotOwned", finding.message)]


def _chart(observed: Observed) -> Sequence[Finding]:
    """Of a Namespace that Helm manages we write only what Helm does not: a difference is told, not fought over."""
    current = observed.namespace
    if current is None or ownership(current, observed.facts) is not Ownership.HELM:
        return []
    labels = contradictions(_render(observed, current), current)
    if not labels:
        return []
    why = f"the tenant's chart gives the namespace other values of these labels, and keeps them: {', '.join(labels)}"
    return [Finding("ChartConflict", "True", "LabelsDiffer", why)]
