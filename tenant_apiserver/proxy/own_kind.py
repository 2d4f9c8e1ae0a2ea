"""The kinds whose refused lists and watches the proxy answers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from apiserver.request.context import Handler, RequestContext


class OwnKind(Protocol):
    """A kind, or some kinds, that are answered here."""

    async def handler(self, context: RequestContext) -> Handler | None:
        """The handler of a LIST or WATCH of a whole collection that the cluster has refused, None for those of other
        kinds, and if the refusal stands. Raises StatusError if that cannot be determined at present."""
        ...


class OwnKinds:
    """The first kind that has a handler answers."""

    def __init__(self, kinds: Sequence[OwnKind]) -> None:
        self._kinds = tuple(kinds)

    async def handler(self, context: RequestContext) -> Handler | None:
        """As OwnKind has it. Single objects, writes and subresources are RBAC's alone."""
        info = context.info
        is_collection = info.is_resource and info.collection_path and not info.subresource and not info.namespace
        if not is_collection or info.verb not in ("list", "watch") or context.http.method != "GET":
            return None
        for kind in self._kinds:
            if handler := await kind.handler(context):
                return handler
        return None
