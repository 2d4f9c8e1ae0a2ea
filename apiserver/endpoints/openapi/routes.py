"""Serves /openapi/v2 and /openapi/v3, for kubectl explain, apply and validation, and for typed clients (WIRE-C35 to
WIRE-C53)."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime, parsedate_to_datetime
from typing import Any

import orjson
from aiohttp import web

from apiserver.encoding.accept_header import accept_clauses
from apiserver.encoding.negotiation import JSON
from apiserver.endpoints.discovery import ServedGroup
from apiserver.endpoints.openapi import v2_protobuf as openapi_protobuf
from apiserver.endpoints.openapi.definitions import kind_definitions
from apiserver.endpoints.openapi.meta_definitions import REF_PREFIX, meta_definitions
from apiserver.endpoints.openapi.paths import paths
from apiserver.endpoints.openapi.v2 import to_v2
from apiserver.endpoints.openapi.v2_protobuf import REQUEST_MEDIA_TYPE
from apiserver.endpoints.static_document import StaticDocument, require_get, require_json
from apiserver.meta import errors
from apiserver.meta.resource import Schema
from apiserver.request.context import RequestContext

_V2 = "/openapi/v2"
_V3 = "/openapi/v3"
_TOKEN = {"type": "apiKey", "name": "authorization", "in": "header", "description": "A bearer token."}


def openapi_v3(groups: Sequence[ServedGroup], *, title: str, version: str) -> dict[str, Any]:
    """One OpenAPI v3 document for all `groups`, with the definitions that its paths refer to."""
    items: dict[str, Any] = {}
    definitions: dict[str, Schema] = meta_definitions((group.group, group.version) for group in groups)
    for group in groups:
        items.update(paths(group))
        for served in group.resources:
            definitions.update(kind_definitions(served.resource, listed="list" in served.verbs))
            for subresource in served.subresources:
                if subresource.resource is not None and subresource.resource != served.resource:
                    # a resource of the same kind takes precedence, because its definitions include the list
                    definitions = {**kind_definitions(subresource.resource, listed=False), **definitions}
    return {
        "openapi": "3.0.0",
        "info": {"title": title, "version": version},
        "paths": items,
        "components": {"schemas": _reachable(items, definitions), "securitySchemes": {"BearerToken": _TOKEN}},
        "security": [{"BearerToken": []}],
    }


def _reachable(items: Mapping[str, Any], definitions: Mapping[str, Schema]) -> dict[str, Schema]:
    """The definitions that `items` refer to, directly or through other definitions."""
    reached: dict[str, Schema] = {}
    pending = set(_references(items))
    while pending:
        name = pending.pop()
        reached[name] = definitions[name]
        pending.update(each for each in _references(definitions[name]) if each not in reached)
    return dict(sorted(reached.items()))


def _references(node: Any) -> Iterator[str]:
    if isinstance(node, dict):
        target = node.get("$ref")
        if isinstance(target, str):
            yield target.removeprefix(REF_PREFIX)
        for value in node.values():
            yield from _references(value)
    elif isinstance(node, list):
        for value in node:
            yield from _references(value)


@dataclass(frozen=True, slots=True)
class _V2Documents:
    json: StaticDocument
    protobuf: StaticDocument


@dataclass(frozen=True, slots=True)
class _V3Documents:
    index: StaticDocument
    groups: Mapping[str, StaticDocument]
    """Keyed by the path below /openapi/v3/, such as apis/apps/v1."""


class OpenAPI:
    """Answers /openapi/v2, /openapi/v3, and the document of each group version below /openapi/v3.

    The documents are built in a thread when they are first requested. All replicas of one version build the same bytes.
    """

    def __init__(self, groups: Sequence[ServedGroup], *, title: str, version: str) -> None:
        self._title = title
        self._version = version
        self._building = asyncio.Lock()
        # by the identity of the group, which is kept with its document
        self._known: dict[int, tuple[ServedGroup, StaticDocument]] = {}
        self.replace(groups)

    def replace(self, groups: Sequence[ServedGroup]) -> None:
        """Describes these groups from now on. Only the documents of groups that were not there before are built."""
        self._groups = tuple(groups)
        self._v2: _V2Documents | None = None
        self._v3: _V3Documents | None = None
        self._modified = datetime.now(UTC).replace(microsecond=0)

    async def respond(self, context: RequestContext) -> web.Response | None:
        """The response, or None for another path. Raises NotAcceptable, MethodNotAllowed, and UnknownPath for an
        unknown group version."""
        path = context.info.path
        if path not in (_V2, _V3) and not path.startswith(f"{_V3}/"):
            return None
        require_get(context)
        if path == _V2:
            return self._respond_v2(context, await self._get_v2())
        documents = await self._get_v3()
        if path == _V3:
            return documents.index.respond(context, {})
        document = documents.groups.get(path.removeprefix(f"{_V3}/"))
        if document is None:
            raise errors.UnknownPath
        require_json(context)
        return document.respond(context, _cache_headers(context.query.get("hash"), document))

    def paths(self) -> list[str]:
        """The paths of OpenAPI, for the list of all paths (WIRE-C30)."""
        return sorted([_V2, _V3, *(f"{_V3}{group.path}" for group in self._groups)])

    def _respond_v2(self, context: RequestContext, documents: _V2Documents) -> web.Response:
        """Raises NotAcceptable."""
        clauses = accept_clauses(context.http.headers.get("Accept", ""))
        chosen = next(
            (clause for clause in clauses if clause.matches(JSON) or clause.matches(REQUEST_MEDIA_TYPE)), None
        )
        if chosen is None:
            raise errors.NotAcceptable(f"only the following media types are accepted: {JSON}, {REQUEST_MEDIA_TYPE}")
        document = documents.json if chosen.matches(JSON) else documents.protobuf
        headers = {"Last-Modified": format_datetime(self._modified, usegmt=True)}
        request = context.http.headers
        if "If-None-Match" not in request and _not_modified_since(request.get("If-Modified-Since", ""), self._modified):
            return web.Response(status=304, headers={**headers, "Etag": document.etag, "Vary": "Accept"})
        return document.respond(context, headers)

    async def _get_v2(self) -> _V2Documents:
        async with self._building:
            while self._v2 is None:
                groups = self._groups
                documents = await asyncio.to_thread(self._build_v2, groups)
                self._v2 = documents if groups is self._groups else None
            return self._v2

    async def _get_v3(self) -> _V3Documents:
        async with self._building:
            while self._v3 is None:
                groups = self._groups
                documents = await asyncio.to_thread(self._build_v3, groups)
                self._v3 = documents if groups is self._groups else None
            return self._v3

    def _build_v2(self, groups: Sequence[ServedGroup]) -> _V2Documents:
        v2 = to_v2(self._describe(groups))
        return _V2Documents(_encode(v2), StaticDocument(openapi_protobuf.encode(v2), openapi_protobuf.MEDIA_TYPE))

    def _build_v3(self, groups: Sequence[ServedGroup]) -> _V3Documents:
        known = {id(group): self._known.get(id(group)) or (group, self._build_group(group)) for group in groups}
        self._known = known
        v3 = {group.path.removeprefix("/"): document for group, document in known.values()}
        index = {path: {"serverRelativeURL": f"{_V3}/{path}?hash={document.digest}"} for path, document in v3.items()}
        return _V3Documents(_encode({"paths": index}), v3)

    def _build_group(self, group: ServedGroup) -> StaticDocument:
        return _encode(self._describe([group]))

    def _describe(self, groups: Sequence[ServedGroup]) -> dict[str, Any]:
        return openapi_v3(groups, title=self._title, version=self._version)


def _encode(document: Mapping[str, Any]) -> StaticDocument:
    return StaticDocument(orjson.dumps(document, option=orjson.OPT_SORT_KEYS))


def _cache_headers(requested_hash: str, document: StaticDocument) -> dict[str, str]:
    """Headers that let clients cache the document indefinitely if they requested it by its current hash.

    Under another hash the document is served without them: Kubernetes would redirect, which an aggregator rejects
    (WIRE-C3, WIRE-C38).
    """
    if requested_hash != document.digest:
        return {}
    expires = format_datetime(datetime.now(UTC) + timedelta(days=365), usegmt=True)
    return {"Cache-Control": "public, immutable", "Expires": expires}


def _not_modified_since(if_modified_since: str, modified: datetime) -> bool:
    """True if the client's copy, dated `if_modified_since`, is current."""
    try:
        return parsedate_to_datetime(if_modified_since) >= modified
    except (ValueError, TypeError):
        return False
