"""Pages of a merged list whose namespaces are large."""

from __future__ import annotations

import asyncio
from typing import cast
from urllib.parse import parse_qs, urlsplit

import pytest

from apiserver.meta.errors import TooManyRequests
from apiserver.request.request_info import Query
from tenant_apiserver.proxy.merged.caller_requests import CallerRequests
from tenant_apiserver.proxy.merged.list_of_parts import ListOfParts, parse_list_query
from tenant_apiserver.proxy.merged.packed_list import PackedList, pack
from tenant_apiserver.proxy.merged.part import CollectionPart

OBJECTS = 10


class _Cluster:
    """Each part has ten objects of a kilobyte. The memory of the user is limited."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self.used = 0

    async def list(self, target: str) -> PackedList:
        parts = urlsplit(target)
        query = {name: values[0] for name, values in parse_qs(parts.query).items()}
        start = int(query.get("continue", "0"))
        end = min(start + int(query.get("limit", OBJECTS)), OBJECTS)
        items = [{"metadata": {"name": f"{parts.path}-{n}"}, "data": "x" * 1000} for n in range(start, end)]
        metadata = {"resourceVersion": "7", **({"continue": str(end)} if end < OBJECTS else {})}
        packed = pack({"kind": "ConfigMapList", "apiVersion": "v1", "metadata": metadata, "items": items})
        if self.used + packed.size > self._limit:
            raise TooManyRequests("too much")
        self.used += packed.size
        await asyncio.sleep(0)
        return packed

    def release(self, packed: PackedList) -> None:
        self.used -= packed.size


async def _page(cluster: _Cluster, query: str) -> PackedList:
    names = [f"p{number:02}" for number in range(20)]
    parts = [CollectionPart(name, name) for name in names]
    listing = ListOfParts(cast(CallerRequests, cluster), parse_list_query(Query(query)), parts)
    found = await listing.read()
    assert found is not None
    return found


async def test_a_page_needs_room_for_its_objects_only() -> None:
    """Sixteen namespaces are asked at once, each for a whole page: together they may be more than a user may have,
    who is told to read in pages, and does."""
    cluster, found, token = _Cluster(30_000), list[str](), ""
    while True:
        page = await _page(cluster, f"limit=15&continue={token}")
        cluster.used = 0
        found += [item.key for item in page.items]
        if not (token := str(page.metadata.get("continue", ""))):
            break
    assert len(set(found)) == len(found) == 20 * OBJECTS
    with pytest.raises(TooManyRequests):
        await _page(cluster, "")


@pytest.mark.parametrize("memory", [1_500, 5_000, 12_000, 40_000])
async def test_a_page_has_fewer_objects_where_its_limit_takes_too_much_memory(memory: int) -> None:
    """kubectl asks for 500: whoever grants everybody to read a namespace of large objects must not break its lists."""
    cluster, found, token = _Cluster(memory), list[str](), ""
    while True:
        page = await _page(cluster, f"limit=500&continue={token}")
        assert page.items
        cluster.used = 0
        found += [item.key for item in page.items]
        if not (token := str(page.metadata.get("continue", ""))):
            break
    assert len(set(found)) == len(found) == 20 * OBJECTS


async def test_an_object_that_takes_too_much_memory_is_refused() -> None:
    with pytest.raises(TooManyRequests):
        await _page(_Cluster(500), "limit=500")


async def test_what_was_read_beyond_a_page_takes_no_memory_while_the_page_is_sent() -> None:
    cluster = _Cluster(900_000)
    page = await _page(cluster, "limit=15")
    assert len(page.items) == 15
    assert cluster.used == page.size
