"""What an informer has seen, by key, as bytes: a parsed object needs ten times the memory."""

from __future__ import annotations

import zlib
from collections.abc import Iterator, Mapping, Sequence
from sys import intern
from typing import Protocol, overload

from apiserver.cooperative import iterate_cooperatively
from apiserver.json import deep as deepjson
from apiserver.meta.resource import Key, Object

_FAST = 1
# How what zlib makes begins; an object as JSON begins with a brace, or a space before it.
_PACKED = b"x"


class ObjectLister(Protocol):
    """The read side of an informer's store."""

    def get(self, key: Key) -> Object | None: ...


class EncodedObjects(Sequence[Object]):
    """Objects that are parsed when they are looked at, each time anew: the caller owns what it gets."""

    def __init__(self, encoded: Sequence[bytes]) -> None:
        self._encoded = encoded

    def __len__(self) -> int:
        return len(self._encoded)

    @overload
    def __getitem__(self, index: int) -> Object: ...

    @overload
    def __getitem__(self, index: slice) -> EncodedObjects: ...

    def __getitem__(self, index: int | slice) -> Object | EncodedObjects:
        if isinstance(index, slice):
            return EncodedObjects(self._encoded[index])
        parsed: Object = deepjson.loads_dumped(self._encoded[index])
        return parsed


class ObjectStore:
    """Read by key; written by the informer alone. managedFields are left out: nobody here asks who wrote what.

    Objects are compact JSON, or that compressed to less than half of it.
    """

    def __init__(self) -> None:
        self._objects: dict[Key, bytes] = {}

    def get(self, key: Key) -> Object | None:
        """The object, parsed anew: the caller owns it."""
        held = self._objects.get(key)
        if held is None:
            return None
        parsed: Object = deepjson.loads_dumped(zlib.decompress(held) if held.startswith(_PACKED) else held)
        return parsed

    def items(self) -> Iterator[Object]:
        """Every object in key order, each parsed when its turn comes."""
        for key in sorted(self._objects):
            if (found := self.get(key)) is not None:
                yield found

    def keys(self) -> Sequence[Key]:
        return sorted(self._objects)

    def __contains__(self, key: Key) -> bool:
        return key in self._objects

    def __len__(self) -> int:
        return len(self._objects)

    def replace(self, encoded: Mapping[Key, bytes]) -> None:
        """`encoded` is what `encode` makes of the objects."""
        self._objects = dict(encoded)

    async def compress(self) -> None:
        """Compress everything, with turns for others: 15 microseconds an object, so not while somebody waits for it."""
        async for key, held in iterate_cooperatively(tuple(self._objects.items())):
            if self._objects.get(key) is held and not held.startswith(_PACKED):
                self._objects[key] = zlib.compress(held, _FAST)

    def put(self, obj: Object) -> None:
        self._objects[key_of(obj)] = zlib.compress(encode(obj), _FAST)

    def remove(self, obj: Object) -> None:
        self._objects.pop(key_of(obj), None)


def key_of(obj: Object) -> Key:
    """Its names are interned: objects of many kinds have the same, and are known in many places."""
    metadata = obj["metadata"]
    return Key(intern(metadata.get("namespace") or ""), intern(metadata["name"]))


def encode(obj: Object) -> bytes:
    """Compact JSON without managedFields. Raises ValueError for an object without a name or a number as version."""
    metadata = obj.get("metadata")
    if not isinstance(metadata, dict) or not metadata.get("name"):
        raise ValueError("an object without a name")
    int(metadata["resourceVersion"])
    slim = {field: value for field, value in metadata.items() if field != "managedFields"}
    # orjson hands out its whole buffer, up to twice the size of what is in it: fine for bytes that are soon gone
    return bytes(memoryview(deepjson.dumps({**obj, "metadata": slim})))
