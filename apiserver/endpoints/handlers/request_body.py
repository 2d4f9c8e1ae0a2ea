"""Reads, decodes and validates request bodies: size, kind, schema and strict field validation (WIRE-D26 to
WIRE-D38)."""

from __future__ import annotations

import re
from functools import partial
from typing import Any

from apiserver.authorization.authorizer import is_component
from apiserver.encoding.offload import offload_if_large
from apiserver.json.values import contains_more_than, path_text_exceeds
from apiserver.meta import errors
from apiserver.meta.protobuf_message import MessageDescriptor
from apiserver.meta.resource import Object, Resource
from apiserver.request.context import RequestContext, User
from apiserver.schema.pruning_and_defaulting import (
    apply_defaults,
    metadata_type_error,
    object_schema,
    prune,
    unknown_fields,
)
from apiserver.serializer import protobuf
from apiserver.serializer.decoder import (
    MAX_PATH_TEXT,
    DecodedBody,
    check_media_type,
    decode,
    decoding_cost,
    paths_too_long,
)

MAX_BYTES = 3 * 1024 * 1024
MAX_VALUES = 20_000
"""The maximum number of values in one object. A write takes about 40 microseconds per value in total (ATTACK-13)."""
MAX_MANAGED_VALUES = 2 * MAX_VALUES
"""The maximum number of values in its managedFields, each of which takes at most half as long."""
_BEFORE_VALUES = (b",", b"\n", b"[", b"{")
# A few copies of a value exist at a time.
_VALUE_BYTES = 256
# Python's texts have one byte a character if all are of Latin-1, and otherwise two or four.
_WIDE_ESCAPE = re.compile(rb"\\u(?!00)|\\U")
_WIDE_BYTES = 4
# The rest of a user's share is for the body itself and the response.
_MAX_DECODED_BYTES = 8 * 1024 * 1024
_TYPE = ("apiVersion", "kind")


async def read(context: RequestContext, *, limit: int = MAX_BYTES) -> bytes:
    """The whole body. Raises RequestEntityTooLarge if it exceeds `limit` bytes, and TooManyRequests if its user has too
    many bytes in flight; if the request has a Content-Length, before the body is read."""
    http, reservation = context.http, context.reservation
    if (http.content_length or 0) > limit:
        raise errors.RequestEntityTooLarge(f"limit is {limit}")
    reservation.check(http.content_length or 0)
    # a list of the pieces would need many times their memory if they are small
    body = bytearray()
    try:
        async for piece in http.content.iter_any():
            if len(body) + len(piece) > limit:
                raise errors.RequestEntityTooLarge(f"limit is {limit}")
            reservation.add(len(piece))
            body += piece
        reservation.add(_decoded_bytes(body))
        return bytes(body)
    finally:
        # a traceback would keep it until the garbage collector runs
        body.clear()


def _decoded_bytes(body: bytearray) -> int:
    """An estimate of the memory of the decoded values, and from above, unless an object of the largest size takes
    less. The texts of a body in ASCII take as much as the body, which counts by itself."""
    values = min(sum(map(body.count, _BEFORE_VALUES)), MAX_VALUES) * _VALUE_BYTES
    is_wide = not body.isascii() or _WIDE_ESCAPE.search(body)
    texts = (_WIDE_BYTES - 1) * len(body) if is_wide else 0
    return min(values + texts, _MAX_DECODED_BYTES)


def media_type(context: RequestContext) -> str:
    return context.http.headers.get("Content-Type", "").partition(";")[0].strip().lower()


async def read_object(context: RequestContext, resource: Resource, field_validation: str) -> Object:
    """The object of a POST or PUT, with defaults applied and unknown fields removed."""
    content_type = media_type(context) or "application/json"
    if resource.protobuf is None or content_type != protobuf.MEDIA_TYPE:
        check_media_type(content_type)
    raw = await read(context)
    work = partial(_decode_object, context, raw, content_type, resource, field_validation)
    return await offload_if_large(work, size=decoding_cost(raw, content_type))


def _decode_object(
    context: RequestContext, raw: bytes, content_type: str, resource: Resource, field_validation: str
) -> Object:
    document = parse(raw, content_type, resource.protobuf)
    check_size(document.value, context.user)
    obj = check_kind(document.value, resource)
    resource.precheck(obj)
    strict = strict_errors(document, obj, resource, field_validation)
    if strict and field_validation == "Strict":
        raise errors.BadRequest(f"{_cannot_be_handled(resource)}: {strict_text(strict)}")
    return validate_and_default(context, obj, resource, strict)


def parse(raw: bytes, content_type: str, descriptor: MessageDescriptor | None) -> DecodedBody:
    """Decode a body: JSON, YAML, or protobuf if the kind has a message descriptor (WIRE-E18)."""
    if descriptor is not None and content_type == protobuf.MEDIA_TYPE:
        return DecodedBody(protobuf.decode(raw, descriptor))
    return decode(raw, content_type)


def check_size(value: Any, user: User) -> None:
    """Raises RequestEntityTooLarge for more than MAX_VALUES values, or MAX_PATH_TEXT characters of their paths. The
    managedFields, which the server adds to what the user wrote, have twice as much for their own. A component may add
    its fields to whatever was admitted."""
    if is_component(user):
        return
    metadata = value.get("metadata") if isinstance(value, dict) else None
    if isinstance(metadata, dict) and (managed := metadata.get("managedFields")):
        if contains_more_than(managed, MAX_MANAGED_VALUES):
            raise errors.RequestEntityTooLarge(f"metadata.managedFields may hold {MAX_MANAGED_VALUES} values")
        if path_text_exceeds(managed, 2 * MAX_PATH_TEXT):
            raise paths_too_long()
        own = {name: each for name, each in metadata.items() if name != "managedFields"}
        value = {**value, "metadata": own}
    if contains_more_than(value, MAX_VALUES):
        raise errors.RequestEntityTooLarge(f"an object may hold {MAX_VALUES} values")
    if path_text_exceeds(value, MAX_PATH_TEXT):
        raise paths_too_long()


def check_kind(value: Any, resource: Resource) -> Object:
    """Check that `value` is an object of the endpoint's kind. A missing kind or apiVersion is filled in (WIRE-D31)."""
    if not isinstance(value, dict):
        raise errors.BadRequest(f"the object provided is unrecognized (must be of type {resource.kind})")
    kind, api_version = value.get("kind") or resource.kind, value.get("apiVersion") or resource.api_version
    if not isinstance(kind, str) or not isinstance(api_version, str):
        raise errors.BadRequest(f"the object provided is unrecognized (must be of type {resource.kind})")
    if kind != resource.kind:
        version = api_version.rpartition("/")[2]
        raise errors.BadRequest(
            f'{kind} in version "{version}" cannot be handled as a {resource.kind}: '
            f'no kind "{kind}" is registered for version "{api_version}"'
        )
    if api_version != resource.api_version:
        raise errors.BadRequest(
            f"the API version in the data ({api_version}) does not match the expected API version "
            f"({resource.api_version})"
        )
    return {"apiVersion": api_version, "kind": kind, **{k: v for k, v in value.items() if k not in _TYPE}}


def validate_and_default(context: RequestContext, obj: Object, resource: Resource, strict: list[str]) -> Object:
    """Check the types of metadata (400), remove unknown fields, and apply defaults."""
    if problem := metadata_type_error(resource, obj):
        raise errors.BadRequest(f"{_cannot_be_handled(resource)}: {problem}")
    for text in strict:
        context.warn(one_line(text))
    schema = object_schema(resource)
    pruned: Object = prune(schema, obj)
    if not isinstance(pruned.get("metadata"), dict):
        pruned["metadata"] = {}
    apply_defaults(schema, pruned)
    resource.default(pruned)
    return pruned


def strict_errors(document: DecodedBody, obj: Object, resource: Resource, field_validation: str) -> list[str]:
    """The unknown and duplicate fields that strict decoding reports (WIRE-D67); none with `Ignore`."""
    if field_validation == "Ignore":
        return []
    unknown = (f'unknown field "{path}"' for path in unknown_fields(object_schema(resource), obj))
    return list(errors.first_texts(dict.fromkeys([*errors.first_texts(unknown), *document.strict_errors])))


def strict_text(strict: list[str]) -> str:
    return f"strict decoding error: {', '.join(strict)}"


def one_line(text: str) -> str:
    """`text` without line breaks: the strict errors of YAML have some, and a Warning header cannot."""
    return " ".join(text.split())


def _cannot_be_handled(resource: Resource) -> str:
    return f'{resource.kind} in version "{resource.version}" cannot be handled as a {resource.kind}'


def reconcile_namespace(context: RequestContext, obj: Object, resource: Resource) -> None:
    """Fill an empty namespace from the URL. Raises BadRequest for another one (WIRE-D36)."""
    metadata = obj["metadata"]
    expected = context.info.namespace if resource.namespaced else ""
    namespace = metadata.get("namespace") or ""
    if namespace and namespace != expected:
        raise errors.BadRequest("the namespace of the provided object does not match the namespace sent on the request")
    if expected:
        metadata["namespace"] = expected
    else:
        metadata.pop("namespace", None)


def check_name(obj: Object, name: str, namespace: str) -> None:
    """Check that an updated or patched object is the one that the URL names (WIRE-D35)."""
    metadata = obj["metadata"]
    own_name = metadata.get("name") or ""
    if not own_name:
        raise errors.BadRequest(
            f"the name of the object ({name} based on URL) was undeterminable: name must be provided"
        )
    if own_name != name:
        raise errors.BadRequest(f"the name of the object ({own_name}) does not match the name on the URL ({name})")
    own_namespace = metadata.get("namespace") or ""
    if own_namespace and own_namespace != namespace:
        raise errors.BadRequest(
            f"the namespace of the object ({own_namespace}) does not match the namespace on the request ({namespace})"
        )
    if namespace:
        metadata["namespace"] = namespace
