"""The ConfigMap that keeps the forms in force across restarts, so that a bad update of a definition takes no kind down.

Its `binaryData` has a key for each definition: gzip of the JSON of what the form was read from. Pure.
"""

from __future__ import annotations

import base64
import binascii
import gzip
import zlib
from collections.abc import Collection, Iterator, Mapping
from typing import Any, NamedTuple

import orjson

from apiserver.meta.resource import Object
from registry.application.definition import ApplicationDefinition, source_of

NAME = "tenant-apiserver-application-kinds"
KEY = "binaryData"
MAX_BYTES = 900_000
"""Of all forms together, as they are stored: a ConfigMap has 1 MiB. Cozystack's 31 definitions need 60 kB."""
_MAX_FORM_BYTES = 2 * 1024 * 1024


class KeptForms(NamedTuple):
    """The `binaryData` of the ConfigMap, and the names of the definitions that there is no room for."""

    data: Mapping[str, str]
    left_out: tuple[str, ...]


def to_data(forms: Mapping[str, ApplicationDefinition]) -> KeptForms:
    """Takes a few milliseconds for each MB. The largest forms are left out if not all of them fit."""
    encoded = {name: _encoded(form.source) for name, form in forms.items()}
    data: dict[str, str] = {}
    size = 0
    for name in sorted(encoded, key=lambda each: (len(encoded[each]), each)):
        size += len(name) + len(encoded[name])
        if size > MAX_BYTES:
            break
        data[name] = encoded[name]
    return KeptForms(data, tuple(sorted(encoded.keys() - data.keys())))


def _encoded(source: Object) -> str:
    text = orjson.dumps(source, option=orjson.OPT_SORT_KEYS)
    # without the time, equal forms have equal texts
    return base64.b64encode(gzip.compress(text, mtime=0)).decode()


def read_sources(configmap: Object, names: Collection[str] | None = None) -> Iterator[tuple[str, Object]]:
    """The sources of the forms in a ConfigMap that are of definitions with these `names`, or of any. Unreadable ones
    are left out. They are decoded one by one: a ConfigMap that somebody else has written can hold hundreds of forms
    that take a thousand times their space."""
    data = configmap.get(KEY)
    for name, text in (data if isinstance(data, dict) else {}).items():
        source = _decoded(text) if names is None or name in names else None
        if source is not None and source["metadata"]["name"] == name:
            yield name, source


def _decoded(text: object) -> Object | None:
    """None for what is no form."""
    if not isinstance(text, str):
        return None
    try:
        decompressor = zlib.decompressobj(wbits=zlib.MAX_WBITS | 16)
        source: Any = orjson.loads(decompressor.decompress(base64.b64decode(text, validate=True), _MAX_FORM_BYTES))
    except (binascii.Error, zlib.error, ValueError):
        return None
    is_form = isinstance(source, dict) and all(isinstance(source.get(part), dict) for part in ("metadata", "spec"))
    # so that the fields that each form has are there
    return source_of(source) if is_form and isinstance(source["metadata"].get("name"), str) else None
