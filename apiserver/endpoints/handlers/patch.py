"""The handler of patch: JSON, merge and strategic merge patch, and server-side apply (WIRE-D80 to WIRE-D86, WIRE-G16
to WIRE-G28)."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, cast

from aiohttp import web

from apiserver import rest
from apiserver.authorization.authorizer import authorize_request
from apiserver.encoding.negotiation import negotiate
from apiserver.encoding.offload import json_size, offload_if_large
from apiserver.endpoints.handlers import request_body as body
from apiserver.endpoints.handlers.create import drop_system_fields
from apiserver.endpoints.handlers.request_scope import RequestScope, write_options_document
from apiserver.endpoints.handlers.update import check_identity
from apiserver.endpoints.responsewriters import object_response
from apiserver.json.values import deep_copy
from apiserver.meta import errors
from apiserver.meta import object_meta as meta
from apiserver.meta.resource import GroupKind, Key, Object, Resource
from apiserver.patch.json_and_merge import json_patch, merge_patch
from apiserver.patch.media_types import APPLY_PATCH, JSON_PATCH, MERGE_PATCH
from apiserver.patch.strategic_merge import strategic_merge_patch
from apiserver.request.context import RequestContext
from apiserver.request.options import WriteOptions, parse_patch_options
from apiserver.schema.pruning_and_defaulting import apply_defaults, metadata_type_error, object_schema
from apiserver.serializer.decoder import DecodedBody, decode, decoding_cost

STRATEGIC_PATCH = "application/strategic-merge-patch+json"
_YAML = "application/yaml"
_ACCEPTED = (JSON_PATCH, MERGE_PATCH, APPLY_PATCH)


async def patch(context: RequestContext, scope: RequestScope) -> web.StreamResponse:
    storage = cast(rest.Updater, scope.storage)
    kind = body.media_type(context)
    accepted = (*_ACCEPTED, STRATEGIC_PATCH) if scope.resource.strategic_merge else _ACCEPTED
    if kind not in accepted:
        raise errors.UnsupportedMediaType(
            f"the body of the request was in an unknown format - accepted media types include: {', '.join(accepted)}"
        )
    options = parse_patch_options(context.query, context.http.headers.get("User-Agent", ""), apply=kind == APPLY_PATCH)
    media = negotiate(context.http.headers.get("Accept", ""))
    raw = await body.read(context)
    key = scope.key(context)
    document = write_options_document("UpdateOptions", context.query)
    validate = scope.validate(context, "UPDATE", document)
    request = _PatchRequest(context, scope, key, options, document, meta.now_rfc3339(), len(raw))
    change: rest.UpdateFunc
    if kind == APPLY_PATCH:
        configuration = await offload_if_large(partial(_decode_patch, raw, _YAML), size=decoding_cost(raw, _YAML))
        body.check_size(configuration.value, context.user)
        change = _ApplyPatcher(request, configuration)
        create = scope.validate(context, "CREATE", {**document, "kind": "CreateOptions"})
        may_create = None if scope.subresource else create
    else:
        change = _Patcher(
            request, await offload_if_large(partial(_parse_patch, kind, raw, scope.resource), size=len(raw))
        )
        may_create = None
    stored, created = await storage.update(
        context, key, change, validate, dry_run=options.dry_run, validate_create=may_create
    )
    return object_response(context, scope.resource, stored, code=201 if created else 200, media=media)


@dataclass(frozen=True, slots=True)
class _PatchRequest:
    """A PATCH request. `document` has the UpdateOptions for admission, `now` is the timestamp of the changes, and
    `size` the size of the body in bytes."""

    context: RequestContext
    scope: RequestScope
    key: Key
    options: WriteOptions
    document: dict[str, Any]
    now: str
    size: int


@dataclass(frozen=True, slots=True)
class _DecodedPatch:
    """A JSON, merge or strategic merge patch: a function that applies it, and the patch's own duplicate fields."""

    apply: Callable[[Object], Any]
    duplicates: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class _Patcher:
    """Applies a JSON, merge or strategic merge patch; after a conflict it is called again with a fresh object
    (WIRE-D84)."""

    request: _PatchRequest
    patch: _DecodedPatch

    async def __call__(self, current: Object | None) -> Object:
        assert current is not None
        request, size = self.request, json_size(current)
        patched = await offload_if_large(partial(self.patch.apply, current), size=request.size + size)
        new = await offload_if_large(partial(self._track, current, patched), size=size + json_size(patched))
        return await request.scope.mutate(request.context, "UPDATE", new, current, request.document)

    def _track(self, current: Object, patched: Any) -> Object:
        request = self.request
        new = self._validate_and_default(patched)
        check_identity(request.context, new, request.key)
        return request.scope.field_manager.update(
            current, new, manager=request.options.field_manager, now=request.now, subresource=request.scope.subresource
        )

    def _validate_and_default(self, patched: Any) -> Object:
        """The patched document as a valid object. Any error in it is reported as an error of the patch (WIRE-D68,
        WIRE-D83)."""
        resource, validation = self.request.scope.resource, self.request.options.field_validation
        body.check_size(patched, self.request.context.user)
        try:
            obj = body.check_kind(patched, resource)
        except errors.BadRequest as error:
            raise _invalid_patch(patched, error.message) from error
        resource.precheck(obj)
        strict = body.strict_errors(DecodedBody(obj, self.patch.duplicates), obj, resource, validation)
        if strict and validation == "Strict":
            raise _invalid_patch(patched, body.strict_text(strict))
        try:
            return body.validate_and_default(self.request.context, obj, resource, strict)
        except errors.BadRequest as error:
            raise _invalid_patch(patched, error.message) from error


@dataclass(frozen=True, slots=True)
class _ApplyPatcher:
    """Server-side apply. It creates an object that does not exist (WIRE-G18)."""

    request: _PatchRequest
    configuration: DecodedBody

    async def __call__(self, current: Object | None) -> Object:
        request = self.request
        context, scope = request.context, request.scope
        if current is None:
            await authorize_request(context, scope.authorizer, verb="create")
        applied = await offload_if_large(partial(self._apply, current), size=request.size + json_size(current))
        if current is not None:
            return await scope.mutate(context, "UPDATE", applied, current, request.document)
        created = await scope.mutate(context, "CREATE", applied, None, {**request.document, "kind": "CreateOptions"})
        return await offload_if_large(partial(drop_system_fields, context, created), size=json_size(created))

    def _apply(self, current: Object | None) -> Object:
        """Apply the configuration and prepare the object for admission."""
        request = self.request
        applied = self._merge(current)
        self._check_duplicates()
        check_identity(request.context, applied, request.key)
        if current is not None:
            return applied
        self._check_create(applied)
        return drop_system_fields(request.context, applied)

    def _merge(self, current: Object | None) -> Object:
        request, resource = self.request, self.request.scope.resource
        applied = request.scope.field_manager.apply(
            current,
            deep_copy(self.configuration.value),
            manager=request.options.field_manager,
            force=bool(request.options.force),
            now=request.now,
            subresource=request.scope.subresource,
        )
        if problem := metadata_type_error(resource, applied):
            raise errors.BadRequest(problem)
        apply_defaults(object_schema(resource), applied)
        return applied

    def _check_duplicates(self) -> None:
        duplicates, validation = self.configuration.strict_errors, self.request.options.field_validation
        if not duplicates or validation == "Ignore":
            return
        if validation == "Strict":
            raise errors.BadRequest(f"error strict decoding patch: {', '.join(duplicates)}")
        for text in duplicates:
            self.request.context.warn(body.one_line(text))

    def _check_create(self, applied: Object) -> None:
        """Reject a create if the configuration names the uid or resourceVersion of an existing object (WIRE-D85,
        WIRE-G18)."""
        metadata, name = applied["metadata"], self.request.key.name
        resource = self.request.scope.resource.group_resource
        if uid := metadata.get("uid"):
            why = f"uid mismatch: the provided object specified uid {uid}, and no existing object was found"
            raise errors.Conflict(resource, name, why)
        if metadata.get("resourceVersion"):
            raise errors.Conflict(resource, name)


def _parse_patch(kind: str, raw: bytes, resource: Resource) -> _DecodedPatch:
    decoded = _decode_patch(raw, "application/json")
    if kind == JSON_PATCH:
        duplicates = tuple(f"json patch {text}" for text in decoded.strict_errors)
        return _DecodedPatch(lambda obj: json_patch(obj, decoded.value), duplicates)
    if not isinstance(decoded.value, dict):
        raise errors.BadRequest("error decoding patch: a merge patch must be a JSON object")
    if kind == STRATEGIC_PATCH:
        schema = object_schema(resource)
        return _DecodedPatch(lambda obj: strategic_merge_patch(obj, decoded.value, schema), decoded.strict_errors)
    return _DecodedPatch(lambda obj: merge_patch(obj, decoded.value), decoded.strict_errors)


def _decode_patch(raw: bytes, media_type: str) -> DecodedBody:
    try:
        return decode(raw, media_type)
    except errors.BadRequest as error:
        raise errors.BadRequest(f"error decoding patch: {error.message}") from error


def _invalid_patch(patched: object, why: str) -> errors.Invalid:
    text = json.dumps(patched, ensure_ascii=False, separators=(",", ":"), default=str)
    return errors.Invalid(GroupKind("", ""), "", [errors.invalid("patch", text, why)])
