"""Compresses lists with gzip, block by block, so that a repeated list only compresses the blocks that changed.

A block is a run of neighbouring objects. Its compressed bytes are cached on its first object and dropped as soon as
any object of the block, or the age in one of its table rows, changes. client-go and kubectl always accept gzip.
"""

from __future__ import annotations

import asyncio
import struct
import zlib
from collections.abc import AsyncIterator, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from apiserver.encoding.encoded_object import CachedObject
from apiserver.encoding.transforms import View

LEVEL: Final = 1
# Raw deflate without a header, so that compressed parts can be concatenated into one gzip member.
_RAW: Final = -15
_HEADER: Final = b"\x1f\x8b\x08\x00\x00\x00\x00\x00\x04\xff"
_PIECE_BYTES: Final = 64 * 1024
# Blocks begin at objects with `starts_block`, so that adding or removing an object changes only the block around it.
_MAX_OBJECTS: Final = 512

_POLYNOMIAL: Final = 0xEDB88320


@dataclass(frozen=True, slots=True)
class GzipPart:
    """A part of a gzip member: the deflated bytes, and the size and CRC-32 of the original ones."""

    deflated: bytes
    size: int
    crc: int


@dataclass(frozen=True, slots=True)
class GzipBlock:
    """The compressed `objects`. `valid_until` is in seconds of the epoch. The CRC of all bytes before the block is
    multiplied by `crc_shift` when the block is appended."""

    objects: Sequence[CachedObject]
    valid_until: float
    gzip_part: GzipPart
    crc_shift: int


async def gzip_list(view: View, items: Sequence[CachedObject], metadata: bytes, now: float) -> AsyncIterator[bytes]:
    """Yield the gzip of a list of `items` with the ListMeta `metadata`. `now` is in seconds of the epoch."""
    items = tuple(items)
    head = _compress(b"".join((view.list_head(metadata), *view.items(items[:1], now))))
    crc, size, ready = head.crc, head.size, [_HEADER, head.deflated]
    for objects in split_into_blocks(items[1:]):
        block: GzipBlock | None = objects[0].gzip_blocks.get(view.form)
        if block is None or block.valid_until <= now or block.objects != objects:
            block = await asyncio.to_thread(_compress_block, view, objects, now)
            objects[0].gzip_blocks = {**objects[0].gzip_blocks, view.form: block}
        crc, size = _multiply(block.crc_shift, crc) ^ block.gzip_part.crc, size + block.gzip_part.size
        ready.append(block.gzip_part.deflated)
        if sum(map(len, ready)) >= _PIECE_BYTES:
            yield b"".join(ready)
            ready = []
            # yield to the event loop: the list may be long
            await asyncio.sleep(0)
    tail = _compress(b"]}\n", last=True)
    crc = _multiply(_crc_shift(tail.size), crc) ^ tail.crc
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
    gzip_part = _compress(b",".join((b"", *view.items(objects, now))))
    return GzipBlock(objects, view.unchanged_until(objects, now), gzip_part, _crc_shift(gzip_part.size))


def _compress(content: bytes, *, last: bool = False) -> GzipPart:
    compressor = zlib.compressobj(LEVEL, zlib.DEFLATED, _RAW)
    # a sync flush ends at a byte boundary, and the next part does not refer back to this one
    deflated = compressor.compress(content) + compressor.flush(zlib.Z_FINISH if last else zlib.Z_SYNC_FLUSH)
    return GzipPart(deflated, len(content), zlib.crc32(content))


# The CRC of the whole is combined from the CRCs of its parts, as zlib's crc32_combine does: a CRC is a polynomial over
# GF(2), with the lowest power in the highest bit, and appending bytes multiplies it by a power of x.


def _crc_shift(size: int) -> int:
    """x to the power of the number of bits in `size` bytes."""
    power, square = 1 << 31, 1 << 23
    while size:
        if size & 1:
            power = _multiply(square, power)
        square = _multiply(square, square)
        size >>= 1
    return power


def _multiply(one: int, other: int) -> int:
    product = 0
    for bit in range(31, -1, -1):
        if one >> bit & 1:
            product ^= other
        other = other >> 1 ^ _POLYNOMIAL if other & 1 else other >> 1
    return product
