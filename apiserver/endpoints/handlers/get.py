"""The handler of get."""

from __future__ import annotations

from typing import cast

from aiohttp import web

from apiserver import rest
from apiserver.encoding.negotiation import negotiate
from apiserver.endpoints.responsewriters import cached_object_response
from apiserver.meta.resource import Key
from apiserver.request.context import RequestContext
from apiserver.request.options import parse_get_options


async def get(context: RequestContext, storage: rest.Getter) -> web.StreamResponse:
    info, resource = context.info, cast(rest.Storage, storage).resource
    media = negotiate(context.http.headers.get("Accept", ""))
    at_least = parse_get_options(context.query)
    key = Key(info.namespace if resource.namespaced else "", info.name)
    obj = await storage.get(context, key, at_least=at_least)
    return cached_object_response(context, resource, obj, media=media)
