"""A handler of an informer that takes down what matters of each object, and tells of changes of just that."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Generic, TypeVar

from apiserver.errors import StatusError
from apiserver.resource import Key, Object
from controller.objectstore import key_of

V = TypeVar("V")


class Follower(Generic[V]):
    """`view` gives what matters of an object, None if nothing does; it is pure, and its values can be compared.

    `changed` is told an object's key, with what mattered of it before and what does now; None of one that is not there.
    """

    def __init__(
        self, *, view: Callable[[Object], V | None], changed: Callable[[Key, V | None, V | None], None]
    ) -> None:
        self._view = view
        self._changed = changed
        self._held: dict[Key, V] = {}

    def get(self, key: Key) -> V | None:
        return self._held.get(key)

    def items(self) -> Sequence[tuple[Key, V]]:
        return tuple(self._held.items())

    def replace(self, items: Sequence[Object], rv: int) -> None:
        gone = set(self._held)
        for obj in items:
            gone.discard(key_of(obj))
            self._take(key_of(obj), self._view(obj))
        for key in gone:
            self._take(key, None)

    def apply(self, type: str, obj: Object, rv: int) -> None:
        self._take(key_of(obj), None if type == "DELETED" else self._view(obj))

    def bookmark(self, rv: int) -> None:
        """Nothing to do."""

    def unreachable(self, error: StatusError | None) -> None:
        """Nothing to do: what was missed comes with `replace`."""

    def _take(self, key: Key, now: V | None) -> None:
        before = self._held.get(key)
        if before == now:
            return
        if now is None:
            del self._held[key]
        else:
            self._held[key] = now
        self._changed(key, before, now)


class Listed:
    """A handler that only tells when everything there is of a kind has been seen anew."""

    def __init__(self, callback: Callable[[], None]) -> None:
        self._callback = callback

    def replace(self, items: Sequence[Object], rv: int) -> None:
        self._callback()

    def apply(self, type: str, obj: Object, rv: int) -> None:
        """Nothing to do."""

    def bookmark(self, rv: int) -> None:
        """Nothing to do."""

    def unreachable(self, error: StatusError | None) -> None:
        """Nothing to do."""
