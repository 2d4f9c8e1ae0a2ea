"""The handler of update: PUT of an object, 404 if it does not exist (WIRE-D77)."""

from __future__ import annotations

from functools import partial
from typing import cast

from aiohttp import web

from apiserver import rest
from apiserver.encoding.negotiation import negotiate
from apiserver.encoding.offload import json_size, offload_if_large
from apiserver.endpoints.handlers import request_body as body
from apiserver.endpoints.handlers.request_scope import RequestScope, write_options_document
from apiserver.endpoints.responsewriters import object_response
from apiserver.json.values import deep_copy
from apiserver.meta import errors
from apiserver.meta import object_meta as meta
from apiserver.meta.resource import Key, Object
from apiserver.request.context import RequestContext
from apiserver.request.options import parse_update_options


async def update(context: RequestContext, scope: RequestScope) -> web.StreamResponse:
    storage = cast(rest.Updater, scope.storage)
    media = negotiate(context.http.headers.get("Accept", ""))
    options = parse_update_options(context.query, context.http.headers.get("User-Agent", ""))
    key = scope.key(context)
    sent = await body.read_object(context, scope.resource, options.field_validation)
    size = json_size(sent)
    await offload_if_large(partial(check_identity, context, sent, key), size=size)
    document = write_options_document("UpdateOptions", context.query)
    now = meta.now_rfc3339()

    def track_fields(current: Object) -> Object:
        return scope.field_manager.update(
            current, deep_copy(sent), manager=options.field_manager, now=now, subresource=scope.subresource
        )

    async def change(current: Object | None) -> Object:
        assert current is not None
        new = await offload_if_large(partial(track_fields, current), size=size + json_size(current))
        return await scope.mutate(context, "UPDATE", new, current, document)

    validate = scope.validate(context, "UPDATE", document)
    stored, _ = await storage.update(context, key, change, validate, dry_run=options.dry_run)
    return object_response(context, scope.resource, stored, media=media)


def check_identity(context: RequestContext, obj: Object, key: Key) -> None:
    """Check that an updated or patched object has the name and namespace of the URL, and that its resourceVersion, if
    set, is valid. Raises BadRequest."""
    body.check_name(obj, key.name, key.namespace)
    _check_resource_version(obj)
    if warning := meta.dedup_owner_references(obj):
        context.warn(warning)


def _check_resource_version(obj: Object) -> None:
    """Raises BadRequest for a resourceVersion that is not a number (WIRE-D50)."""
    version = obj["metadata"].get("resourceVersion") or ""
    if version and not (version.isascii() and version.isdigit()):
        raise errors.BadRequest(f"invalid resource version: {version}")
