"""Brings the host to what a Tenant asks for: clean up, observe, take each step, write what was found."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import chain
from typing import Protocol

from apiserver.meta.errors import StatusError
from apiserver.meta.resource import Key
from controller.runtime.conditions import Finding
from controller.tenant.finalizer import TenantFinalizer
from controller.tenant.helm_ownership import merge_chart_conflicts
from controller.tenant.namespace_step import NAMESPACE_READY
from controller.tenant.observe import ObservedTenant, TenantObserver
from controller.tenant.orphaned_namespaces import OrphanedNamespaceCleanup
from controller.tenant.status import TenantStatusWriter
from controller.tenant.watches import NamespaceEventHandler
from registry.cluster.interface import is_namespace_terminating_error
from registry.tenant.tree import TenantTree


class Step(Protocol):
    @property
    def name(self) -> str: ...

    @property
    def condition(self) -> str:
        """The type of the condition that says so when the host refuses what the step writes."""
        ...

    async def run(self, observed: ObservedTenant) -> Sequence[Finding]:
        """What was found. Raises StatusError, NotLeading."""
        ...


class TenantReconciler:
    """A step that the host refuses stops no other step. Of a Tenant that is being deleted nothing is made any more.

    The steps `inside` write into the Tenant's Namespace: they come after the others, and only if it is ready.
    """

    def __init__(
        self,
        *,
        cleanup: OrphanedNamespaceCleanup,
        observer: TenantObserver,
        finalizer: TenantFinalizer,
        steps: Sequence[Step],
        content_steps: Sequence[Step] = (),
        status: TenantStatusWriter,
    ) -> None:
        self._cleanup = cleanup
        self._observer = observer
        self._lifecycle = finalizer
        self._steps = tuple(steps)
        self._inside = tuple(content_steps)
        self._status = status

    async def reconcile(self, key: Key) -> None:
        await self._cleanup.run(key)
        observed = self._observer.observe(key)
        if observed is None:
            return
        if observed.tenant.terminating:
            await self._lifecycle.finalize(observed)
            return
        if not await self._lifecycle.ensure(observed):
            return
        findings, refusals = await _take(self._steps, observed)
        if any(each.type == NAMESPACE_READY and each.status == "True" for each in findings):
            if observed.namespace is None and self._inside:
                # just made: the event that tells so leads back here, after the others that wait for their Namespaces
                return
            found, refused = await _take(self._inside, observed)
            findings, refusals = [*findings, *found], [*refusals, *refused]
        await self._status.write(observed, merge_chart_conflicts(findings))
        if refusals:
            raise min(refusals, key=is_namespace_terminating_error)


async def _take(steps: Sequence[Step], observed: ObservedTenant) -> tuple[list[Finding], list[StatusError]]:
    """What the steps found, and what the host refused, which is among it."""
    findings: list[Finding] = []
    refusals: list[StatusError] = []
    for step in steps:
        try:
            findings += await step.run(observed)
        except StatusError as e:
            if not _is_refusal(e):
                raise
            refusals.append(e)
            findings.append(Finding(step.condition, "False", "Refused", f"the host refused the {step.name}: {e}"))
    return findings, refusals


def _is_refusal(error: StatusError) -> bool:
    """Whether the host answered, and will answer the same until something is changed."""
    return 400 <= error.code < 500 and error.code not in (401, 404, 409, 410, 429)


def all_tenant_keys(tree: TenantTree, namespaces: NamespaceEventHandler) -> Iterable[Key]:
    """The keys to begin with: the Tenants that exist, and those whose Namespaces are left."""
    return dict.fromkeys(chain((tenant.key for tenant in tree), namespaces.tenants()))
