"""Handlers of informers: what one is told, one that heeds nothing, and those that take down what matters of objects."""

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
    """What an informer tells. None of these may block or raise."""

    async def replace(self, items: Sequence[Object], rv: int) -> None:
        """Everything there is, at version `rv`: after a start, and after a gap in what was seen. Nothing else is told
        until it returns, so it can take its time (`in_slices`)."""
        ...

    def apply(self, type: str, obj: Object, rv: int) -> None:
        """ADDED, MODIFIED or DELETED. `obj` may not be changed; of a deleted object it is the last state."""
        ...

    def bookmark(self, rv: int) -> None:
        """Nothing else happened up to `rv`."""
        ...

    def set_cluster_error(self, error: StatusError | None) -> None:
        """The host cannot be watched, for this reason; None: it can again."""
        ...


class NoOpEventHandler:
    """An EventHandler that heeds nothing: who extends it says what it heeds. What was missed while the host was away
    comes with `replace`."""

    async def replace(self, items: Sequence[Object], rv: int) -> None:
        """Nothing to do."""

    def apply(self, type: str, obj: Object, rv: int) -> None:
        """Nothing to do."""

    def bookmark(self, rv: int) -> None:
        """Nothing to do."""

    def set_cluster_error(self, error: StatusError | None) -> None:
        """Nothing to do."""


class SyncingHandler(NoOpEventHandler, ABC):
    """A handler that treats a listed object like a changed one, and a missing object like a deleted one."""

    @abstractmethod
    def _known_keys(self) -> Iterable[Key]:
        """The objects of which something is held."""

    @abstractmethod
    def _sync(self, key: Key, obj: Object | None) -> None:
        """None for an object that is not there."""

    async def replace(self, items: Sequence[Object], rv: int) -> None:
        gone = set(self._known_keys())
        async for obj in iterate_cooperatively(items):
            key = key_of(obj)
            gone.discard(key)
            self._sync(key, obj)
        for key in gone:
            self._sync(key, None)

    def apply(self, type: str, obj: Object, rv: int) -> None:
        self._sync(key_of(obj), None if type == "DELETED" else obj)


class ProjectionStore(SyncingHandler, Generic[V]):
    """Takes down what matters of each object, and tells of changes of just that.

    `view` gives what matters of an object, None if nothing does; it is pure, and its values can be compared.

    `changed` is told an object's key, with what mattered of it before and what does now; None of one that is not there.
    """

    def __init__(
        self, *, project: Callable[[Object], V | None], on_change: Callable[[Key, V | None, V | None], None]
    ) -> None:
        self._view = project
        self._changed = on_change
        self._held: dict[Key, V] = {}

    def get(self, key: Key) -> V | None:
        return self._held.get(key)

    def items(self) -> Sequence[tuple[Key, V]]:
        return tuple(self._held.items())

    def _known_keys(self) -> Iterable[Key]:
        return self._held

    def _sync(self, key: Key, obj: Object | None) -> None:
        before, now = self._held.get(key), None if obj is None else self._view(obj)
        if before == now:
            return
        if now is None:
            del self._held[key]
        else:
            self._held[key] = now
        self._changed(key, before, now)


class ProjectionByNamespace(SyncingHandler, Generic[V]):
    """Keeps one value an object, of those for which `value` is not None.

    `concern` is told the Namespace of an object that changed it.
    """

    def __init__(self, project: Callable[[Object], V | None], *, on_change: Callable[[str], None]) -> None:
        self._value = project
        self._concern = on_change
        self._values: dict[str, dict[str, V]] = {}

    def values(self, namespace: str) -> Mapping[str, V]:
        """By name."""
        return self._values.get(namespace, {})

    def put(self, key: Key, value: V | None) -> bool:
        """Whether that is new. Nobody is told: what a write of ours came to is no news when its event comes."""
        held = self._values.get(key.namespace, {})
        if held.get(key.name) == value:
            return False
        if value is not None:
            self._values.setdefault(key.namespace, held)[key.name] = value
            return True
        del held[key.name]
        if not held:
            del self._values[key.namespace]
        return True

    def _known_keys(self) -> Iterable[Key]:
        return (Key(namespace, name) for namespace, values in self._values.items() for name in values)

    def _sync(self, key: Key, obj: Object | None) -> None:
        if self.put(key, None if obj is None else self._value(obj)):
            self._concern(key.namespace)


class RelistListener(NoOpEventHandler):
    """Only tells when everything there is of a kind has been seen anew."""

    def __init__(self, callback: Callable[[], None]) -> None:
        self._callback = callback

    async def replace(self, items: Sequence[Object], rv: int) -> None:
        self._callback()
