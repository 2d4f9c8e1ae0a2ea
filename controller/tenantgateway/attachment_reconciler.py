"""Labels the namespaces that TenantGatewayIndex list, and takes the labels away again; by namespace.

Which labels are ours is written on the Namespaces themselves: so nothing is left behind, whenever and however a
TenantGateway went, and none has to wait for us to go (GW-14).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from apiserver.meta.errors import StatusError
from apiserver.meta.resource import Key
from controller.runtime.apply import ClusterWriter
from controller.tenantgateway.attachment import assign_attachments, namespace_patch
from controller.tenantgateway.collected_errors import is_transient
from controller.tenantgateway.index import Enqueue, NamespaceIndex, TenantGatewayIndex
from controller.tenantgateway.model import Attachments
from registry.cluster.interface import NAMESPACES, is_terminating
from registry.cluster.object_store import ObjectLister

_NO_ATTACHMENTS = Attachments()


class AttachmentReconciler:
    """The keys are names of Namespaces. What comes of them is told to the TenantGatewayIndex that list them."""

    def __init__(
        self,
        *,
        writer: ClusterWriter,
        namespaces: ObjectLister,
        index: NamespaceIndex,
        tenantgateways: TenantGatewayIndex,
        depth: Callable[[str], int],
        enqueue: Enqueue,
    ) -> None:
        """`namespaces` are by ('', name); `depth` tells how far a gateway's namespace is from the root of the tree."""
        self._writer = writer
        self._namespaces = namespaces
        self._index = index
        self._tenantgateways = tenantgateways
        self._depth = depth
        self._enqueue = enqueue
        self._found: dict[str, tuple[Attachments, str]] = {}

    def attached_elsewhere(self, gateway: Key, attached: Iterable[str]) -> Mapping[str, str]:
        """Of the namespaces that a TenantGateway lists those that another one has, with that one's namespace."""
        found = {each: self._result_of(each)[0].attached_elsewhere.get(gateway, {}).get(each) for each in attached}
        return {namespace: holder for namespace, holder in found.items() if holder}

    def errors(self, gateway: Key, attached: Iterable[str]) -> list[str]:
        """What the host refused of the labels that are this one's to write, a sentence each."""
        told = (_status_of(self._result_of(each), gateway) for each in sorted(set(attached)))
        return [problem for _, problem in told if problem]

    def initial_keys(self) -> Iterable[str]:
        """The keys to begin with: what is listed, and what says that it was attached."""
        return dict.fromkeys((*self._tenantgateways.listed_namespaces(), *self._index.attached()))

    async def reconcile(self, key: str) -> None:
        namespace = self._namespaces.get(Key("", key))
        claimants = self._tenantgateways.claimants(key)
        there = {key: namespace} if namespace is not None else {}
        found = assign_attachments(claimants, there, depth=self._depth)
        problem = ""
        try:
            if namespace is not None and not is_terminating(namespace):
                changes = namespace_patch(namespace, found.owners.get(key))
                if changes is not None:
                    await self._writer.patch(NAMESPACES, namespace, changes)
        except StatusError as e:
            if not is_transient(e) and e.code != 404:
                problem = f"namespace {key}: {e.message}"
            raise
        finally:
            self._record(key, found, problem)

    def _result_of(self, namespace: str) -> tuple[Attachments, str]:
        return self._found.get(namespace, (_NO_ATTACHMENTS, ""))

    def _record(self, namespace: str, found: Attachments, problem: str) -> None:
        before, now = self._result_of(namespace), (found, problem)
        if before == now:
            return
        if now == (_NO_ATTACHMENTS, ""):
            self._found.pop(namespace, None)
        else:
            self._found[namespace] = now
        # by default every TenantGateway lists the same namespaces: one that comes is no news for the others
        for gateway in self._tenantgateways.claimants(namespace):
            if _status_of(before, gateway.key) != _status_of(now, gateway.key):
                self._enqueue(gateway.key)


def _status_of(found: tuple[Attachments, str], gateway: Key) -> tuple[Mapping[str, str], str]:
    """What of it is in the status of a TenantGateway."""
    owned, problem = found
    return owned.attached_elsewhere.get(gateway, {}), problem if gateway.namespace in owned.owners.values() else ""
