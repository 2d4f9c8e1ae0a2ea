"""Reads lists item by item from responses, so that no list is in memory as a whole."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Awaitable, Callable, Iterable
from typing import Final, NamedTuple

from aiohttp import ClientResponse

from apiserver.encoding.offload import LARGE_BYTES
from apiserver.meta.errors import StatusError
from apiserver.meta.resource import Object
from registry.cluster.interface import Visited
from registry.cluster.list_decoder import ListDecoder

Visit = Callable[[Object], None]
# Parsing a chunk of a list of this size takes a few milliseconds.
_CHUNK: Final = 128 * 1024
# The cluster, too, has little of large objects in memory for a page.
_SMALL_PAGE: Final = 50
_EXPIRED: Final = 410


class ReadPage(NamedTuple):
    """The metadata of a list page, None if its end was not read, and the bytes that were received."""

    metadata: Object | None
    size: int


async def visit_page(response: ClientResponse, visit: Visit, *, max_bytes: float = math.inf) -> ReadPage:
    """Calls `visit` with each item of a list page, until more than `max_bytes` were received. Raises MalformedStream,
    and aiohttp's errors."""
    items, size = ListDecoder(), 0
    async for chunk in response.content.iter_chunked(_CHUNK):
        size += len(chunk)
        found: Iterable[Object] = items.feed(chunk)
        if items.buffered > LARGE_BYTES:
            found = await asyncio.to_thread(list, found)
        for item in found:
            visit(item)
        if size > max_bytes and not items.is_complete:
            return ReadPage(None, size)
        # chunks that have already arrived are read without yielding to the event loop
        await asyncio.sleep(0)
    return ReadPage(items.metadata(), size)


async def visit_first(
    read_page: Callable[[dict[str, str], Visit, float], Awaitable[ReadPage]],
    visit: Visit,
    *,
    limit: int,
    max_bytes: int,
) -> Visited:
    """As the method of a ClusterClient. `read_page` gets the query of a page."""
    count, size, token = 0, 0, ""

    def count_and_visit(item: Object) -> None:
        nonlocal count
        count += 1
        visit(item)

    while count < limit and size <= max_bytes:
        query = {"limit": str(min(limit - count, _SMALL_PAGE)), "continue": token}
        try:
            page = await read_page(query, count_and_visit, max_bytes - size)
        except StatusError as error:
            # later pages of a list can expire: the earlier ones stay true
            if error.code != _EXPIRED or not token:
                raise
            return Visited(count, size, truncated=True)
        size += page.size
        if page.metadata is None:
            return Visited(count, size, truncated=True)
        token = page.metadata.get("continue") or ""
        if not token:
            return Visited(count, size, truncated=False)
    return Visited(count, size, truncated=True)
