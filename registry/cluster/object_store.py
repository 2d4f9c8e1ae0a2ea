"""The object store of an informer. Objects are stored encoded: parsed ones need ten times the memory."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import islice
from sys import intern
from typing import Protocol, TypeVar, cast, overload

from isal import isal_zlib

from apiserver.cooperative import iterate_cooperatively
from apiserver.json import deep as deepjson
from apiserver.meta.resource import Key, Object

T = TypeVar("T")
_FAST = 1
_ZLIB_FORMAT = isal_zlib.MAX_WBITS
_SAMPLES = 4
# More of them would take longer to look at, for each object, than it saves.
_DICTIONARY_BYTES = 4 * 1024
# The first byte of zlib's output; a stored value begins with a brace or white space.
_COMPRESSED_PREFIX = b"x"


class ObjectLister(Protocol):
    """The read side of an informer's store."""

    def get(self, key: Key) -> Object | None: ...


class EncodedObjects(Sequence[Object]):
    """A sequence that parses an object on each access; the caller owns the result."""

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
        parsed: Object = deepjson.from_stored(self._encoded[index])
        return parsed


class ListedObjects(EncodedObjects):
    """The objects of a complete list, with what `keeps` has returned for each of them as they arrived: a handler that
    decides by the same function need not parse them again."""

    def __init__(self, encoded: Mapping[Key, bytes], kept: Mapping[Key, object], keeps: object) -> None:
        super().__init__(tuple(encoded.values()))
        self._kept = kept
        self._keeps = keeps

    def kept_by(self, keeps: Callable[[Object], T]) -> Mapping[Key, T] | None:
        """The results of `keeps` by key, in the order of the objects; None if another function was called for them."""
        return cast(Mapping[Key, T], self._kept) if keeps == self._keeps else None


class ObjectStore:
    """Objects by key, without managedFields. Only the informer writes to it.

    An object is stored as compact JSON, or as the same compressed with some objects of the last list as the dictionary:
    objects of a kind have so much in common that this is a tenth of its size.
    """

    def __init__(self) -> None:
        self._objects: dict[Key, bytes] = {}
        self._dictionary = b""

    def get(self, key: Key) -> Object | None:
        """The object; the caller owns it."""
        encoded_object = self._objects.get(key)
        if encoded_object is None:
            return None
        if encoded_object.startswith(_COMPRESSED_PREFIX):
            encoded_object = isal_zlib.decompressobj(_ZLIB_FORMAT, self._dictionary).decompress(encoded_object)
        parsed: Object = deepjson.from_stored(encoded_object)
        return parsed

    def items(self) -> Iterator[Object]:
        """Iterates over all objects in key order, and parses each of them lazily."""
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
        """Replaces the contents with objects that `encode` has encoded."""
        self._objects = dict(encoded)
        # nothing is left that was compressed with another one
        self._dictionary = b"".join(islice(encoded.values(), _SAMPLES))[-_DICTIONARY_BYTES:]

    async def compress(self) -> None:
        """Compresses all objects, and yields to the event loop in between. It takes 15 microseconds an object,
        so it runs after the handlers."""
        async for key, encoded_object in iterate_cooperatively(tuple(self._objects.items())):
            if self._objects.get(key) is encoded_object and not encoded_object.startswith(_COMPRESSED_PREFIX):
                self._objects[key] = self._compressed(encoded_object)

    def put(self, obj: Object) -> None:
        self._objects[key_of(obj)] = self._compressed(encode_without_managed_fields(obj))

    def remove(self, obj: Object) -> None:
        self._objects.pop(key_of(obj), None)

    def _compressed(self, encoded_object: bytes) -> bytes:
        compressor = isal_zlib.compressobj(_FAST, isal_zlib.DEFLATED, _ZLIB_FORMAT, zdict=self._dictionary)
        return compressor.compress(encoded_object) + compressor.flush()


def key_of(obj: Object) -> Key:
    """The key of an object. Its strings are interned, because the same names occur in many kinds and indexes."""
    metadata = obj["metadata"]
    return Key(intern(metadata.get("namespace") or ""), intern(metadata["name"]))


def version_of(obj: Object) -> int:
    """The resourceVersion. Those of one kind, and of all kinds of one etcd, are in the order of the changes."""
    return int(obj["metadata"]["resourceVersion"])


def encode_without_managed_fields(obj: Object) -> bytes:
    """Compact JSON without managedFields. Raises ValueError without a name or with a non-numeric resourceVersion."""
    metadata = obj.get("metadata")
    if not isinstance(metadata, dict) or not metadata.get("name"):
        raise ValueError("an object without a name")
    int(metadata["resourceVersion"])
    if "managedFields" in metadata:
        slim = {field: value for field, value in metadata.items() if field != "managedFields"}
        obj = {**obj, "metadata": slim}
    # a copy, because orjson returns its whole buffer, of up to twice the size of its content
    return bytes(memoryview(deepjson.to_stored(obj)))
