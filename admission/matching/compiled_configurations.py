"""Compiles the configurations that an informer delivers, each once when it is added or changes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Generic, TypeVar

from apiserver.cooperative import iterate_cooperatively
from apiserver.meta.resource import Object
from registry.cluster.event_handlers import NoOpEventHandler

T = TypeVar("T")


def _spec(obj: Object) -> Any:
    return obj.get("spec")


class CompiledConfigurations(NoOpEventHandler, Generic[T]):
    """An EventHandler with the compiled configurations by name. `compile_object` runs again only when the object's
    `content` changes. While the cluster is unreachable, the last known configurations stay in force."""

    def __init__(
        self,
        compile_object: Callable[[Object], T],
        on_change: Callable[[], None],
        *,
        content: Callable[[Object], Any] = _spec,
    ) -> None:
        self.compiled: dict[str, T] = {}
        self._contents: dict[str, Any] = {}
        self._compile_object = compile_object
        self._on_change = on_change
        self._content = content

    async def replace(self, items: Sequence[Object], rv: int) -> None:
        names = {obj["metadata"]["name"] for obj in items}
        for name in self.compiled.keys() - names:
            self._drop(name)
        async for obj in iterate_cooperatively(items):
            self._put(obj)
        self._on_change()

    def apply(self, type: str, obj: Object, rv: int) -> None:
        if type == "DELETED":
            self._drop(obj["metadata"]["name"])
        else:
            self._put(obj)
        self._on_change()

    def _put(self, obj: Object) -> None:
        name, content = obj["metadata"]["name"], self._content(obj)
        if name not in self.compiled or self._contents[name] != content:
            self.compiled[name], self._contents[name] = self._compile_object(obj), content

    def _drop(self, name: str) -> None:
        self.compiled.pop(name, None)
        self._contents.pop(name, None)
