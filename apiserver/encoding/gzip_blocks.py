"""Lists as gzip, compressed once: the clients that informers and kubectl are built on all ask for it.

A list is cut into blocks of neighbours. What a block comes to is kept with its first object, until one of its objects
is another, or older by as much as the list tells: of a list that was asked for before, only the blocks that have
changed are compressed again.
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
# Deflate without a header: what a gzip member consists of, and what can be put together from parts.
_RAW: Final = -15
_HEADER: Final = b"\x1f\x8b\x08\x00\x00\x00\x00\x00\x04\xff"
_PIECE_BYTES: Final = 64 * 1024
# A block begins at an object that leads: one that comes or goes changes its own block, and leaves the others.
_MOST_OBJECTS: Final = 512

_POLYNOMIAL: Final = 0xEDB88320


@dataclass(frozen=True, slots=True)
class Part:
    """Some bytes of a gzip member: deflated, how many they were, and their CRC-32."""

    deflated: bytes
    size: int
    crc: int


@dataclass(frozen=True, slots=True)
class Block:
    """A part that is what `objects` come to, until a time in seconds of the epoch. `shift` is what appending it does to
    the CRC of what stands before it."""

    objects: Sequence[CachedObject]
    until: float
    part: Part
    shift: int


async def gzipped(view: View, items: Sequence[CachedObject], metadata: bytes, now: float) -> AsyncIterator[bytes]:
    """The list of `items`, whose ListMeta is `metadata`, as it is `now`, in seconds of the epoch."""
    items = tuple(items)
    head = _part(b"".join((view.list_head(metadata), *view.items(items[:1], now))))
    crc, size, ready = head.crc, head.size, [_HEADER, head.deflated]
    for objects in blocks(items[1:]):
        block: Block | None = objects[0].packed.get(view.form)
        if block is None or block.until <= now or block.objects != objects:
            block = await asyncio.to_thread(_block, view, objects, now)
            objects[0].packed = {**objects[0].packed, view.form: block}
        crc, size = _times(block.shift, crc) ^ block.part.crc, size + block.part.size
        ready.append(block.part.deflated)
        if sum(map(len, ready)) >= _PIECE_BYTES:
            yield b"".join(ready)
            ready = []
            # as in any long answer, others have their turn
            await asyncio.sleep(0)
    tail = _part(b"]}\n", last=True)
    crc = _times(_shift(tail.size), crc) ^ tail.crc
    yield b"".join((*ready, tail.deflated, struct.pack("<II", crc, (size + tail.size) & 0xFFFFFFFF)))


def blocks(items: Sequence[CachedObject]) -> Iterator[Sequence[CachedObject]]:
    """Neighbours together, all of them in order, none of the blocks empty."""
    begin = 0
    for at, obj in enumerate(items):
        if at > begin and (obj.leads or at - begin >= _MOST_OBJECTS):
            yield items[begin:at]
            begin = at
    if begin < len(items):
        yield items[begin:]


def _block(view: View, objects: Sequence[CachedObject], now: float) -> Block:
    """Every object stands behind another one: the first of the list is not in a block."""
    part = _part(b",".join((b"", *view.items(objects, now))))
    return Block(objects, view.lasts(objects, now), part, _shift(part.size))


def _part(content: bytes, *, last: bool = False) -> Part:
    compressor = zlib.compressobj(LEVEL, zlib.DEFLATED, _RAW)
    # a sync flush ends at a byte, and the next part refers to nothing before it
    deflated = compressor.compress(content) + compressor.flush(zlib.Z_FINISH if last else zlib.Z_SYNC_FLUSH)
    return Part(deflated, len(content), zlib.crc32(content))


# The CRC of a whole out of those of its parts, as zlib's crc32_combine has it: a CRC is a polynomial over GF(2), lowest
# power in the highest bit, and what is appended multiplies it by a power of x.


def _shift(size: int) -> int:
    """x to the power of the bits in `size` bytes."""
    power, square = 1 << 31, 1 << 23
    while size:
        if size & 1:
            power = _times(square, power)
        square = _times(square, square)
        size >>= 1
    return power


def _times(one: int, other: int) -> int:
    product = 0
    for bit in range(31, -1, -1):
        if one >> bit & 1:
            product ^= other
        other = other >> 1 ^ _POLYNOMIAL if other & 1 else other >> 1
    return product
