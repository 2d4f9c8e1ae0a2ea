"""The state of delegation beside the cluster's objects, and its summaries for TenantGateways."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from apiserver.cooperative import iterate_cooperatively
from apiserver.meta.resource import Key
from controller.runtime.workqueue import Enqueue
from controller.tenantgateway.delegation.index import DelegationIndex
from controller.tenantgateway.delegation.ledger import CONNECTED, DelegationLedger, DelegationState, DelegationSummary
from controller.tenantgateway.delegation.write_errors import ForeignNames, WriteErrors
from controller.tenantgateway.model import RouteId
from controller.tenantgateway.watched_kinds import WatchedKinds


class DelegationParts:
    def __init__(
        self,
        *,
        index: DelegationIndex,
        kinds: WatchedKinds,
        enqueue: Enqueue,
        enqueue_route: Callable[[RouteId], None],
        enqueue_delegation: Callable[[RouteId], None],
    ) -> None:
        """`enqueue` is called for TenantGateways whose `summary` or `errors` change, and `enqueue_route` for routes
        whose status does."""
        self.index = index
        self._enqueue = enqueue
        self._enqueue_route = enqueue_route
        self.ledger = DelegationLedger(enqueue)
        self.errors = WriteErrors(self._on_error)
        self.foreign = {kind: ForeignNames(enqueue_delegation) for kind in index.handlers}
        for kind, handler in self.foreign.items():
            kinds.of_routes[kind].add_handler(handler)

    async def record_all(self) -> None:
        """Fills the ledger, before anybody asks for a summary."""
        async for each in iterate_cooperatively([*self.index.graph]):
            self.record_states(each)

    def record_states(self, route: RouteId) -> None:
        """Records what becomes of the delegations of a route, if it is a root."""
        graph, root = self.index.graph, self.index.graph.get(route)
        if root is None or not root.gateways:
            self.ledger.record(route, None, ())
            return
        rejection = next(filter(None, (self.index.reject_root(root, each) for each in root.gateways)), None)
        states = []
        for target in root.targets:
            edge = graph.edge(route, target)
            reason, message = edge.reason, edge.for_parent
            if rejection is not None:
                reason, message = rejection
            states.append(DelegationState(target, reason or CONNECTED, message if reason else ""))
        self.ledger.record(route, root, tuple(states))

    def summary(self, gateway: Key) -> DelegationSummary:
        """The states of the delegations of the roots that refer to a TenantGateway."""
        return self.ledger.summary(gateway)

    def errors_of(self, gateway: Key) -> Sequence[str]:
        """One message for each flat route that cannot be written, of roots in the TenantGateway's own namespace."""
        roots = (self.index.graph.get(each) for each in self.errors.roots())
        own = [each for each in roots if each and gateway in each.gateways and each.id.namespace == gateway.namespace]
        return [message for root in own for message in self.errors.of_root(root.id)]

    def _on_error(self, root: RouteId, content: RouteId) -> None:
        self._enqueue_route(root)
        self._enqueue_route(content)
        found = self.index.graph.get(root)
        for gateway in found.gateways if found is not None else ():
            self._enqueue(gateway)
