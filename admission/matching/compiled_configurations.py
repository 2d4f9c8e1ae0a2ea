"""Configurations as an informer tells them, each turned into facts once, when it comes or changes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Generic, TypeVar

from apiserver.cooperative import in_slices
from apiserver.meta.errors import StatusError
from apiserver.meta.resource import Object

Fact = TypeVar("Fact")


def _spec(obj: Object) -> Any:
    return obj.get("spec")


class Kept(Generic[Fact]):
    """An EventHandler that keeps what it hears as facts, by name. They are made anew when their `content` changes."""

    def __init__(
        self,
        make: Callable[[Object], Fact],
        changed: Callable[[], None],
        *,
        content: Callable[[Object], Any] = _spec,
    ) -> None:
        self.facts: dict[str, Fact] = {}
        self._contents: dict[str, Any] = {}
        self._make = make
        self._changed = changed
        self._content = content

    async def replace(self, items: Sequence[Object], rv: int) -> None:
        names = {obj["metadata"]["name"] for obj in items}
        for name in self.facts.keys() - names:
            self._drop(name)
        async for obj in in_slices(items):
            self._put(obj)
        self._changed()

    def apply(self, type: str, obj: Object, rv: int) -> None:
        if type == "DELETED":
            self._drop(obj["metadata"]["name"])
        else:
            self._put(obj)
        self._changed()

    def bookmark(self, rv: int) -> None:
        pass

    def unreachable(self, error: StatusError | None) -> None:
        """What was last seen stays in force."""

    def _put(self, obj: Object) -> None:
        name, content = obj["metadata"]["name"], self._content(obj)
        if name not in self.facts or self._contents[name] != content:
            self.facts[name], self._contents[name] = self._make(obj), content

    def _drop(self, name: str) -> None:
        self.facts.pop(name, None)
        self._contents.pop(name, None)
