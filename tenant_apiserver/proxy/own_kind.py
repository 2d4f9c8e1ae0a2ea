"""The kinds whose refused lists and watches the proxy answers."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final, Protocol

from apiserver.request.context import Handler, RequestContext

_VERSION: Final = re.compile(r"v[0-9]+(?:(?:alpha|beta)[0-9]+)?", re.ASCII)


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
        if not is_whole_collection(context):
            return None
        for kind in self._kinds:
            if handler := await kind.handler(context):
                return handler
        return None


def is_whole_collection(context: RequestContext) -> bool:
    """True for a LIST or WATCH of all objects of a kind. Paths are built of the parsed parts: a version is no way out
    of them."""
    info = context.info
    is_collection = info.is_resource and info.collection_path and not info.subresource and not info.namespace
    if not is_collection or not _VERSION.fullmatch(info.version):
        return False
    return info.verb in ("list", "watch") and context.http.method == "GET"
