"""The handlers of delete and deletecollection (WIRE-D87 to WIRE-D97)."""

from __future__ import annotations

from typing import Any, cast

from aiohttp import web

from apiserver import rest
from apiserver.encoding.negotiation import negotiate
from apiserver.endpoints.handlers import request_body as body
from apiserver.endpoints.handlers.request_scope import RequestScope
from apiserver.endpoints.responsewriters import json_response, object_response
from apiserver.meta import errors
from apiserver.meta.resource import Object, Resource
from apiserver.request.context import RequestContext
from apiserver.request.options import DeleteOptions, parse_delete_options, parse_list_options
from apiserver.serializer.protobuf_meta import DELETE_OPTIONS


async def delete(context: RequestContext, scope: RequestScope) -> web.StreamResponse:
    storage = cast(rest.GracefulDeleter, scope.storage)
    media = negotiate(context.http.headers.get("Accept", ""))
    options = await _delete_options(context, scope.resource)
    validate = scope.validate(context, "DELETE", _delete_options_document(options))
    deleted = await storage.delete(context, scope.key(context), options, validate)
    if deleted.removed:
        return json_response(context, _success_status(scope.resource, deleted.object))
    # as in kube-apiserver, only the deprecated form of Background is answered with 202 (WIRE-D91)
    code = 202 if options.orphan_dependents is False else 200
    return object_response(context, scope.resource, deleted.object, code=code, media=media)


async def delete_collection(context: RequestContext, scope: RequestScope) -> web.StreamResponse:
    storage = cast(rest.CollectionDeleter, scope.storage)
    negotiate(context.http.headers.get("Accept", ""))
    listing = parse_list_options(context.query, context.info, scope.resource.field_labels)
    options = await _delete_options(context, scope.resource)
    validate = scope.validate(context, "DELETE", _delete_options_document(options))
    items, version = await storage.delete_collection(context, scope.namespace(context), listing, options, validate)
    resource = scope.resource
    document = {
        "kind": resource.list_kind,
        "apiVersion": resource.api_version,
        "metadata": {"resourceVersion": str(version)},
        "items": items,
    }
    return json_response(context, document)


async def _delete_options(context: RequestContext, resource: Resource) -> DeleteOptions:
    """The DeleteOptions of the body or, only if it is empty, of the query (WIRE-D87)."""
    raw = await body.read(context)
    if not raw:
        return parse_delete_options(context.query, None)
    descriptor = DELETE_OPTIONS if resource.protobuf else None
    document = body.parse(raw, body.media_type(context) or "application/json", descriptor)
    value = document.value
    accepted = ("v1", "meta.k8s.io/v1", resource.api_version)
    if (
        not isinstance(value, dict)
        or value.get("kind") not in (None, "", "DeleteOptions")
        or value.get("apiVersion", "v1") not in accepted
    ):
        raise errors.BadRequest("decoded object cannot be converted to DeleteOptions")
    return parse_delete_options(context.query, value, document.overridden)


def _delete_options_document(options: DeleteOptions) -> dict[str, Any]:
    """The DeleteOptions for admission (WIRE-H43)."""
    document: dict[str, Any] = {"kind": "DeleteOptions", "apiVersion": "meta.k8s.io/v1"}
    if options.grace_period_seconds is not None:
        document["gracePeriodSeconds"] = options.grace_period_seconds
    expected = options.preconditions
    preconditions = {"uid": expected.uid, "resourceVersion": expected.resource_version}
    if present := {key: value for key, value in preconditions.items() if value is not None}:
        document["preconditions"] = present
    if options.orphan_dependents is not None:
        document["orphanDependents"] = options.orphan_dependents
    if options.propagation_policy is not None:
        document["propagationPolicy"] = options.propagation_policy
    if options.dry_run:
        document["dryRun"] = ["All"]
    return document


def _success_status(resource: Resource, obj: Object) -> Object:
    """The Status that is returned for a delete that removed the object (WIRE-D22)."""
    metadata = obj["metadata"]
    details = {"name": metadata["name"], "group": resource.group, "kind": resource.plural, "uid": metadata["uid"]}
    return {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Success",
        "details": {key: value for key, value in details.items() if value},
    }
