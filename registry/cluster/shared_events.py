"""One informer for several event handlers, each of which sees only the objects that concern it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import overload

from apiserver.cooperative import iterate_cooperatively
from apiserver.meta.errors import StatusError
from apiserver.meta.resource import Object
from registry.cluster.event_handlers import EventHandler
from registry.cluster.object_store import key_of


class SharedEvents(EventHandler):
    """For objects of namespaces. `concerned` is pure and returns the names of the subscribers that an object concerns.

    A subscriber sees what it would see of an informer with a selector of its own, from one watch and one decoded copy
    of each object: an object that no longer concerns it is deleted for it, in its new state. Versions of objects that
    do not concern it reach it with the next bookmark.
    """

    def __init__(self, concerned: Callable[[Object], Sequence[str]]) -> None:
        self._concerned = concerned
        self._handlers: dict[str, list[EventHandler]] = {}
        self._names: dict[tuple[str, str], Sequence[str]] = {}

    def subscribe(self, name: str, handler: EventHandler) -> None:
        """Adds a handler, before the informer runs."""
        self._handlers.setdefault(name, []).append(handler)

    async def replace(self, items: Sequence[Object], rv: int) -> None:
        places: dict[str, list[int]] = {name: [] for name in self._handlers}
        found: dict[tuple[str, str], Sequence[str]] = {}
        place = 0
        async for obj in iterate_cooperatively(items):
            found[key_of(obj)] = names = self._concerned(obj)
            for name in names:
                if name in places:
                    places[name].append(place)
            place += 1
        self._names = found
        for name, handlers in self._handlers.items():
            for handler in handlers:
                await handler.replace(_Selected(items, places[name]), rv)

    def apply(self, type: str, obj: Object, rv: int) -> None:
        metadata, names = obj["metadata"], self._concerned(obj)
        # an operator costs a tenth of a call, and this runs for every event
        key = (metadata["namespace"], metadata["name"])
        before: Sequence[str] = ()
        if key in self._names:
            before = self._names[key]
        if type == "DELETED":
            self._names.pop(key, None)
            self._tell((*names, *(name for name in before if name not in names)), type, obj, rv)
            return
        if before != names:
            self._names[key_of(obj)] = names
            self._tell([name for name in before if name not in names], "DELETED", obj, rv)
        for name in names:
            if name in self._handlers:
                for handler in self._handlers[name]:
                    handler.apply(type, obj, rv)

    def _tell(self, names: Sequence[str], type: str, obj: Object, rv: int) -> None:
        for name in names:
            for handler in self._handlers.get(name, ()):
                handler.apply(type, obj, rv)

    def bookmark(self, rv: int) -> None:
        for handler in self._all():
            handler.bookmark(rv)

    def set_cluster_error(self, error: StatusError | None) -> None:
        for handler in self._all():
            handler.set_cluster_error(error)

    def _all(self) -> Iterator[EventHandler]:
        return (handler for handlers in self._handlers.values() for handler in handlers)


class _Selected(Sequence[Object]):
    """The items at some places of a sequence that parses an item on each access."""

    def __init__(self, items: Sequence[Object], places: Sequence[int]) -> None:
        self._items = items
        self._places = places

    def __len__(self) -> int:
        return len(self._places)

    @overload
    def __getitem__(self, index: int) -> Object: ...

    @overload
    def __getitem__(self, index: slice) -> _Selected: ...

    def __getitem__(self, index: int | slice) -> Object | _Selected:
        if isinstance(index, slice):
            return _Selected(self._items, self._places[index])
        return self._items[self._places[index]]
