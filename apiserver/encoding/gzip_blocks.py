"""Compresses lists with gzip, block by block, so that a repeated list only compresses the blocks that changed.

A block is a run of neighbouring objects. Its compressed bytes are cached on its first object and dropped as soon as
any object of the block, or the age in one of its table rows, changes. client-go and kubectl always accept gzip.

ISA-L compresses a list at this level in a quarter of zlib's time, to nine tenths of its size.
"""

from __future__ import annotations

import asyncio
import struct
from collections.abc import AsyncIterator, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final

from isal import isal_zlib

from apiserver.cooperative import Yielder
from apiserver.encoding.encoded_object import CachedObject
from apiserver.encoding.transforms import View

LEVEL: Final = 1
# Raw deflate without a header, so that compressed parts can be concatenated into one gzip member.
_RAW: Final = -15
_HEADER: Final = b"\x1f\x8b\x08\x00\x00\x00\x00\x00\x04\xff"
_PIECE_BYTES: Final = 64 * 1024
# Usual blocks have a fifth of it: they are compressed in less time than a thread takes to begin and end.
_LARGE_BLOCK: Final = 512 * 1024
# Blocks begin at objects with `starts_block`, so that adding or removing an object changes only the block around it.
_MAX_OBJECTS: Final = 512


@dataclass(frozen=True, slots=True)
class GzipPart:
    """A part of a gzip member: the deflated bytes, and the size and CRC-32 of the original ones."""

    deflated: bytes
    size: int
    crc: int


@dataclass(frozen=True, slots=True)
class GzipBlock:
    """The compressed `objects`. `valid_until` is in seconds of the epoch."""

    objects: Sequence[CachedObject]
    valid_until: float
    gzip_part: GzipPart


async def gzip_list(view: View, items: Sequence[CachedObject], metadata: bytes, now: float) -> AsyncIterator[bytes]:
    """Yield the gzip of a list of `items` with the ListMeta `metadata`. `now` is in seconds of the epoch."""
    items, yielder = tuple(items), Yielder()
    head = _compress(b"".join((view.list_head(metadata), view.items(items[:1], now))))
    crc, size, ready = head.crc, head.size, [_HEADER, head.deflated]
    for objects in split_into_blocks(items[1:]):
        block: GzipBlock | None = objects[0].gzip_blocks.get(view.form)
        if block is None or block.valid_until <= now or block.objects != objects:
            size_of_block = sum(len(each.json) for each in objects)
            work = partial(_compress_block, view, objects, now)
            # not of the user's threads: a block takes little time, half of it without the GIL
            block = await asyncio.to_thread(work) if size_of_block > _LARGE_BLOCK else work()
            await yielder.yield_if_due()
            objects[0].gzip_blocks = {**objects[0].gzip_blocks, view.form: block}
        part = block.gzip_part
        crc, size = isal_zlib.crc32_combine(crc, part.crc, part.size), size + part.size
        ready.append(part.deflated)
        if sum(map(len, ready)) >= _PIECE_BYTES:
            yield b"".join(ready)
            ready = []
            # yield to the event loop: the list may be long
            await asyncio.sleep(0)
    tail = _compress(b"]}\n", last=True)
    crc = isal_zlib.crc32_combine(crc, tail.crc, tail.size)
    yield b"".join((*ready, tail.deflated, struct.pack("<II", crc, (size + tail.size) & 0xFFFFFFFF)))


def split_into_blocks(items: Sequence[CachedObject]) -> Iterator[Sequence[CachedObject]]:
    """Split the list into runs of neighbours, in order; no block is empty."""
    begin = 0
    for at, obj in enumerate(items):
        if at > begin and (obj.starts_block or at - begin >= _MAX_OBJECTS):
            yield items[begin:at]
            begin = at
    if begin < len(items):
        yield items[begin:]


def _compress_block(view: View, objects: Sequence[CachedObject], now: float) -> GzipBlock:
    """Every object gets a leading comma: the list's first item is not part of a block."""
    gzip_part = _compress(b"," + view.items(objects, now))
    return GzipBlock(objects, view.unchanged_until(objects, now), gzip_part)


def _compress(content: bytes, *, last: bool = False) -> GzipPart:
    compressor = isal_zlib.compressobj(LEVEL, isal_zlib.DEFLATED, _RAW)
    # a sync flush ends at a byte boundary, and the next part does not refer back to this one
    deflated = compressor.compress(content) + compressor.flush(isal_zlib.Z_FINISH if last else isal_zlib.Z_SYNC_FLUSH)
    return GzipPart(deflated, len(content), isal_zlib.crc32(content))
