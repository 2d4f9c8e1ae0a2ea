"""Labels the namespaces that TenantGateways list, and takes the labels away again; by namespace.

Which labels are ours is written on the Namespaces themselves: so nothing is left behind, whenever and however a
TenantGateway went, and none has to wait for us to go (GW-14).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from apiserver.meta.errors import StatusError
from apiserver.meta.resource import Key
from controller.runtime.apply import Apply
from controller.tenantgateway.attachment import attachments, namespace_patch
from controller.tenantgateway.collected_errors import is_passing
from controller.tenantgateway.index import Enqueue, Namespaces, TenantGateways
from controller.tenantgateway.model import Attachments
from registry.cluster.interface import NAMESPACES, is_terminating
from registry.cluster.object_store import ObjectLister

_NOBODY = Attachments()


class AttachmentReconciler:
    """The keys are names of Namespaces. What comes of them is told to the TenantGateways that list them."""

    def __init__(
        self,
        *,
        apply: Apply,
        namespaces: ObjectLister,
        index: Namespaces,
        tenantgateways: TenantGateways,
        depth: Callable[[str], int],
        enqueue: Enqueue,
    ) -> None:
        """`namespaces` are by ('', name); `depth` tells how far a gateway's namespace is from the root of the tree."""
        self._apply = apply
        self._namespaces = namespaces
        self._index = index
        self._tenantgateways = tenantgateways
        self._depth = depth
        self._enqueue = enqueue
        self._found: dict[str, tuple[Attachments, str]] = {}

    def lost(self, gateway: Key, attached: Iterable[str]) -> Mapping[str, str]:
        """Of the namespaces that a TenantGateway lists those that another one has, with that one's namespace."""
        found = {each: self._of(each)[0].lost.get(gateway, {}).get(each) for each in attached}
        return {namespace: holder for namespace, holder in found.items() if holder}

    def refused(self, gateway: Key, attached: Iterable[str]) -> list[str]:
        """What the host refused of the labels that are this one's to write, a sentence each."""
        told = (_told(self._of(each), gateway) for each in sorted(set(attached)))
        return [problem for _, problem in told if problem]

    def everything(self) -> Iterable[str]:
        """The keys to begin with: what is listed, and what says that it was attached."""
        return dict.fromkeys((*self._tenantgateways.claimed(), *self._index.attached()))

    async def reconcile(self, key: str) -> None:
        namespace = self._namespaces.get(Key("", key))
        claimants = self._tenantgateways.claimants(key)
        there = {key: namespace} if namespace is not None else {}
        found = attachments(claimants, there, depth=self._depth)
        problem = ""
        try:
            if namespace is not None and not is_terminating(namespace):
                changes = namespace_patch(namespace, found.owners.get(key))
                if changes is not None:
                    await self._apply.patch(NAMESPACES, namespace, changes)
        except StatusError as e:
            if not is_passing(e) and e.code != 404:
                problem = f"namespace {key}: {e.message}"
            raise
        finally:
            self._keep(key, found, problem)

    def _of(self, namespace: str) -> tuple[Attachments, str]:
        return self._found.get(namespace, (_NOBODY, ""))

    def _keep(self, namespace: str, found: Attachments, problem: str) -> None:
        before, now = self._of(namespace), (found, problem)
        if before == now:
            return
        if now == (_NOBODY, ""):
            self._found.pop(namespace, None)
        else:
            self._found[namespace] = now
        # by default every TenantGateway lists the same namespaces: one that comes is no news for the others
        for gateway in self._tenantgateways.claimants(namespace):
            if _told(before, gateway.key) != _told(now, gateway.key):
                self._enqueue(gateway.key)


def _told(found: tuple[Attachments, str], gateway: Key) -> tuple[Mapping[str, str], str]:
    """What of it is in the status of a TenantGateway."""
    owned, problem = found
    return owned.lost.get(gateway, {}), problem if gateway.namespace in owned.owners.values() else ""
