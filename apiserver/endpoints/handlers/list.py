"""The handler of list."""

from __future__ import annotations

from typing import cast

from aiohttp import web

from apiserver import rest
from apiserver.encoding.negotiation import negotiate
from apiserver.encoding.transforms import list_view_of
from apiserver.endpoints.responsewriters import list_response
from apiserver.request.context import RequestContext
from apiserver.request.options import parse_list_options


async def list_objects(context: RequestContext, storage: rest.Lister) -> web.StreamResponse:
    info, resource = context.info, cast(rest.Storage, storage).resource
    media = negotiate(context.http.headers.get("Accept", ""))
    view = list_view_of(resource, media, context.query.get("includeObject"))
    options = parse_list_options(context.query, info, resource.field_labels)
    page = await storage.list(context, info.namespace if resource.namespaced else "", options)
    return list_response(context, view, page, media=media)
