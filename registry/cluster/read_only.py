"""A client of the cluster that cannot write, for processes that promise to only read."""

from __future__ import annotations

from typing import Any, NoReturn

from apiserver.meta.errors import StatusError
from registry.cluster.client import HttpClusterClient


class WriteRefused(StatusError):
    """The process itself refused to write; the cluster was not asked."""

    def __init__(self) -> None:
        super().__init__(405, "MethodNotAllowed", "this process only reads the cluster, and writes nothing", details={})


class ReadOnlyClusterClient(HttpClusterClient):
    """An HttpClusterClient whose writes raise WriteRefused, dry runs too. Reviews, which store nothing, still work."""

    async def create(self, *_: Any, **__: Any) -> NoReturn:
        raise WriteRefused

    async def update(self, *_: Any, **__: Any) -> NoReturn:
        raise WriteRefused

    async def patch(self, *_: Any, **__: Any) -> NoReturn:
        raise WriteRefused

    async def delete(self, *_: Any, **__: Any) -> NoReturn:
        raise WriteRefused
