"""How a Tenant's life begins and ends: with our finalizer on its HelmRelease.

It ends in order: child Tenants, then what Flux uninstalls, the TenantGateway with what hangs on it, the Namespace, and
last the finalizer. What is waited for is told in the condition Terminating.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Protocol

from apiserver.meta.errors import StatusError
from apiserver.meta.resource import Key, Object
from apiserver.storage.watch_cache import Event
from controller.runtime.apply import ClusterWriter
from controller.runtime.conditions import Finding, find_condition
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
from controller.tenant.watches import Enqueue
from registry.cluster.interface import HELMRELEASES, NAMESPACES, is_terminating
from registry.cluster.object_store import ObjectLister
from registry.names import FLUX_FINALIZER, NO_DELETE_LABEL, TENANT_FINALIZER, release_name
from registry.tenant.summary import TenantSummary
from registry.tenant.tree import TenantTree

TERMINATING = "Terminating"
# More names would make a condition of which each child that goes is a new one.
_NAMED = 10
_NAMESPACE_WAITS = ("NamespaceDeletionContentFailure", "NamespaceFinalizersRemaining", "NamespaceContentRemaining")

_logger = logging.getLogger(__name__)


class NamespaceDisposition(Enum):
    """What becomes of a Namespace when its Tenant goes."""

    DELETED = "deleted"
    PROTECTED = "protected"
    """It would be deleted, and a label forbids it."""
    RETAINED = "kept"
    """It is somebody else's, Helm's, or was given to the Tenant."""


def namespace_disposition(namespace: Object, tenant: TenantSummary) -> NamespaceDisposition:
    """Only a Namespace that was made for this very Tenant goes with it (ATTACK-07); by then Helm has taken away its
    own."""
    metadata = namespace["metadata"]
    ours = read_record(namespace) == TenantRecord(tenant.key, tenant.uid) and is_created_by_us(namespace)
    if not ours or ADOPT_ANNOTATION in (metadata.get("annotations") or {}):
        return NamespaceDisposition.RETAINED
    protected = (metadata.get("labels") or {}).get(NO_DELETE_LABEL) == "true"
    return NamespaceDisposition.PROTECTED if protected else NamespaceDisposition.DELETED


@dataclass(frozen=True, slots=True, kw_only=True)
class PendingDeletion:
    """What the deletion waits for. `finding` is None where an event will soon tell more; `refusals` are the host's."""

    finding: Finding | None = None
    refusals: Sequence[StatusError] = ()


class TenantGatewayStore(Protocol):
    def tenantgateway(self, namespace: str) -> Object | None:
        """The TenantGateway of a Tenant, by its workload namespace: its metadata at least."""
        ...

    async def delete(self, tenantgateway: Object) -> None:
        """Delete it, and with it what it owns. Raises the host's StatusError, NotLeading."""
        ...


class NamespaceCleanup(Protocol):
    async def clean_up(self, namespace: Object, tenant: TenantSummary) -> None:
        """Take out of a Namespace that stays what was made in it, and of it, for the Tenant."""
        ...


class FindingWriter(Protocol):
    async def write(self, observed: ObservedTenant, findings: Sequence[Finding]) -> None: ...


class TenantFinalizer:
    """Every method raises the host's StatusError, NotLeading. The root has no finalizer: it is made anew instead, and
    all other Tenants would go with it."""

    def __init__(
        self,
        *,
        writer: ClusterWriter,
        tree: TenantTree,
        releases: ObjectLister,
        gateways: TenantGatewayStore,
        adopted_namespaces: NamespaceCleanup,
        status: FindingWriter,
    ) -> None:
        self._writer = writer
        self._tree = tree
        self._releases = releases
        self._gateways = gateways
        self._leavings = adopted_namespaces
        self._status = status

    async def ensure(self, observed: ObservedTenant) -> bool:
        """Whether the finalizer is there. If it was missing, the event that tells of the new one leads back."""
        held = _finalizers(observed.release)
        if observed.tenant.is_root or TENANT_FINALIZER in held:
            return True
        await self._writer.patch(
            HELMRELEASES, observed.release, {"metadata": {"finalizers": [*held, TENANT_FINALIZER]}}
        )
        return False

    async def finalize(self, observed: ObservedTenant) -> None:
        """Take away what can be taken away now. Without our finalizer nothing is kept waiting, and clean-up follows."""
        if TENANT_FINALIZER not in _finalizers(observed.release):
            return
        waiting = None if observed.tenant.is_root else await self._take_down(observed)
        if waiting is None:
            await self._let_go(observed)
            return
        if waiting.finding is not None:
            await self._status.write(observed, [waiting.finding])
        if waiting.refusals:
            raise waiting.refusals[0]

    async def _take_down(self, observed: ObservedTenant) -> PendingDeletion | None:
        if not observed.shares_namespace and (waiting := await self._children(observed.tenant)) is not None:
            return waiting
        if (found := _uninstalling(observed.release)) is not None:
            return PendingDeletion(finding=found)
        namespace = observed.namespace
        if namespace is None or observed.shares_namespace or ownership(namespace, observed.tenant) is Ownership.FOREIGN:
            return None
        if (waiting := await self._gateway(namespace, observed.tenant)) is not None:
            return waiting
        return await self._namespace(namespace, observed.tenant)

    async def _children(self, tenant: TenantSummary) -> PendingDeletion | None:
        children = self._tree.children(tenant.namespace)
        if not children:
            return None
        refusals = []
        for child in children:
            try:
                await self._delete_child(child)
            except StatusError as e:
                if e.code >= 500 or e.code == 429:
                    raise
                refusals.append(e)
        why = f"waits for {_named(children)} to go"
        if told := [each.message for each in refusals if not _is_passing(each)]:
            why += f"; the host refused: {told[0]}"
        return PendingDeletion(finding=_terminating("ChildTenantsRemain", why), refusals=refusals)

    async def _delete_child(self, child: TenantSummary) -> None:
        # every one that goes leads back here: those that are on their way cost no look into the store
        if child.terminating:
            return
        release = self._releases.get(Key(child.key.namespace, release_name(child.key.name)))
        if release is None or release["metadata"].get("deletionTimestamp"):
            return
        _logger.info("deleting tenant %s/%s: its parent is being deleted", *child.key)
        await self._writer.delete(HELMRELEASES, release)

    async def _gateway(self, namespace: Object, tenant: TenantSummary) -> PendingDeletion | None:
        held = self._gateways.tenantgateway(tenant.namespace)
        if held is None:
            return None
        metadata = held["metadata"]
        if metadata.get("deletionTimestamp"):
            keepers = ", ".join(metadata.get("finalizers") or ()) or "nothing any more"
            why = f"TenantGateway {tenant.namespace}/{metadata['name']} is being deleted, and waits for: {keepers}"
            return PendingDeletion(finding=_terminating("TenantGatewayRemains", why))
        if (
            namespace_disposition(namespace, tenant) is NamespaceDisposition.RETAINED
            and object_manager(held) is not ObjectManager.OURS
        ):
            return None
        try:
            await self._gateways.delete(held)
        except StatusError as e:
            return _refused(e, f"TenantGateway {tenant.namespace}/{metadata['name']}")
        return PendingDeletion()

    async def _namespace(self, namespace: Object, tenant: TenantSummary) -> PendingDeletion | None:
        if is_terminating(namespace):
            return PendingDeletion(finding=_terminating("NamespaceRemains", _waits(namespace)))
        match namespace_disposition(namespace, tenant):
            case NamespaceDisposition.RETAINED:
                if ownership(namespace, tenant) is Ownership.OURS:
                    await self._leavings.clean_up(namespace, tenant)
                return None
            case NamespaceDisposition.PROTECTED:
                why = f'namespace "{tenant.namespace}" is protected: remove its label {NO_DELETE_LABEL}'
                return PendingDeletion(finding=_terminating("NamespaceProtected", why))
        try:
            await self._writer.delete(NAMESPACES, namespace)
        except StatusError as e:
            return _refused(e, f'namespace "{tenant.namespace}"')
        return PendingDeletion()

    async def _let_go(self, observed: ObservedTenant) -> None:
        rest = [each for each in _finalizers(observed.release) if each != TENANT_FINALIZER]
        try:
            await self._writer.patch(HELMRELEASES, observed.release, {"metadata": {"finalizers": rest or None}})
        except StatusError as e:
            if e.code != 404:
                raise


class ParentDeletionHandler:
    """A listener of the Tenants' watch cache, after the tree: a Tenant on its way out looks again when a child came or
    went. What else it waits for leads back to it by itself."""

    def __init__(self, *, tree: TenantTree, enqueue: Enqueue) -> None:
        self._tree = tree
        self._enqueue = enqueue

    def on_event(self, event: Event) -> None:
        if event.type == "MODIFIED":
            return
        parent = self._tree.by_namespace(event.object.key.namespace)
        if parent is not None and parent.terminating:
            self._enqueue(parent.key)


def _finalizers(obj: Object) -> Sequence[str]:
    return obj["metadata"].get("finalizers") or ()


def _uninstalling(release: Object) -> Finding | None:
    """Flux's uninstall works inside the Namespace, so that has to wait."""
    if FLUX_FINALIZER not in _finalizers(release):
        return None
    name = f"{release['metadata']['namespace']}/{release['metadata']['name']}"
    why = f"Flux has not uninstalled the chart yet: {FLUX_FINALIZER} is on HelmRelease {name}"
    said = find_condition((release.get("status") or {}).get("conditions"), "Ready")
    if said is not None and said.get("status") == "False" and said.get("message"):
        why += f"; it says: {said['message']}"
    return _terminating("FluxUninstalls", why)


def _named(children: Sequence[TenantSummary]) -> str:
    if len(children) > _NAMED:
        return f"more than {_NAMED} child tenants"
    return f"the child tenants {', '.join(each.key.name for each in children)}"


def _waits(namespace: Object) -> str:
    """That the Namespace is being deleted, and what the host says that it waits for."""
    held = (namespace.get("status") or {}).get("conditions")
    told = [find_condition(held, type_) for type_ in _NAMESPACE_WAITS]
    reasons = [str(each.get("message")) for each in told if each is not None and each.get("status") == "True"]
    return "; ".join([f'namespace "{namespace["metadata"]["name"]}" is being deleted', *reasons])


def _refused(error: StatusError, what: str) -> PendingDeletion:
    if _is_passing(error):
        raise error
    finding = _terminating("Refused", f"the host refused to delete {what}: {error.message}")
    return PendingDeletion(finding=finding, refusals=[error])


def _is_passing(error: StatusError) -> bool:
    """A refusal is told; a Conflict, or a host that is away, is only tried again."""
    return error.code >= 500 or error.code in (401, 409, 410, 429)


def _terminating(reason: str, why: str) -> Finding:
    return Finding(TERMINATING, "True", reason, why)
