"""GET of a collection."""

from __future__ import annotations

from typing import cast

from aiohttp import web

from apiserver import rest
from apiserver.context import RequestContext
from apiserver.negotiation import negotiate
from apiserver.options import list_options
from apiserver.response import encode_list
from apiserver.views import list_view_of


async def list_objects(context: RequestContext, storage: rest.Lister) -> web.StreamResponse:
    info, resource = context.info, cast(rest.Storage, storage).resource
    media = negotiate(context.http.headers.get("Accept", ""))
    view = list_view_of(resource, media, context.query.get("includeObject"))
    options = list_options(context.query, info, resource.selectable)
    page = await storage.list(context, info.namespace if resource.namespaced else "", options)
    return encode_list(context, view, page, media=media)
