"""A list that is compressed block by block decompresses to the list."""

from __future__ import annotations

import gzip
import json
import random
import zlib
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from apiserver.encoding import gzip_blocks
from apiserver.encoding.encoded_object import CachedObject, encode
from apiserver.encoding.gzip_blocks import gzip_list, split_into_blocks
from apiserver.encoding.transforms import PartialView, TableView, View, WholeView, list_metadata
from apiserver.meta.resource import Resource

THINGS = Resource(group="", version="v1", kind="Thing", plural="things", singular="thing", namespaced=True)
WHOLE = WholeView(THINGS)
TABLE = TableView(THINGS)
METADATA = list_metadata(7)


def thing(name: str, rv: int = 1, created: int = 0) -> CachedObject:
    metadata = {"name": name, "namespace": "a", "uid": name, "resourceVersion": str(rv)}
    if created:
        metadata["creationTimestamp"] = datetime.fromtimestamp(created, UTC).isoformat()
    return encode(THINGS, {"metadata": metadata, "spec": {"text": name * 20}})


def things(count: int) -> list[CachedObject]:
    return [thing(f"x{number:05}") for number in range(count)]


async def compress(view: View, items: Sequence[CachedObject], now: float = 0.0) -> bytes:
    return b"".join([piece async for piece in gzip_list(view, items, METADATA, now)])


def uncompressed(view: View, items: Sequence[CachedObject], now: float = 0.0) -> bytes:
    return view.list_head(METADATA) + view.items(items, now) + b"]}\n"


@pytest.fixture
def compressed(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The number of objects in each block that was compressed."""
    sizes: list[int] = []
    block = gzip_blocks._compress_block

    def compress_and_record(view: View, objects: Sequence[CachedObject], now: float) -> Any:
        sizes.append(len(objects))
        return block(view, objects, now)

    monkeypatch.setattr(gzip_blocks, "_compress_block", compress_and_record)
    return sizes


@pytest.mark.parametrize("count", [0, 1, 2, 64, 1000, 5000])
@pytest.mark.parametrize("view", [WHOLE, PartialView()], ids=["whole", "metadata"])
async def test_the_compressed_list_decompresses_to_the_list(view: View, count: int) -> None:
    items = things(count)
    for _ in range(2):
        unpacked = gzip.decompress(await compress(view, items))
        assert unpacked == uncompressed(view, items)
    assert len(json.loads(unpacked)["items"]) == count


async def test_a_compressed_list_is_a_single_gzip_member() -> None:
    """Many programs stop reading at the end of the first member."""
    reader = zlib.decompressobj(31)
    assert reader.decompress(await compress(WHOLE, things(1000))) + reader.flush() == uncompressed(WHOLE, things(1000))
    assert (reader.eof, reader.unused_data) == (True, b"")


async def test_a_repeated_list_is_not_compressed_again(compressed: list[int]) -> None:
    items = things(1000)
    await compress(WHOLE, items)
    assert sum(compressed) == len(items) - 1
    compressed.clear()
    await compress(WHOLE, items)
    assert compressed == []


async def test_a_change_recompresses_at_most_two_blocks(compressed: list[int]) -> None:
    items = things(5000)
    await compress(WHOLE, items)
    chance = random.Random(1)
    for step in range(50):
        compressed.clear()
        at = chance.randrange(1, len(items))
        match step % 3:
            case 0:
                items[at] = thing(items[at].key.name, 2 + step)
            case 1:
                del items[at]
            case _:
                items.insert(at, thing(f"{items[at - 1].key.name}x"))
        assert gzip.decompress(await compress(WHOLE, items)) == uncompressed(WHOLE, items)
        assert len(compressed) <= 2


async def test_a_table_block_is_recompressed_when_an_age_changes(compressed: list[int]) -> None:
    created = 1_700_000_000
    # created one second after the other, within a minute
    items = [thing(f"x{number:05}", created=created + number % 60) for number in range(1000)]
    # neighbours have the same age; the last 500 objects are very old
    items = [*sorted(items, key=lambda obj: obj.cells[1]), *(thing(f"y{number}", created=1) for number in range(500))]
    # where blocks begin depends on the hash of names, which Python salts anew for each process
    blocks = list(split_into_blocks(tuple(items)[1:]))
    start = created + 3600
    before: list[bytes] = []
    for second, changes in ((0, True), (0, False), (1, True), (2, True), (62, True)):
        compressed.clear()
        now = start + second
        assert gzip.decompress(await compress(TABLE, items, now)) == uncompressed(TABLE, items, now)
        rows = [TABLE.items([obj], now) for obj in items[1:]]
        changed = {obj.key for obj, old, new in zip(items[1:], before or rows, rows, strict=True) if old != new}
        stale = [each for each in blocks if not before or any(obj.key in changed for obj in each)]
        assert sum(compressed) == sum(map(len, stale))
        assert bool(compressed) is changes
        before = rows


async def test_views_and_selections_do_not_share_blocks() -> None:
    items = things(1000)
    for _ in range(2):
        for view in (WHOLE, PartialView()):
            for selection in (items, items[::2], items[100:]):
                assert gzip.decompress(await compress(view, selection)) == uncompressed(view, selection)


@given(st.lists(st.booleans(), max_size=2000))
def test_blocks_keep_the_order_and_are_neither_large_nor_empty(leading: list[bool]) -> None:
    items = [thing(str(number)) for number in range(len(leading))]
    for obj, starts_block in zip(items, leading, strict=True):
        obj.starts_block = starts_block
    found = list(split_into_blocks(items))
    assert [obj for block in found for obj in block] == items
    assert all(0 < len(block) <= gzip_blocks._MAX_OBJECTS for block in found)
    assert all(not obj.starts_block for block in found for obj in block[1:])
