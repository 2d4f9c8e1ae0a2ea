"""A merged list as JSON or YAML, written while it is sent. Its memory is reserved until its client has got it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator, Sequence
from typing import Final

from aiohttp import web

from apiserver.encoding.encoded_object import to_json
from apiserver.encoding.list_formats import ListFormat, indented, indented_list, to_yaml, yaml_list
from apiserver.encoding.negotiation import YAML
from apiserver.endpoints.responsewriters import LargeResponse, is_pretty_requested
from apiserver.meta.resource import Object
from apiserver.request.context import RequestContext
from tenant_apiserver.proxy.merged.packed_list import PackedItem, PackedList, items_field

# of JSON, which are converted in one call of a thread
_RUN_BYTES: Final = 64 * 1024
_MEMORY: Final = 10 * _RUN_BYTES


def list_response(context: RequestContext, packed: PackedList, media_type: str) -> web.Response:
    """The response with a List or a Table. A short one is sent as a whole: it fits into the buffers of a connection."""
    if not packed.items:
        return web.Response(body=_empty(context, packed.head, media_type), headers={"Content-Type": media_type})
    form = _format(context, packed.head, media_type)
    if sum(len(each.json) for each in packed.items) > _RUN_BYTES:
        body = _pieces(form, packed.items, in_thread=form.separator != b",")
        return LargeResponse(body=body, memory=_MEMORY, status=200, headers={"Content-Type": media_type})
    items = form.items([each.json for each in packed.items])
    return web.Response(body=form.head + items + form.tail, headers={"Content-Type": media_type})


def _format(context: RequestContext, document: Object, media_type: str) -> ListFormat:
    name = items_field(document)
    head = to_json({**{field: value for field, value in document.items() if field != name}, name: []})
    head = head.removesuffix(b"]}")
    if media_type == YAML:
        return yaml_list(head)
    if is_pretty_requested(context):
        return indented_list(head)
    return ListFormat(head, b",".join, b",", b"]}\n")


async def _pieces(form: ListFormat, items: Sequence[PackedItem], *, in_thread: bool) -> AsyncIterator[bytes]:
    yield form.head
    before = b""
    for run in _runs(items):
        yield before + (await asyncio.to_thread(form.items, run) if in_thread else form.items(run))
        before = form.separator
    yield form.tail


def _runs(items: Sequence[PackedItem]) -> Iterator[Sequence[bytes]]:
    """The JSON of the items, in runs of about as many bytes."""
    run, size = list[bytes](), 0
    for item in items:
        run.append(item.json)
        size += len(item.json)
        if size >= _RUN_BYTES:
            yield run
            run, size = [], 0
    if run:
        yield run


def _empty(context: RequestContext, document: Object, media_type: str) -> bytes:
    """A list without items, whose form is another one."""
    body = to_json({**document, items_field(document): []})
    if media_type == YAML:
        return to_yaml(body)
    return indented(body) if is_pretty_requested(context) else body + b"\n"
