"""Adds the finalizer to a Tenant's HelmRelease, and removes it after everything that belongs to the Tenant is deleted.

The order of deletion is: child Tenants, the chart (by Flux), the TenantGateway with all its dependents, the Namespace,
the Role by which its people see the Tenant, and the finalizer. The condition Terminating reports what the deletion is
waiting for. Child Tenants are deleted only if the deletion includes them: everything else waits until they are gone.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Protocol

from apiserver.meta.errors import StatusError
from apiserver.meta.resource import Key, Object
from apiserver.storage.event_history import CacheEvent
from controller.runtime.apply import ClusterWriter
from controller.runtime.conditions import Finding, find_condition, join_limited
from controller.runtime.workqueue import Enqueue
from controller.tenant.helm_ownership import ObjectManager, object_manager
from controller.tenant.namespace_ownership import (
    ADOPT_ANNOTATION,
    Ownership,
    TenantRecord,
    is_created_by_us,
    ownership,
    read_record,
)
from controller.tenant.observe import ObservedTenant
from registry.cluster.interface import HELMRELEASES, NAMESPACES, is_terminating
from registry.cluster.object_store import ObjectLister
from registry.names import (
    CASCADE_ANNOTATION,
    FINDINGS_ANNOTATION,
    FLUX_FINALIZER,
    NO_DELETE_LABEL,
    TENANT_FINALIZER,
    release_name,
    stored_key,
)
from registry.tenant.readiness import TAKEN_OVER, is_ready_by_flux
from registry.tenant.summary import TenantSummary
from registry.tenant.tree import TenantTree

_HAS_CHILDREN, _PROTECTED, _REFUSED = "HasChildTenants", "NamespaceProtected", "Refused"
HELD_UP = frozenset((_HAS_CHILDREN, _PROTECTED, _REFUSED))
"""The reasons for which a deletion waits until somebody does something."""
TERMINATING = "Terminating"
_NAMESPACE_CONDITIONS = ("NamespaceDeletionContentFailure", "NamespaceFinalizersRemaining", "NamespaceContentRemaining")

_logger = logging.getLogger(__name__)


class NamespaceDisposition(Enum):
    """The fate of a Namespace when its Tenant is deleted."""

    DELETED = "deleted"
    PROTECTED = "protected"
    """It would be deleted, but a label protects it."""
    RETAINED = "retained"
    """It was not created for this Tenant, or the Tenant adopted it."""


def namespace_disposition(namespace: Object, tenant: TenantSummary) -> NamespaceDisposition:
    """Only a Namespace that was created for exactly this Tenant is deleted with it (ATTACK-07). By the time of the
    call, Helm has deleted its own."""
    metadata = namespace["metadata"]
    is_ours = read_record(namespace) == TenantRecord(tenant.key, tenant.uid) and is_created_by_us(namespace)
    if not is_ours or ADOPT_ANNOTATION in (metadata.get("annotations") or {}):
        return NamespaceDisposition.RETAINED
    protected = (metadata.get("labels") or {}).get(NO_DELETE_LABEL) == "true"
    return NamespaceDisposition.PROTECTED if protected else NamespaceDisposition.DELETED


@dataclass(frozen=True, slots=True, kw_only=True)
class PendingDeletion:
    """The reason why the deletion is not finished. `finding` is None if an event will soon enqueue the Tenant again.
    `rejections` are the cluster's errors."""

    finding: Finding | None = None
    rejections: Sequence[StatusError] = ()


class TenantGatewayStore(Protocol):
    def tenantgateway(self, namespace: str) -> Object | None:
        """The TenantGateway in a workload namespace, with its metadata at least, or None."""
        ...

    async def delete(self, tenantgateway: Object) -> None:
        """Delete it together with the objects that it owns. Raises the cluster's StatusError, and NotLeading."""
        ...


class NamespaceCleanup(Protocol):
    async def clean_up(self, namespace: Object, tenant: TenantSummary) -> None:
        """Remove everything that was created or set for the Tenant in a Namespace that is not deleted."""
        ...


class SelfAccessCleanup(Protocol):
    async def remove(self, tenant: Key) -> None:
        """Remove what lets the people of a Tenant see it. Raises the cluster's StatusError, and NotLeading."""
        ...


class FindingWriter(Protocol):
    async def write(self, observed: ObservedTenant, findings: Sequence[Finding]) -> None: ...


def missing_finalizer(observed: ObservedTenant) -> Object:
    """The merge patch of the HelmRelease that adds the finalizer; empty if it has it, and for the root. A Tenant that
    is ready by what Flux says stays so until its status is written, which can take minutes where there are many."""
    present = _finalizers(observed.release)
    if observed.tenant.is_root or TENANT_FINALIZER in present:
        return {}
    patch: Object = {"metadata": {"finalizers": [*present, TENANT_FINALIZER]}}
    if is_ready_by_flux(observed.release):
        patch["metadata"]["annotations"] = {FINDINGS_ANNOTATION: TAKEN_OVER}
    return patch


class TenantFinalizer:
    """Every method raises the cluster's StatusError, and NotLeading. The root gets no finalizer: it is created anew
    when it is deleted, and finalizing it would delete all other Tenants."""

    def __init__(
        self,
        *,
        writer: ClusterWriter,
        tree: TenantTree,
        releases: ObjectLister,
        gateways: TenantGatewayStore,
        adopted_namespaces: NamespaceCleanup,
        self_access: SelfAccessCleanup,
        status: FindingWriter,
    ) -> None:
        self._writer = writer
        self._tree = tree
        self._releases = releases
        self._gateways = gateways
        self._adopted_namespaces = adopted_namespaces
        self._self_access = self_access
        self._status = status

    async def ensure(self, observed: ObservedTenant) -> bool:
        """Add the finalizer if it is missing. Returns False if it has been added: the event of this write enqueues the
        Tenant again."""
        if not (patch := missing_finalizer(observed)):
            return True
        await self._writer.patch(HELMRELEASES, observed.release, patch)
        return False

    async def finalize(self, observed: ObservedTenant) -> None:
        """Delete what can be deleted now, and remove the finalizer when nothing remains. Does nothing for a
        Tenant without our finalizer: its Namespace is deleted by the cleanup of orphaned Namespaces."""
        if TENANT_FINALIZER not in _finalizers(observed.release):
            return
        pending = None if observed.tenant.is_root else await self._delete_in_order(observed)
        if pending is None:
            # last, so that its people see the Tenant to the end
            pending = await self._remove_self_access(observed.tenant)
        if pending is None:
            await self._remove_finalizer(observed)
            return
        if pending.finding is not None:
            await self._status.write(observed, [pending.finding])
        if pending.rejections:
            raise pending.rejections[0]

    async def _delete_in_order(self, observed: ObservedTenant) -> PendingDeletion | None:
        if not observed.shares_namespace and (pending := await self._delete_children(observed)) is not None:
            return pending
        if (found := _uninstalling(observed.release)) is not None:
            return PendingDeletion(finding=found)
        namespace = observed.namespace
        if namespace is None or observed.shares_namespace or ownership(namespace, observed.tenant) is Ownership.FOREIGN:
            return None
        if (pending := await self._delete_gateway(namespace, observed.tenant)) is not None:
            return pending
        return await self._delete_namespace(namespace, observed.tenant)

    async def _delete_children(self, observed: ObservedTenant) -> PendingDeletion | None:
        tenant = observed.tenant
        children = self._tree.children(tenant.namespace)
        if not children:
            return None
        if not _includes_children(observed):
            return PendingDeletion(finding=_held(tenant))
        if tenant.foreground and not tenant.allow_cascade:
            # the garbage collector removes the finalizer soon, and a new process would not know of it
            await self._allow_cascade(observed.release)
            return PendingDeletion()
        rejections = []
        for child in children:
            try:
                await self._delete_child(child)
            except StatusError as e:
                if e.code >= 500 or e.code == 429:
                    raise
                rejections.append(e)
        # the children are not named: users who may get the Tenant need not be allowed to get them (ATTACK-15)
        message = f"waiting for the deletion of the child tenants in namespace {tenant.namespace}"
        if lasting := [each for each in rejections if not _is_transient(each)]:
            message += f"; the cluster rejected that of at least one, which the log names: {lasting[0].reason}"
        return PendingDeletion(finding=_terminating("ChildTenantsRemain", message), rejections=rejections)

    async def _delete_child(self, child: TenantSummary) -> None:
        """Delete a child, and have its own children deleted with it, also if its deletion began without them."""
        is_parent = not child.allow_cascade and bool(self._tree.children(child.namespace))
        # the deletion of every child enqueues the parent again: children that are being deleted already cost no lookup
        if child.terminating and not is_parent:
            return
        release = self._releases.get(Key(child.key.namespace, release_name(child.key.name)))
        if release is None:
            return
        if is_parent:
            release = await self._allow_cascade(release)
        if release["metadata"].get("deletionTimestamp"):
            return
        _logger.info("deleting tenant %s/%s: its parent is being deleted", *child.key)
        await self._writer.delete(HELMRELEASES, release)

    async def _allow_cascade(self, release: Object) -> Object:
        """Set the Tenant's annotation, which lasts as long as the deletion, and return the HelmRelease after it."""
        annotations = {stored_key(CASCADE_ANNOTATION): "true"}
        return await self._writer.patch(HELMRELEASES, release, {"metadata": {"annotations": annotations}})

    async def _delete_gateway(self, namespace: Object, tenant: TenantSummary) -> PendingDeletion | None:
        gateway = self._gateways.tenantgateway(tenant.namespace)
        if gateway is None:
            return None
        metadata = gateway["metadata"]
        if metadata.get("deletionTimestamp"):
            finalizers = ", ".join(metadata.get("finalizers") or ()) or "none"
            message = f"TenantGateway {tenant.namespace}/{metadata['name']} is being deleted; finalizers: {finalizers}"
            return PendingDeletion(finding=_terminating("TenantGatewayRemains", message))
        if (
            namespace_disposition(namespace, tenant) is NamespaceDisposition.RETAINED
            and object_manager(gateway) is not ObjectManager.OURS
        ):
            return None
        try:
            await self._gateways.delete(gateway)
        except StatusError as e:
            return _rejected(e, f"TenantGateway {tenant.namespace}/{metadata['name']}")
        return PendingDeletion()

    async def _delete_namespace(self, namespace: Object, tenant: TenantSummary) -> PendingDeletion | None:
        if is_terminating(namespace):
            return PendingDeletion(finding=_terminating("NamespaceRemains", _deletion_progress(namespace)))
        match namespace_disposition(namespace, tenant):
            case NamespaceDisposition.RETAINED:
                if ownership(namespace, tenant) is Ownership.OURS:
                    await self._adopted_namespaces.clean_up(namespace, tenant)
                return None
            case NamespaceDisposition.PROTECTED:
                message = f'namespace "{tenant.namespace}" is protected: remove its label {NO_DELETE_LABEL}'
                return PendingDeletion(finding=_terminating(_PROTECTED, message))
        try:
            await self._writer.delete(NAMESPACES, namespace)
        except StatusError as e:
            return _rejected(e, f'namespace "{tenant.namespace}"')
        return PendingDeletion()

    async def _remove_self_access(self, tenant: TenantSummary) -> PendingDeletion | None:
        try:
            await self._self_access.remove(tenant.key)
        except StatusError as e:
            return _rejected(e, f"the Role or RoleBinding of the tenant in {tenant.key.namespace}")
        return None

    async def _remove_finalizer(self, observed: ObservedTenant) -> None:
        rest = [each for each in _finalizers(observed.release) if each != TENANT_FINALIZER]
        if rest:
            # nothing is written after our finalizer is gone
            message = f"everything of the tenant is deleted; finalizers of others remain: {join_limited(rest)}"
            await self._status.write(observed, [_terminating("FinalizersRemain", message)])
        try:
            await self._writer.patch(HELMRELEASES, observed.release, {"metadata": {"finalizers": rest or None}})
        except StatusError as e:
            if e.code != 404:
                raise


class RecordedTenants(Protocol):
    def tenant_of(self, namespace: str) -> Key | None:
        """The Tenant for which a Namespace was created."""
        ...


class ParentDeletionHandler:
    """A listener of the Tenants' watch cache, subscribed after the tree. It enqueues a Tenant that is being deleted, or
    that has left its Namespace behind, when a child has been created or deleted. Everything else that a deletion waits
    for has its own event handlers."""

    def __init__(self, *, tree: TenantTree, namespaces: RecordedTenants, enqueue: Enqueue) -> None:
        self._tree = tree
        self._namespaces = namespaces
        self._enqueue = enqueue

    def on_event(self, event: CacheEvent) -> None:
        if event.type == "MODIFIED":
            return
        namespace = event.object.key.namespace
        parent = self._tree.by_namespace(namespace)
        if parent is None:
            former = self._namespaces.tenant_of(namespace)
            if former is not None:
                self._enqueue(former)
        elif parent.terminating:
            self._enqueue(parent.key)


def _includes_children(observed: ObservedTenant) -> bool:
    """True if the deletion of the Tenant was requested together with its children, or deletes the namespace that it is
    in. Nobody else who deletes the HelmRelease need know of the children."""
    above = observed.parent_namespace
    return observed.tenant.cascades or (above is not None and is_terminating(above))


def _held(tenant: TenantSummary) -> Finding:
    message = (
        f"the tenant has child tenants in namespace {tenant.namespace}: delete them, or have them deleted with it: "
        f'kubectl delete --cascade=foreground, or the annotation {CASCADE_ANNOTATION}: "true" on the tenant'
    )
    return _terminating(_HAS_CHILDREN, message)


def _finalizers(obj: Object) -> Sequence[str]:
    return obj["metadata"].get("finalizers") or ()


def _uninstalling(release: Object) -> Finding | None:
    """The finding that Flux is still uninstalling the chart, which needs the Namespace; None if it is not."""
    if FLUX_FINALIZER not in _finalizers(release):
        return None
    name = f"{release['metadata']['namespace']}/{release['metadata']['name']}"
    message = f"Flux has not uninstalled the chart yet: {FLUX_FINALIZER} is on HelmRelease {name}"
    ready = find_condition((release.get("status") or {}).get("conditions"), "Ready")
    if ready is not None and ready.get("status") == "False" and ready.get("message"):
        message += f"; Flux reports: {ready['message']}"
    return _terminating("FluxUninstalls", message)


def _deletion_progress(namespace: Object) -> str:
    """A message that the Namespace is being deleted, with the reasons for the delay that its conditions give."""
    conditions = (namespace.get("status") or {}).get("conditions")
    found = [find_condition(conditions, type_) for type_ in _NAMESPACE_CONDITIONS]
    reasons = [str(each.get("message")) for each in found if each is not None and each.get("status") == "True"]
    return "; ".join([f'namespace "{namespace["metadata"]["name"]}" is being deleted', *reasons])


def _rejected(error: StatusError, what: str) -> PendingDeletion:
    if _is_transient(error):
        raise error
    finding = _terminating(_REFUSED, f"the cluster rejected the deletion of {what}: {error.message}")
    return PendingDeletion(finding=finding, rejections=[error])


def _is_transient(error: StatusError) -> bool:
    """True if the deletion is just retried, as after a Conflict or an outage; other rejections are shown in the
    condition."""
    return error.code >= 500 or error.code in (401, 409, 410, 429)


def _terminating(reason: str, message: str) -> Finding:
    return Finding(TERMINATING, "True", reason, message)
