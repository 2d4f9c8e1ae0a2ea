"""A kind that the cluster may serve now, later or no longer, and whose objects are watched while it does."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence

from apiserver.meta.errors import StatusError
from apiserver.meta.resource import Object
from registry.cluster.event_handlers import EventHandler, NoOpEventHandler
from registry.cluster.informer_factory import Availability, InformerFactory
from registry.cluster.interface import ClusterResource, ClusterUnreachable, NotServed

# A starting kube-apiserver may omit the kinds of CustomResourceDefinitions for a moment.
_GONE_SECONDS = 10.0


class ServedKind(NoOpEventHandler):
    """`on_change` is called when the kind begins or ceases to be served, `on_gone` before that in the latter case."""

    def __init__(
        self,
        informers: InformerFactory,
        resource: ClusterResource,
        handlers: Sequence[EventHandler],
        *,
        on_change: Callable[[], None],
        on_gone: Callable[[], None] = lambda: None,
        name: str = "",
    ) -> None:
        """With `name`, only objects of this name are watched, and no right to list others is needed. The handlers are
        called before this one."""
        self.resource = resource
        self._informers = informers
        self._handlers = tuple(handlers)
        self._on_change = on_change
        self._on_gone = on_gone
        self._selector = f"metadata.name={name}" if name else ""
        self._error: StatusError | None = None
        self._listed = self._gone = False
        self._loss: asyncio.TimerHandle | None = None
        self._decided = asyncio.Event()
        self._available: Availability | None = None
        if name:
            self._follow(resource)
            return
        self._available = informers.watch_availability(
            resource.group,
            resource.kind,
            [resource.version],
            plural=resource.plural,
            namespaced=resource.namespaced,
        )
        self._available.subscribe(self._follow, on_error=self._set_error)

    @property
    def served(self) -> bool:
        """True if the cluster serves the kind and its objects have been listed."""
        return self._listed and not self._gone

    @property
    def problem(self) -> str:
        """The reason why it is unknown whether the cluster serves the kind, or which objects there are; empty if it is
        known or about to be."""
        return "" if self._listed or self._error is None else f"{self.resource.plural}: {self._error.message}"

    async def wait_until_known(self) -> None:
        """Waits until the objects are listed, the kind is known not to be served, or there is a `problem`."""
        if self._decided.is_set() or self._not_found:
            return
        events = [self._decided] if self._available is None else [self._decided, self._available.checked]
        waits = [asyncio.ensure_future(each.wait()) for each in events]
        try:
            await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for each in waits:
                each.cancel()
        # a kind that was found has not been listed yet
        if not self._not_found:
            await self._decided.wait()

    @property
    def _not_found(self) -> bool:
        """True if the cluster was seen not to serve the kind, and has not begun to since."""
        found = self._available
        return found is not None and found.checked.is_set() and found.resource is None

    async def replace(self, items: Sequence[Object], rv: int) -> None:
        self._error = None
        self._decided.set()
        if not self._listed:
            self._listed = True
            self._on_change()

    def set_cluster_error(self, error: StatusError | None) -> None:
        if error is None:
            self._keep()
            if self._gone:
                self._gone = False
                self._on_change()
        elif error.code == 404 or isinstance(error, NotServed):
            self._decided.set()
            self._lose()
        else:
            self._keep()
            self._set_error(error)

    def _follow(self, found: ClusterResource) -> None:
        informer = self._informers.get(found, field_selector=self._selector, store_objects=False)
        for handler in (*self._handlers, self):
            informer.add_handler(handler)

    def _set_error(self, error: StatusError | None) -> None:
        """Ignores errors of a cluster that cannot be reached: they say nothing about the kind."""
        if error is None:
            self._error = None
            return
        if isinstance(error, ClusterUnreachable) or error.code >= 500 or error.code == 429:
            return
        self._error = error
        self._decided.set()

    def _lose(self) -> None:
        if not self._gone and self._loss is None:
            self._loss = asyncio.get_running_loop().call_later(_GONE_SECONDS, self._set_gone)

    def _keep(self) -> None:
        if self._loss is not None:
            self._loss.cancel()
            self._loss = None

    def _set_gone(self) -> None:
        self._loss = None
        self._gone = True
        self._on_gone()
        self._on_change()
