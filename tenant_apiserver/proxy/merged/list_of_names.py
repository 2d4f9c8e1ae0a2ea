"""A list of the cluster-scoped objects that the caller may get by name."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import chain
from typing import Final

from apiserver.meta.errors import Expired, StatusError
from apiserver.meta.resource import METADATA_FIELDS, Object
from apiserver.meta.selectors import check_supported
from apiserver.request.context import RequestContext
from apiserver.request.options import EXACT, field_selector, label_selector
from tenant_apiserver.proxy.merged.caller_requests import CallerRequests
from tenant_apiserver.proxy.merged.frames import metadata_of
from tenant_apiserver.proxy.merged.list_of_parts import gather_or_raise
from tenant_apiserver.proxy.merged.packed_list import PackedItem, PackedList, pack_item
from tenant_apiserver.proxy.merged.part import object_path

_AT_ONCE: Final = 16
_ABSENT: Final = frozenset({403, 404})
_TABLE: Final = "Table"


@dataclass(frozen=True, slots=True)
class NamedList:
    """The List or Table, and its objects or rows by their names."""

    packed: PackedList
    items: Mapping[str, Sequence[PackedItem]]


async def list_of_names(
    context: RequestContext,
    requests: CallerRequests,
    names: Sequence[str],
    current_version: Callable[[], Awaitable[str]],
) -> NamedList | None:
    """Gets each object as the caller; None if there is none. The version is from before the first, so that a watch from
    it repeats what is newer. Selectors are those of metadata. Raises BadRequest for other fields, Expired for a list of
    exactly one version, and the StatusError of an object that cannot be read."""
    if context.query.get("resourceVersionMatch") == EXACT:
        raise Expired("lists of names are of the current version only")
    labels, fields = label_selector(context.query), field_selector(context.query)
    check_supported(fields, METADATA_FIELDS)
    version = await current_version()
    with_object = context.query.get("includeObject") != "None"
    example: Object | None = None
    chosen: dict[str, list[PackedItem]] = {}
    for start in range(0, len(names), _AT_ONCE):
        wave = names[start : start + _AT_ONCE]
        found = await gather_or_raise([partial(_get, context, requests, name) for name in wave])
        for name, answer in zip(wave, found, strict=True):
            if answer is None:
                continue
            example = example or answer
            if labels.matches(metadata_of(answer).get("labels") or {}) and fields.matches({"metadata.name": name}):
                chosen[name] = [pack_item(_item(answer, with_object=with_object))]
    if example is None:
        return None
    return NamedList(PackedList(_head(example, version), [*chain.from_iterable(chosen.values())]), chosen)


async def _get(context: RequestContext, requests: CallerRequests, name: str) -> Object | None:
    # the rows of a Table without their objects have no labels to select by
    include = context.query.get("includeObject")
    query = f"?includeObject={'Object' if include == 'Object' else 'Metadata'}" if include else ""
    try:
        return await requests.get_one(object_path(context.info, name) + query)
    except StatusError as error:
        if error.code not in _ABSENT:
            raise
        return None


def _item(answer: Object, *, with_object: bool) -> Object:
    """An object as it stands in a list, where items have neither kind nor apiVersion; or a row of a Table."""
    if answer.get("kind") != _TABLE:
        return {name: value for name, value in answer.items() if name not in ("kind", "apiVersion")}
    row: Object = answer["rows"][0]
    return row if with_object else {**row, "object": None}


def _head(example: Object, version: str) -> Object:
    """The list without its items, of the form of one of its objects."""
    metadata = {"resourceVersion": version}
    if example.get("kind") == _TABLE:
        return {**{name: value for name, value in example.items() if name != "rows"}, "metadata": metadata}
    return {"kind": f"{example['kind']}List", "apiVersion": example["apiVersion"], "metadata": metadata}
