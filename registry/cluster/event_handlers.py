"""The interface between informers and their event handlers, and base classes for handlers (client-go's tools/cache)."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Generic, Protocol, TypeVar

from apiserver.cooperative import iterate_cooperatively
from apiserver.meta.errors import StatusError
from apiserver.meta.resource import Key, Object
from registry.cluster.object_store import key_of

V = TypeVar("V")


class EventHandler(Protocol):
    """Receives the changes that an informer sees. Methods must not block or raise."""

    async def replace(self, items: Sequence[Object], rv: int) -> None:
        """Receives all objects at version `rv`, at start and after a gap in the watch. Other calls wait until it
        returns, so it yields to the event loop in between (`iterate_cooperatively`)."""
        ...

    def apply(self, type: str, obj: Object, rv: int) -> None:
        """Receives an event: `type` is ADDED, MODIFIED or DELETED. `obj` is read-only; for DELETED it is the last
        state of the object."""
        ...

    def bookmark(self, rv: int) -> None:
        """Reports that there were no other changes up to `rv`."""
        ...

    def set_cluster_error(self, error: StatusError | None) -> None:
        """Reports why the cluster cannot be watched; None once it can be watched again."""
        ...


class NoOpEventHandler:
    """An EventHandler that ignores everything; subclasses override the methods that they need."""

    async def replace(self, items: Sequence[Object], rv: int) -> None:
        pass

    def apply(self, type: str, obj: Object, rv: int) -> None:
        pass

    def bookmark(self, rv: int) -> None:
        pass

    def set_cluster_error(self, error: StatusError | None) -> None:
        pass


class SyncingHandler(NoOpEventHandler, ABC):
    """A handler that treats a listed object like a changed one, and a missing object like a deleted one."""

    @abstractmethod
    def _known_keys(self) -> Iterable[Key]:
        """The keys of all objects that the handler has state for."""

    @abstractmethod
    def _sync(self, key: Key, obj: Object | None) -> None:
        """Brings the handler's state of one object up to date; `obj` is None if it does not exist."""

    async def replace(self, items: Sequence[Object], rv: int) -> None:
        missing = set(self._known_keys())
        async for obj in iterate_cooperatively(items):
            key = key_of(obj)
            missing.discard(key)
            self._sync(key, obj)
        for key in missing:
            self._sync(key, None)

    def apply(self, type: str, obj: Object, rv: int) -> None:
        self._sync(key_of(obj), None if type == "DELETED" else obj)


class ProjectionStore(SyncingHandler, Generic[V]):
    """Stores a projection of each object and reports when the projection changes.

    `project` is pure and returns a comparable value, or None to ignore the object. `on_change` is called with the key,
    the previous and the new value; None stands for no value.
    """

    def __init__(
        self, *, project: Callable[[Object], V | None], on_change: Callable[[Key, V | None, V | None], None]
    ) -> None:
        self._project = project
        self._on_change = on_change
        self._values_by_key: dict[Key, V] = {}

    def get(self, key: Key) -> V | None:
        return self._values_by_key.get(key)

    def items(self) -> Sequence[tuple[Key, V]]:
        return tuple(self._values_by_key.items())

    def _known_keys(self) -> Iterable[Key]:
        return self._values_by_key

    def _sync(self, key: Key, obj: Object | None) -> None:
        before, after = self._values_by_key.get(key), None if obj is None else self._project(obj)
        if before == after:
            return
        if after is None:
            del self._values_by_key[key]
        else:
            self._values_by_key[key] = after
        self._on_change(key, before, after)


class ProjectionByNamespace(SyncingHandler, Generic[V]):
    """Stores a projection of each object, grouped by namespace; `project` returns None to ignore an object.

    `on_change` is called with the key of an object whose projection changed.
    """

    def __init__(self, project: Callable[[Object], V | None], *, on_change: Callable[[Key], None]) -> None:
        self._project = project
        self._on_change = on_change
        self._values: dict[str, dict[str, V]] = {}

    def values(self, namespace: str) -> Mapping[str, V]:
        """The values of a namespace by object name."""
        return self._values.get(namespace, {})

    def _known_keys(self) -> Iterable[Key]:
        return (Key(namespace, name) for namespace, values in self._values.items() for name in values)

    def _sync(self, key: Key, obj: Object | None) -> None:
        values, value = self._values.get(key.namespace, {}), None if obj is None else self._project(obj)
        if values.get(key.name) == value:
            return
        if value is not None:
            self._values.setdefault(key.namespace, values)[key.name] = value
        else:
            del values[key.name]
            if not values:
                del self._values[key.namespace]
        self._on_change(key)


class RelistListener(NoOpEventHandler):
    """Calls back after each complete list of the objects."""

    def __init__(self, callback: Callable[[], None]) -> None:
        self._callback = callback

    async def replace(self, items: Sequence[Object], rv: int) -> None:
        self._callback()
