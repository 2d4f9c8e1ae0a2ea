"""One informer for several event handlers, each of which sees only the objects that concern it."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import overload

from apiserver.cooperative import iterate_cooperatively
from apiserver.meta.errors import StatusError
from apiserver.meta.resource import Key, Object
from registry.cluster.event_handlers import EventHandler
from registry.cluster.object_store import ListedObjects, key_of

_logger = logging.getLogger(__name__)
_PROBLEM = "a handler of %s has failed, and may have missed %s"


class SharedEvents(EventHandler):
    """For objects of namespaces. `concerned` is pure and returns the names of the subscribers that an object concerns.

    A subscriber sees what it would see of an informer with a selector of its own, from one watch and one decoded copy
    of each object: an object that no longer concerns it is deleted for it, in its new state. Versions of objects that
    do not concern it reach it with the next bookmark.

    A handler that raises, which is a bug, does not keep the others from what concerns them. It gets the next event as
    if nothing had happened; `failures` and the log tell that it may have missed one.
    """

    def __init__(self, concerned: Callable[[Object], Sequence[str]]) -> None:
        self._concerned = concerned
        self._handlers: dict[str, list[EventHandler]] = {}
        self._names: dict[tuple[str, str], Sequence[str]] = {}
        self._failures: Counter[str] = Counter()

    @property
    def failures(self) -> Mapping[str, int]:
        """How often a handler has raised, by the name of the subscriber."""
        return self._failures

    def subscribe(self, name: str, handler: EventHandler) -> None:
        """Adds a handler, before the informer runs."""
        self._handlers.setdefault(name, []).append(handler)
        self._failures[name] += 0

    async def replace(self, items: Sequence[Object], rv: int) -> None:
        places: dict[str, list[int]] = {name: [] for name in self._handlers}
        found: dict[tuple[str, str], Sequence[str]] = {}
        place = 0
        async for key, names in iterate_cooperatively(self._concerned_by(items)):
            found[key] = names
            for name in names:
                if name in places:
                    places[name].append(place)
            place += 1
        self._names = found
        for name, handlers in self._handlers.items():
            for handler in handlers:
                try:
                    await handler.replace(_Selected(items, places[name]), rv)
                except Exception:
                    self._failed(name, "a list")

    def _concerned_by(self, items: Sequence[Object]) -> Iterable[tuple[Key, Sequence[str]]]:
        kept = items.kept_by(self._concerned) if isinstance(items, ListedObjects) else None
        return ((key_of(obj), self._concerned(obj)) for obj in items) if kept is None else kept.items()

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
                    try:
                        handler.apply(type, obj, rv)
                    except Exception:
                        self._failed(name, _event(type, obj))

    def _tell(self, names: Sequence[str], type: str, obj: Object, rv: int) -> None:
        for name in names:
            for handler in self._handlers.get(name, ()):
                try:
                    handler.apply(type, obj, rv)
                except Exception:
                    self._failed(name, _event(type, obj))

    def bookmark(self, rv: int) -> None:
        self._each("a bookmark", lambda handler: handler.bookmark(rv))

    def set_cluster_error(self, error: StatusError | None) -> None:
        self._each("the state of the cluster", lambda handler: handler.set_cluster_error(error))

    def _each(self, what: str, call: Callable[[EventHandler], None]) -> None:
        for name, handlers in self._handlers.items():
            for handler in handlers:
                try:
                    call(handler)
                except Exception:
                    self._failed(name, what)

    def _failed(self, name: str, what: str) -> None:
        """Called in an exception handler."""
        self._failures[name] += 1
        _logger.exception(_PROBLEM, name, what)


def _event(type: str, obj: Object) -> str:
    return f"{type} of {obj['metadata']['namespace']}/{obj['metadata']['name']}"


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
