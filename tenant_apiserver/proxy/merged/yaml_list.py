"""A merged list as YAML, converted item by item while it is sent: as a whole it would need ten times its memory."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator, Sequence
from typing import Any, Final

from apiserver.encoding.encoded_object import to_json
from apiserver.encoding.list_formats import to_yaml, yaml_list
from apiserver.encoding.negotiation import YAML
from apiserver.endpoints.responsewriters import LargeResponse
from apiserver.meta.resource import Object
from tenant_apiserver.proxy.merged.list_of_parts import items_field

# of JSON, which are converted in one call of a thread
_RUN_BYTES: Final = 64 * 1024
_MEMORY: Final = 10 * _RUN_BYTES


def yaml_response(document: Object) -> LargeResponse:
    """The response with a List or a Table."""
    return LargeResponse(body=_pieces(document), memory=_MEMORY, status=200, headers={"Content-Type": YAML})


async def _pieces(document: Object) -> AsyncIterator[bytes]:
    name = items_field(document)
    items: Sequence[Any] = document.get(name) or []
    head = to_json({**{field: value for field, value in document.items() if field != name}, name: []})
    if not items:
        yield to_yaml(head)
        return
    form = yaml_list(head.removesuffix(b"]}"))
    yield form.head
    for run in _runs(items):
        yield await asyncio.to_thread(form.items, run)
    yield form.tail


def _runs(items: Sequence[Any]) -> Iterator[Sequence[bytes]]:
    """The JSON of the items, in runs of about as many bytes."""
    run, size = list[bytes](), 0
    for item in items:
        run.append(to_json(item))
        size += len(run[-1])
        if size >= _RUN_BYTES:
            yield run
            run, size = [], 0
    if run:
        yield run
