"""The kinds of the host that the TenantGateway controller reads and writes, each of which may be missing."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence

from apiserver.meta.errors import StatusError
from apiserver.meta.resource import Key, Object
from controller.tenantgateway.collected_errors import is_transient
from controller.tenantgateway.names import CERT_MANAGER_GROUP, GATEWAY_API_GROUP
from controller.tenantgateway.parse import slim_route
from registry.cluster.event_handlers import EventHandler, NoOpEventHandler
from registry.cluster.informer import Informer
from registry.cluster.informer_factory import InformerFactory
from registry.cluster.interface import ClusterResource
from registry.cluster.object_store import key_of


class WatchedKind:
    """Its objects, as the host had them last; what this process has just written is seen at once."""

    def __init__(
        self,
        informers: InformerFactory,
        resources: Sequence[ClusterResource],
        *,
        slim: Callable[[Object], Object] = lambda obj: obj,
    ) -> None:
        """`resources` are the versions of the kind, the one to prefer first."""
        first = resources[0]
        self.name = f"{first.plural}.{first.group}"
        self.kind = first.kind
        self._informers = informers
        self._slim = slim
        self._handlers: list[EventHandler] = []
        self._informer: Informer | None = None
        self._written: dict[Key, Object] = {}
        self._available = informers.watch_availability(first.group, first.kind, [each.version for each in resources])
        self._refusal: StatusError | None = None
        self._refused = asyncio.Event()
        self._available.subscribe(self._follow, on_error=self._refuse)

    @property
    def resource(self) -> ClusterResource:
        """Only to be asked for a kind that is `synced`."""
        if self._informer is None:
            raise LookupError(f"the host does not serve {self.name}")
        return self._informer.resource

    @property
    def synced(self) -> bool:
        """Whether the host serves the kind, and everything that there is of it has been seen."""
        return self._informer is not None and self._informer.synced.is_set()

    @property
    def unavailable_reason(self) -> str:
        """Why its objects cannot be known, a sentence; empty if they are, or are just being read."""
        if self.synced:
            return ""
        if self.not_served:
            return f"the host has no CustomResourceDefinition of {self.kind} ({self.name})"
        return f"the host does not show {self.name}: {self._refusal.message}" if self._refusal is not None else ""

    @property
    def not_served(self) -> bool:
        """Whether the host has said that it does not serve the kind."""
        return self._available.checked.is_set() and self._informer is None

    async def wait_until_known(self) -> None:
        """Wait until the kind is `synced`, or it is known why it cannot be."""
        await _first(self._available.checked, self._refused)
        if self._informer is not None:
            await _first(self._informer.synced, self._refused)

    def add_handler(self, handler: EventHandler) -> None:
        """Before the informers run."""
        self._handlers.append(handler)

    def get(self, key: Key) -> Object | None:
        if self._informer is None:
            return None
        written = self._written.get(key)
        if written is not None:
            if self._informer.resource_version < int(written["metadata"]["resourceVersion"]):
                return written
            del self._written[key]
        return self._informer.store.get(key)

    def record_write(self, obj: Object) -> None:
        """The host's answer to a write of ours, which will take a moment to come back."""
        self._written[key_of(obj)] = obj

    def _follow(self, found: ClusterResource) -> None:
        self._informer = self._informers.get(found, transform=self._slim)
        self._informer.add_handler(_AvailabilityHandler(self._refuse))
        for handler in self._handlers:
            self._informer.add_handler(handler)

    def _refuse(self, error: StatusError | None) -> None:
        """A host that is away has refused nothing."""
        self._refusal = error if error is not None and not is_transient(error) else None
        if self._refusal is not None:
            self._refused.set()
        else:
            self._refused.clear()


class _AvailabilityHandler(NoOpEventHandler):
    """Only tells why the host does not show what there is of a kind."""

    def __init__(self, tell: Callable[[StatusError | None], None]) -> None:
        self._tell = tell

    async def replace(self, items: Sequence[Object], rv: int) -> None:
        self._tell(None)

    def set_cluster_error(self, error: StatusError | None) -> None:
        self._tell(error)


async def _first(*events: asyncio.Event) -> None:
    waits = [asyncio.ensure_future(each.wait()) for each in events]
    try:
        await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for each in waits:
            each.cancel()


class WatchedKinds:
    """TLSRoute may be missing without anything being wrong: the standard channel of Gateway API had none for long."""

    def __init__(self, informers: InformerFactory) -> None:
        def kind(
            group: str, name: str, *versions: str, slim: Callable[[Object], Object] = lambda obj: obj
        ) -> WatchedKind:
            resources = [ClusterResource(group, version, f"{name.lower()}s", name) for version in versions]
            return WatchedKind(informers, resources, slim=slim)

        self.gateways = kind(GATEWAY_API_GROUP, "Gateway", "v1")
        self.httproutes = kind(GATEWAY_API_GROUP, "HTTPRoute", "v1", slim=slim_route)
        self.tlsroutes = kind(GATEWAY_API_GROUP, "TLSRoute", "v1", "v1alpha3", "v1alpha2", slim=slim_route)
        self.issuers = kind(CERT_MANAGER_GROUP, "Issuer", "v1")
        self.certificates = kind(CERT_MANAGER_GROUP, "Certificate", "v1")

        self.all = (self.gateways, self.httproutes, self.tlsroutes, self.issuers, self.certificates)

    async def wait_until_known(self) -> None:
        """Wait until everything that there is of each kind has been seen, or it is known why it cannot be."""
        for kind in self.all:
            await kind.wait_until_known()
