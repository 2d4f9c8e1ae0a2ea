"""PUT of an object. A missing one is a 404 (D77)."""

from __future__ import annotations

import copy
from typing import cast

from aiohttp import web

from apiserver import errors, meta, rest
from apiserver.context import RequestContext
from apiserver.handlers import body
from apiserver.handlers.scope import Scope, write_options
from apiserver.negotiation import negotiate
from apiserver.options import update_options
from apiserver.resource import Object
from apiserver.response import encode_object


async def update(context: RequestContext, scope: Scope) -> web.StreamResponse:
    storage = cast(rest.Updater, scope.storage)
    media = negotiate(context.http.headers.get("Accept", ""))
    options = update_options(context.query, context.http.headers.get("User-Agent", ""))
    key = scope.key(context)
    wanted = await body.read_object(context, scope.resource, options.field_validation)
    body.check_name(wanted, key.name, key.namespace)
    check_resource_version(wanted)
    if warning := meta.dedup_owner_references(wanted):
        context.warn(warning)
    document = write_options("UpdateOptions", context.query)
    now = meta.now_rfc3339()

    async def change(current: Object | None) -> Object:
        assert current is not None
        new = scope.field_manager.update(
            current, copy.deepcopy(wanted), manager=options.field_manager, now=now, subresource=scope.subresource
        )
        return await scope.mutate(context, "UPDATE", new, current, document)

    validate = scope.validate(context, "UPDATE", document)
    stored, _ = await storage.update(context, key, change, validate, dry_run=options.dry_run)
    return encode_object(context, scope.resource, stored, media=media)


def check_resource_version(obj: Object) -> None:
    """A resourceVersion that is no number can never have been ours (D50)."""
    version = obj["metadata"].get("resourceVersion") or ""
    if version and not (version.isascii() and version.isdigit()):
        raise errors.BadRequest(f"invalid resource version: {version}")
