"""Flat routes that could not be written, and names of flat routes that objects of others have."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence

from apiserver.meta.resource import Key, Object
from controller.tenantgateway.delegation.model import FlatRoute
from controller.tenantgateway.model import RouteId
from registry.cluster.event_handlers import NoOpEventHandler
from registry.cluster.object_store import key_of


class WriteErrors:
    """The last error of each flat route, by root and by the route that its rules are from. `on_change` is called with
    both."""

    def __init__(self, on_change: Callable[[RouteId, RouteId], None]) -> None:
        self._on_change = on_change
        self._messages: dict[tuple[RouteId, RouteId], str] = {}

    def get(self, root: RouteId, content: RouteId) -> str:
        """Empty if there is no error."""
        return self._messages.get((root, content), "")

    def of_root(self, root: RouteId) -> Sequence[str]:
        return [message for (each, _), message in sorted(self._messages.items()) if each == root]

    def roots(self) -> Iterable[RouteId]:
        """The roots with an error, sorted."""
        return sorted({root for root, _ in self._messages})

    def record(self, root: RouteId, content: RouteId, message: str) -> None:
        """An empty message removes the error."""
        if self.get(root, content) == message:
            return
        if message:
            self._messages[root, content] = message
        else:
            del self._messages[root, content]
        self._on_change(root, content)

    def keep_only(self, content: RouteId, roots: Collection[RouteId]) -> None:
        """The rules of `content` are wanted below these roots only."""
        for root, each in tuple(self._messages):
            if each == content and root not in roots:
                self.record(root, content, "")


class ForeignNames(NoOpEventHandler):
    """Enqueues a route when the object that has the name of its flat route changes or is deleted (R-219)."""

    def __init__(self, enqueue: Callable[[RouteId], None]) -> None:
        self._enqueue = enqueue
        self._waiting: dict[Key, RouteId] = {}

    def wait(self, flat: FlatRoute, name: str) -> None:
        """The name of the flat route belongs to somebody else."""
        self._waiting[Key(flat.root.id.namespace, name)] = flat.content.id

    async def replace(self, items: Sequence[Object], rv: int) -> None:
        for key in tuple(self._waiting):
            self._release(key)

    def apply(self, type: str, obj: Object, rv: int) -> None:
        if self._waiting:
            self._release(key_of(obj))

    def _release(self, key: Key) -> None:
        if (waiting := self._waiting.pop(key, None)) is not None:
            self._enqueue(waiting)
