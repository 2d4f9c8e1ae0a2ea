"""The reconciler of Tenants: delete orphaned Namespaces, observe the Tenant, run each step, write the conditions."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import chain
from typing import Protocol

from apiserver.meta.errors import StatusError
from apiserver.meta.resource import Key
from controller.runtime.conditions import Finding
from controller.tenant.finalizer import SelfAccessCleanup, TenantFinalizer
from controller.tenant.helm_ownership import merge_chart_conflicts
from controller.tenant.namespace_step import NAMESPACE_READY
from controller.tenant.observe import ObservedTenant, TenantObserver
from controller.tenant.orphaned_namespaces import OrphanedNamespaceCleanup
from controller.tenant.readiness.parts import REFUSED, with_part_conditions
from controller.tenant.status import TenantStatusWriter
from controller.tenant.watches import NamespaceEventHandler
from registry.cluster.interface import is_namespace_terminating_error
from registry.tenant.tree import TenantTree

# in the message of kube-apiserver's quota plugin
_EXCEEDED = "exceeded quota: "
_WITHDRAWAL_SECONDS = 5.0


class Step(Protocol):
    @property
    def name(self) -> str: ...

    @property
    def condition(self) -> str:
        """The type of the condition that reports that the cluster has rejected a write of the step."""
        ...

    async def run(self, observed: ObservedTenant) -> Sequence[Finding]:
        """Returns the conditions that the step found. Raises StatusError, NotLeading."""
        ...


class TenantReconciler:
    """A step whose write is rejected does not stop the other steps. For a Tenant that is being deleted, no step runs.
    Nothing is written for one that `may_be_withdrawn`: it is reconciled again after a few seconds.

    The `content_steps` write into the Tenant's Namespace: they run after the others, and only if it is ready.
    """

    def __init__(
        self,
        *,
        cleanup: OrphanedNamespaceCleanup,
        observer: TenantObserver,
        finalizer: TenantFinalizer,
        steps: Sequence[Step],
        content_steps: Sequence[Step] = (),
        self_access: SelfAccessCleanup,
        status: TenantStatusWriter,
        may_be_withdrawn: Callable[[Key], bool],
        enqueue_after: Callable[[Key, float], None],
    ) -> None:
        self._may_be_withdrawn = may_be_withdrawn
        self._enqueue_after = enqueue_after
        self._self_access = self_access
        self._cleanup = cleanup
        self._observer = observer
        self._finalizer = finalizer
        self._steps = tuple(steps)
        self._content_steps = tuple(content_steps)
        self._status = status

    async def reconcile(self, key: Key) -> None:
        await self._cleanup.run(key)
        observed = self._observer.observe(key)
        if observed is None:
            await self._self_access.remove(key)
            return
        try:
            rejections = await self._reconcile(observed)
        except StatusError as e:
            if _is_rejection(e) and not is_namespace_terminating_error(e):
                # the condition cannot be written either, perhaps
                self._status.report(observed, rejection_message("change of the HelmRelease", e))
            raise
        if rejections:
            raise min(rejections, key=is_namespace_terminating_error)

    async def _reconcile(self, observed: ObservedTenant) -> Sequence[StatusError]:
        """Returns the rejections that the conditions report."""
        if observed.tenant.terminating:
            await self._finalizer.finalize(observed)
            return ()
        if self._may_be_withdrawn(observed.tenant.key):
            self._enqueue_after(observed.tenant.key, _WITHDRAWAL_SECONDS)
            return ()
        if not await self._finalizer.ensure(observed):
            return ()
        findings, rejections = await _run_steps(self._steps, observed)
        ran = [step.condition for step in self._steps]
        if any(each.type == NAMESPACE_READY and each.status == "True" for each in findings):
            if observed.namespace is None and self._content_steps:
                # just created: its event enqueues the Tenant again, behind Tenants whose Namespaces are still missing
                return ()
            more_findings, more_rejections = await _run_steps(self._content_steps, observed)
            findings, rejections = [*findings, *more_findings], [*rejections, *more_rejections]
            ran += [step.condition for step in self._content_steps]
        conditions = with_part_conditions(observed, merge_chart_conflicts(findings), ran)
        await self._status.write(observed, conditions)
        return rejections


async def _run_steps(steps: Sequence[Step], observed: ObservedTenant) -> tuple[list[Finding], list[StatusError]]:
    """The findings of the steps, and the rejections of the cluster, each of which is also one of the findings."""
    findings: list[Finding] = []
    rejections: list[StatusError] = []
    for step in steps:
        try:
            findings += await step.run(observed)
        except StatusError as e:
            if not _is_rejection(e):
                raise
            rejections.append(e)
            findings.append(Finding(step.condition, "False", REFUSED, rejection_message(step.name, e)))
    return findings, rejections


def rejection_message(what: str, error: StatusError) -> str:
    """The reason is the cluster's own. A 403 is about a quota, the rights of our account, or a policy on it."""
    if _EXCEEDED in error.message:
        remedy = "raise that quota: it also counts what the controller creates in the namespace"
    elif error.code == 413:
        remedy = "remove annotations, labels or values of the tenant"
    elif error.code == 403:
        remedy = "apply the manifests again, or change the policy"
    else:
        remedy = "correct the spec"
    return f"the cluster rejected the {what}: {error}; {remedy}"


def _is_rejection(error: StatusError) -> bool:
    """True if a retry would fail with the same error until an object or a setting changes."""
    return 400 <= error.code < 500 and error.code not in (401, 404, 409, 410, 429)


def all_tenant_keys(tree: TenantTree, namespaces: NamespaceEventHandler) -> Iterable[Key]:
    """The initial keys: the Tenants that exist, and deleted ones whose Namespaces remain."""
    return dict.fromkeys(chain((tenant.key for tenant in tree), namespaces.tenants()))
