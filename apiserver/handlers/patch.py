"""PATCH of an object: JSON patch, merge patch and server-side apply (D80 to D86, G16 to G28)."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from typing import Any, cast

from aiohttp import web

from apiserver import errors, meta, rest
from apiserver.authorization import require
from apiserver.context import RequestContext
from apiserver.decoding import Document, decode
from apiserver.handlers import body
from apiserver.handlers.create import wipe
from apiserver.handlers.scope import Scope, write_options
from apiserver.handlers.update import check_resource_version
from apiserver.negotiation import negotiate
from apiserver.options import WriteOptions, patch_options
from apiserver.patch import json_patch, merge_patch
from apiserver.resource import GroupKind, Key, Object
from apiserver.response import encode_object
from apiserver.schema import apply_defaults, metadata_type_error, object_schema

JSON_PATCH = "application/json-patch+json"
MERGE_PATCH = "application/merge-patch+json"
APPLY_PATCH = "application/apply-patch+yaml"
_ACCEPTED = (JSON_PATCH, MERGE_PATCH, APPLY_PATCH)


async def patch(context: RequestContext, scope: Scope) -> web.StreamResponse:
    storage = cast(rest.Updater, scope.storage)
    kind = body.media_type(context)
    if kind not in _ACCEPTED:
        raise errors.UnsupportedMediaType(
            f"the body of the request was in an unknown format - accepted media types include: {', '.join(_ACCEPTED)}"
        )
    options = patch_options(context.query, context.http.headers.get("User-Agent", ""), apply=kind == APPLY_PATCH)
    media = negotiate(context.http.headers.get("Accept", ""))
    raw = await body.read(context)
    key = scope.key(context)
    document = write_options("PatchOptions", options)
    validate = scope.validate(context, "UPDATE", document)
    change: rest.Change
    if kind == APPLY_PATCH:
        change = _Apply(context, scope, key, options, document, raw)
        create = scope.validate(context, "CREATE", {**document, "kind": "CreateOptions"})
        may_create = None if scope.subresource else create
    else:
        change = _Patch(context, scope, key, options, document, _operation(kind, raw))
        may_create = None
    stored, created = await storage.update(
        context, key, change, validate, dry_run=options.dry_run, validate_create=may_create
    )
    return encode_object(context, scope.resource, stored, code=201 if created else 200, media=media)


class _Patch:
    """A JSON or merge patch, tried again on a fresh object after a conflict (D84)."""

    def __init__(
        self,
        context: RequestContext,
        scope: Scope,
        key: Key,
        options: WriteOptions,
        document: dict[str, Any],
        operation: _Operation,
    ) -> None:
        self._context = context
        self._scope = scope
        self._key = key
        self._options = options
        self._document = document
        self._operation = operation
        self._now = meta.now_rfc3339()

    async def __call__(self, current: Object | None) -> Object:
        assert current is not None
        scope, options = self._scope, self._options
        patched = self._operation.apply(current)
        new = self._settle(patched)
        body.check_name(new, self._key.name, self._key.namespace)
        check_resource_version(new)
        if warning := meta.dedup_owner_references(new):
            self._context.warn(warning)
        new = scope.field_manager.update(
            current, new, manager=options.field_manager, now=self._now, subresource=scope.subresource
        )
        return await scope.mutate(self._context, "UPDATE", new, current, self._document)

    def _settle(self, patched: Any) -> Object:
        """The patched document as an object; what is wrong with it is the patch's fault (D68, D83)."""
        resource = self._scope.resource
        try:
            obj = body.check_kind(patched, resource)
        except errors.BadRequest as error:
            raise _invalid_patch(patched, error.message) from error
        resource.refuse(obj)
        strict = body.strict_errors(
            Document(value=obj, duplicates=self._operation.duplicates), obj, resource, self._options.field_validation
        )
        if strict and self._options.field_validation == "Strict":
            raise _invalid_patch(patched, body.strict_text(strict))
        try:
            return body.settle(self._context, obj, resource, strict)
        except errors.BadRequest as error:
            raise _invalid_patch(patched, error.message) from error


class _Apply:
    """Server-side apply; of an object that does not exist it is a create (G18)."""

    def __init__(
        self,
        context: RequestContext,
        scope: Scope,
        key: Key,
        options: WriteOptions,
        document: dict[str, Any],
        raw: bytes,
    ) -> None:
        self._context = context
        self._scope = scope
        self._key = key
        self._options = options
        self._document = document
        self._decoded = _decode_patch(raw, "application/yaml")
        self._now = meta.now_rfc3339()

    async def __call__(self, current: Object | None) -> Object:
        context, scope = self._context, self._scope
        if current is None:
            await require(context, scope.authorizer, verb="create")
        applied = self._merge(current)
        self._check_duplicates()
        body.check_name(applied, self._key.name, self._key.namespace)
        check_resource_version(applied)
        self._context_metadata(applied)
        if current is None:
            self._check_absent(applied)
            applied = wipe(context, applied)
            return await scope.mutate(context, "CREATE", applied, None, {**self._document, "kind": "CreateOptions"})
        return await scope.mutate(context, "UPDATE", applied, current, self._document)

    def _merge(self, current: Object | None) -> Object:
        applied = self._scope.field_manager.apply(
            current,
            copy.deepcopy(self._decoded.value),
            manager=self._options.field_manager,
            force=bool(self._options.force),
            now=self._now,
            subresource=self._scope.subresource,
        )
        if problem := metadata_type_error(self._scope.resource, applied):
            raise errors.BadRequest(problem)
        apply_defaults(object_schema(self._scope.resource), applied)
        return applied

    def _check_duplicates(self) -> None:
        duplicates = list(self._decoded.duplicates)
        if not duplicates or self._options.field_validation == "Ignore":
            return
        if self._options.field_validation == "Strict":
            raise errors.BadRequest(f"error strict decoding patch: {', '.join(duplicates)}")
        for text in duplicates:
            self._context.warn(text)

    def _context_metadata(self, applied: Object) -> None:
        if warning := meta.dedup_owner_references(applied):
            self._context.warn(warning)

    def _check_absent(self, applied: Object) -> None:
        """D85, G18: a configuration that speaks of an object which does not exist."""
        metadata = applied["metadata"]
        resource = self._scope.resource.group_resource
        if uid := metadata.get("uid"):
            why = f"uid mismatch: the provided object specified uid {uid}, and no existing object was found"
            raise errors.Conflict(resource, self._key.name, why)
        if metadata.get("resourceVersion"):
            raise errors.Conflict(resource, self._key.name)


class _Operation:
    """A decoded patch: what it makes of an object, and the strict errors in the patch itself."""

    def __init__(self, apply: Callable[[Object], Any], duplicates: tuple[str, ...]) -> None:
        self.apply = apply
        self.duplicates = duplicates


def _operation(kind: str, raw: bytes) -> _Operation:
    decoded = _decode_patch(raw, "application/json")
    if kind == JSON_PATCH:
        duplicates = tuple(f"json patch {text}" for text in decoded.duplicates)
        return _Operation(lambda obj: json_patch(obj, decoded.value), duplicates)
    if not isinstance(decoded.value, dict):
        raise errors.BadRequest("error decoding patch: a merge patch must be a JSON object")
    return _Operation(lambda obj: merge_patch(obj, decoded.value), decoded.duplicates)


def _decode_patch(raw: bytes, media_type: str) -> Document:
    try:
        return decode(raw, media_type)
    except errors.BadRequest as error:
        raise errors.BadRequest(f"error decoding patch: {error.message}") from error


def _invalid_patch(patched: object, why: str) -> errors.Invalid:
    text = json.dumps(patched, ensure_ascii=False, separators=(",", ":"), default=str)
    return errors.Invalid(GroupKind("", ""), "", [errors.invalid("patch", text, why)])
