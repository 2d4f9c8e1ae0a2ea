"""The handler of create: POST on a collection or a subresource (WIRE-D26, WIRE-D34, WIRE-D74)."""

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
from apiserver.meta import errors
from apiserver.meta import object_meta as meta
from apiserver.meta.resource import Object
from apiserver.request.context import RequestContext
from apiserver.request.options import WriteOptions, parse_create_options

_SYSTEM_FIELDS = ("uid", "creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds", "selfLink")


async def create(context: RequestContext, scope: RequestScope) -> web.StreamResponse:
    storage = cast(rest.Creater, scope.storage)
    # a resource that can only be created, such as a review, is never rendered as a table (WIRE-E16)
    media = negotiate(context.http.headers.get("Accept", ""), tables=isinstance(storage, rest.Getter))
    options = parse_create_options(context.query, context.http.headers.get("User-Agent", ""))
    obj = await body.read_object(context, scope.resource, options.field_validation)
    document = write_options_document("CreateOptions", context.query)
    obj = await offload_if_large(partial(_prepare, context, scope, obj, options), size=json_size(obj))
    obj = await scope.mutate(context, "CREATE", obj, None, document)
    obj = await offload_if_large(partial(drop_system_fields, context, obj), size=json_size(obj))
    validate = scope.validate(context, "CREATE", document)
    stored = await storage.create(context, obj, validate, dry_run=options.dry_run)
    return object_response(context, scope.resource, stored, code=201, media=media)


def _prepare(context: RequestContext, scope: RequestScope, obj: Object, options: WriteOptions) -> Object:
    """Prepare the object for admission."""
    body.reconcile_namespace(context, obj, scope.resource)
    obj = drop_system_fields(context, obj)
    return scope.field_manager.create(obj, manager=options.field_manager, now=meta.now_rfc3339())


def drop_system_fields(context: RequestContext, obj: Object) -> Object:
    """Drop the metadata fields that only the server sets, and duplicate ownerReferences (WIRE-D34, WIRE-D45). Raises
    BadRequest for a resourceVersion."""
    metadata = obj["metadata"]
    if metadata.get("resourceVersion"):
        raise errors.BadRequest("resourceVersion should not be set on objects to be created")
    metadata.pop("resourceVersion", None)
    for field in _SYSTEM_FIELDS:
        metadata.pop(field, None)
    if warning := meta.dedup_owner_references(obj):
        context.warn(warning)
    return obj
