"""The kinds that the TenantGateway controller reads and writes; the cluster may serve any of them later, or never."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence

from apiserver.meta.errors import StatusError
from apiserver.meta.resource import Key, Object
from controller.runtime.own_writes import OwnWrites
from controller.tenantgateway.collected_errors import is_transient
from controller.tenantgateway.consent.references import slim_route
from controller.tenantgateway.model import RouteKind
from controller.tenantgateway.names import CERT_MANAGER_GROUP, GATEWAY_API_GROUP
from registry.cluster.event_handlers import EventHandler, NoOpEventHandler
from registry.cluster.informer import Informer
from registry.cluster.informer_factory import InformerFactory
from registry.cluster.interface import ClusterResource
from registry.cluster.object_store import key_of, version_of

HTTPROUTE_VERSIONS = ("v1",)
GRPCROUTE_VERSIONS = ("v1",)
TLSROUTE_VERSIONS = ("v1", "v1alpha3", "v1alpha2")


class WatchedKind:
    """The objects of one kind, as last observed or as written by this process since then."""

    def __init__(
        self,
        informers: InformerFactory,
        resources: Sequence[ClusterResource],
        *,
        slim: Callable[[Object], Object] = lambda obj: obj,
    ) -> None:
        """`resources` are the versions of the kind, the preferred one first."""
        first = resources[0]
        self.name = f"{first.plural}.{first.group}"
        self.kind = first.kind
        self._informers = informers
        self._slim = slim
        self._handlers: list[EventHandler] = []
        self._informer: Informer | None = None
        self._own_writes: OwnWrites[Key, Object] = OwnWrites()
        versions = [each.version for each in resources]
        self._available = informers.watch_availability(
            first.group, first.kind, versions, plural=first.plural, namespaced=first.namespaced
        )
        self._error: StatusError | None = None
        self._failed = asyncio.Event()
        self._available.subscribe(self._follow, on_error=self._set_error)

    @property
    def resource(self) -> ClusterResource:
        """The served version. Raises LookupError if there is none, so check `synced` before."""
        if self._informer is None:
            raise LookupError(f"the cluster does not serve {self.name}")
        return self._informer.resource

    @property
    def synced(self) -> bool:
        """True if the cluster serves the kind and its objects have been listed completely."""
        return self._informer is not None and self._informer.synced.is_set()

    @property
    def unavailable_reason(self) -> str:
        """The message that explains why the objects are unknown; empty if they are known or being listed."""
        if self.synced:
            return ""
        if self.not_served:
            return f"the cluster has no CustomResourceDefinition of {self.kind} ({self.name})"
        return f"{self.name} cannot be listed and watched: {self._error.message}" if self._error is not None else ""

    @property
    def not_served(self) -> bool:
        """True if discovery has shown that the cluster does not serve the kind."""
        return self._available.checked.is_set() and self._informer is None

    async def wait_until_known(self) -> None:
        """Waits until the kind is `synced` or there is an `unavailable_reason`."""
        await _wait_for_any(self._available.checked, self._failed)
        if self._informer is not None:
            await _wait_for_any(self._informer.synced, self._failed)

    def add_handler(self, handler: EventHandler) -> None:
        """Must be called before the informers run."""
        self._handlers.append(handler)

    def get(self, key: Key) -> Object | None:
        if self._informer is None:
            return None
        observed = self._informer.store.get(key)
        version = version_of(observed) if observed is not None else self._informer.seen_version
        written = self._own_writes.newer_than(key, version)
        return written if written is not None else observed

    def record_write(self, obj: Object) -> None:
        """Remembers the result of our own write until the informer delivers it."""
        self._own_writes.record(key_of(obj), version_of(obj), obj)

    def _follow(self, found: ClusterResource) -> None:
        self._informer = self._informers.get(found, transform=self._slim)
        self._informer.add_handler(_ErrorListener(self._set_error))
        for handler in self._handlers:
            self._informer.add_handler(handler)

    def _set_error(self, error: StatusError | None) -> None:
        """Ignores transient errors: an unreachable cluster does not mean that the kind cannot be listed."""
        self._error = error if error is not None and not is_transient(error) else None
        if self._error is not None:
            self._failed.set()
        else:
            self._failed.clear()


class _ErrorListener(NoOpEventHandler):
    """Reports the error that keeps a kind from being listed and watched, and None once it is listed."""

    def __init__(self, report: Callable[[StatusError | None], None]) -> None:
        self._report = report

    async def replace(self, items: Sequence[Object], rv: int) -> None:
        self._report(None)

    def set_cluster_error(self, error: StatusError | None) -> None:
        self._report(error)


async def _wait_for_any(*events: asyncio.Event) -> None:
    waits = [asyncio.ensure_future(each.wait()) for each in events]
    try:
        await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for each in waits:
            each.cancel()


class WatchedKinds:
    """All kinds of the controller. A missing TLSRoute or GRPCRoute is no error: Gateway API's standard channel lacked
    them for a long time. Without ReferenceGrants, nothing is told about references to other namespaces; without
    ListenerSets, a Gateway has 64 listeners."""

    def __init__(self, informers: InformerFactory) -> None:
        def kind(
            group: str, name: str, *versions: str, slim: Callable[[Object], Object] = lambda obj: obj
        ) -> WatchedKind:
            resources = [ClusterResource(group, version, f"{name.lower()}s", name) for version in versions]
            return WatchedKind(informers, resources, slim=slim)

        self.gateways = kind(GATEWAY_API_GROUP, "Gateway", "v1")
        self.httproutes = kind(GATEWAY_API_GROUP, "HTTPRoute", *HTTPROUTE_VERSIONS, slim=slim_route)
        self.grpcroutes = kind(GATEWAY_API_GROUP, "GRPCRoute", *GRPCROUTE_VERSIONS, slim=slim_route)
        self.tlsroutes = kind(GATEWAY_API_GROUP, "TLSRoute", *TLSROUTE_VERSIONS, slim=slim_route)
        self.grants = kind(GATEWAY_API_GROUP, "ReferenceGrant", "v1", "v1beta1")
        self.listener_sets = kind(GATEWAY_API_GROUP, "ListenerSet", "v1")
        classes = ClusterResource(GATEWAY_API_GROUP, "v1", "gatewayclasses", "GatewayClass", namespaced=False)
        self.gateway_classes = WatchedKind(informers, [classes])
        self.issuers = kind(CERT_MANAGER_GROUP, "Issuer", "v1")
        self.certificates = kind(CERT_MANAGER_GROUP, "Certificate", "v1")

        self.of_routes: Mapping[RouteKind, WatchedKind] = {
            "HTTPRoute": self.httproutes,
            "GRPCRoute": self.grpcroutes,
            "TLSRoute": self.tlsroutes,
        }
        self.all = (
            self.gateways,
            self.httproutes,
            self.grpcroutes,
            self.tlsroutes,
            self.grants,
            self.listener_sets,
            self.gateway_classes,
            self.issuers,
            self.certificates,
        )

    async def wait_until_known(self) -> None:
        """Waits until each kind is listed completely or has a reason why it cannot be."""
        for kind in self.all:
            await kind.wait_until_known()
