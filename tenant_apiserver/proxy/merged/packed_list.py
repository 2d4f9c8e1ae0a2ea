"""Lists as the JSON of their items: decoded, they would take ten to twenty times the memory."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from apiserver.encoding.encoded_object import to_json
from apiserver.meta.resource import Object
from registry.cluster.answer import decode_answer
from registry.cluster.list_decoder import ListDecoder
from registry.cluster.watch_decoder import MalformedStream
from tenant_apiserver.proxy.merged.frames import Form, form_of_list, frame_of_json, key_of, metadata_of, uid_of

_PIECE: Final = 64 * 1024
# of the objects that hold an item: its tuple, three texts, and its place in a list and in what the client has
_ITEM_BYTES: Final = 400
_OK: Final = 200


class PackedItem(NamedTuple):
    """An object, or the row of a Table. `is_typed` says if it has a kind of its own, as items of CustomResources do."""

    json: bytes
    key: str
    uid: str
    is_typed: bool


@dataclass(frozen=True, slots=True)
class PackedList:
    """`head` is the List or the Table without its items."""

    head: Object
    items: Sequence[PackedItem] = ()

    @property
    def metadata(self) -> Object:
        found: Object = self.head.get("metadata") or {}
        return found

    @property
    def size(self) -> int:
        """The memory in bytes."""
        return sum(len(each.json) + _ITEM_BYTES for each in self.items)

    @property
    def form(self) -> Form:
        return form_of_list(self.head)


def items_field(document: Object) -> str:
    """The field with the objects of a List, or the rows of a Table."""
    return "rows" if document.get("kind") == "Table" else "items"


def pack_item(item: Object) -> PackedItem:
    metadata = metadata_of(item)
    # a copy: orjson leaves the block of its buffer to the result, which is up to 35 times as large
    text = bytes(memoryview(to_json(item)))
    return PackedItem(text, key_of(metadata), uid_of(metadata), "kind" in item and "apiVersion" in item)


def pack(document: Object) -> PackedList:
    name = items_field(document)
    head = {field: value for field, value in document.items() if field != name}
    return PackedList(head, [pack_item(each) for each in document.get(name) or ()])


def unpack_answer(code: int, phrase: str, body: bytes) -> PackedList:
    """The list of an answer, of which one item at a time is decoded. Raises as `decode_answer`."""
    if code != _OK:
        return pack(decode_answer(code, phrase, body))
    decoder, items = ListDecoder(), list[PackedItem]()
    try:
        for start in range(0, len(body), _PIECE):
            items.extend(map(pack_item, decoder.feed(body[start : start + _PIECE])))
        head = decoder.head()
    except MalformedStream:
        # tells what it is instead
        return pack(decode_answer(code, phrase, body))
    head.pop(items_field(head), None)
    return PackedList(head, items)


def added_frames(packed: PackedList) -> Iterator[bytes]:
    """The events by which a client learns of the objects of a list."""
    form = packed.form
    if form.kind != "Table":
        typed: Any = {"kind": form.kind, "apiVersion": form.api_version}
        before = to_json(typed).removesuffix(b"}")
        for item in packed.items:
            separator = b"," if item.json != b"{}" else b""
            yield frame_of_json(
                "ADDED", item.json if item.is_typed else before + separator + item.json.removeprefix(b"{")
            )
        return
    before = to_json({**packed.head, "metadata": {"resourceVersion": ""}, "rows": []}).removesuffix(b"]}")
    for item in packed.items:
        yield frame_of_json("ADDED", before + item.json + b"]}")
