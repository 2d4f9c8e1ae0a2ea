"""Answers merged lists and watches."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from typing import Final, Protocol

from aiohttp import HttpVersion11, web

from apiserver.authorization.authorizer import AccessDenied, request_attributes
from apiserver.encoding.negotiation import negotiate
from apiserver.endpoints.handlers.watch_frames import error_frame
from apiserver.meta.errors import Expired, StatusError
from apiserver.request.context import RequestContext, User
from apiserver.request.options import check_list_query
from apiserver.request.query_numbers import parse_resource_version
from apiserver.request.request_info import RequestInfo
from apiserver.storage.visibility import Visibility, VisibleObjects
from registry.cluster.interface import NAMESPACES
from registry.cluster.upstream import UpstreamClient
from registry.visibility.by_rbac import MARGIN_SECONDS, identity_of
from registry.visibility.rbac_history import RbacHistory
from tenant_apiserver.proxy.impersonation_refusal import ImpersonationRefusals
from tenant_apiserver.proxy.merged.caller_requests import CallerRequests
from tenant_apiserver.proxy.merged.change_times import ChangeTimes
from tenant_apiserver.proxy.merged.list_of_names import list_of_names
from tenant_apiserver.proxy.merged.list_of_parts import ListOfParts, parse_list_query
from tenant_apiserver.proxy.merged.list_response import list_response
from tenant_apiserver.proxy.merged.packed_list import PackedItem, PackedList
from tenant_apiserver.proxy.merged.part import CollectionPart
from tenant_apiserver.proxy.merged.positions import Client, Position, Positions, client_of
from tenant_apiserver.proxy.merged.sent_objects import SentObjects
from tenant_apiserver.proxy.merged.stream_slots import StreamSlots, WatchSlots
from tenant_apiserver.proxy.merged.watch_of_parts import (
    EVERYTHING,
    GONE,
    NOTHING,
    Start,
    WatchOfParts,
    WatchQuery,
    parse_watch_query,
)
from tenant_apiserver.proxy.shutdown import calling_at

_TOO_OLD: Final = Expired("too old resource version: the rights at that time are not known")


class Partition(Protocol):
    """How a collection is taken apart, and which parts a caller may list or watch. A watch ends when its caller is
    granted more than `max_parts`: the next one is refused."""

    @property
    def max_parts(self) -> int: ...

    async def visibility(self, user: User, info: RequestInfo) -> Visibility:
        """Raises StatusError if it cannot be determined at present."""
        ...

    def names(self, visible: VisibleObjects) -> frozenset[str] | None:
        """The names of the parts, None for all there are."""
        ...

    def part(self, info: RequestInfo, name: str) -> CollectionPart: ...


class MergedAnswers:
    """The handlers of merged lists and watches, and the memory of what clients have."""

    def __init__(
        self,
        upstream: UpstreamClient,
        refusals: ImpersonationRefusals,
        history: RbacHistory,
        *,
        shutdown: asyncio.Event,
    ) -> None:
        """Watches end when `shutdown` is set."""
        self._upstream = upstream
        self._refusals = refusals
        self._shutdown = shutdown
        self._history = history
        self._changes = ChangeTimes(history)
        self._positions = Positions()
        self._slots = StreamSlots()

    async def list(self, context: RequestContext, partition: Partition) -> web.StreamResponse:
        """Raises AccessDenied if the cluster refuses every part, and the StatusError of a part that fails."""
        requests, query = CallerRequests(self._upstream, self._refusals, context), parse_list_query(context.query)
        visibility = await partition.visibility(context.user, context.info)
        now, names = time.monotonic(), partition.names(visibility.visible)
        parts = [partition.part(context.info, name) for name in sorted(names or ())]
        merged = ListOfParts(requests, query, parts)
        packed = await merged.read()
        if packed is None:
            raise _denied(context)
        _annotate(context, len(parts))
        return self._respond(context, requests, packed, merged.items_of, since=now)

    async def list_names(self, context: RequestContext, partition: Partition) -> web.StreamResponse:
        """The cluster-scoped objects that the caller may get by name. Raises as `list`."""
        requests = CallerRequests(self._upstream, self._refusals, context)
        check_list_query(context.query)
        visibility = await partition.visibility(context.user, context.info)
        now, names = time.monotonic(), sorted(partition.names(visibility.visible) or ())
        found = await list_of_names(context, requests, names, self._current_version)
        if found is None:
            raise _denied(context)
        _annotate(context, len(names))
        return self._respond(context, requests, found.packed, found.items, since=now)

    async def _current_version(self) -> str:
        """The proxy may list namespaces, and one etcd has one version."""
        document = await self._upstream.list(NAMESPACES, limit=1)
        return str(document["metadata"]["resourceVersion"])

    def _respond(
        self,
        context: RequestContext,
        requests: CallerRequests,
        packed: PackedList,
        items: Mapping[str, Iterable[PackedItem]],
        *,
        since: float,
    ) -> web.StreamResponse:
        """Remembers the list for watches that go on from it."""
        sent_objects = SentObjects.of({name: {item.key: item.uid for item in each} for name, each in items.items()})
        version = packed.metadata["resourceVersion"]
        if version.isdecimal():
            position = Position(since, int(version), sent_objects, packed.form)
            self._positions.remember(_client(context, requests.media.transform), version, position)
        return list_response(context, packed, requests.media.type)

    async def watch(self, context: RequestContext, partition: Partition) -> web.StreamResponse:
        """Raises AccessDenied if the cluster refuses every part, and the StatusError of a part that fails."""
        requests = CallerRequests(self._upstream, self._refusals, context, self._slots.waiting)
        query = parse_watch_query(context.query)
        visibility = await partition.visibility(context.user, context.info)
        client = _client(context, requests.media.transform)
        merged = WatchOfParts(
            requests,
            query,
            names=lambda: partition.names(visibility.visible),
            max_parts=partition.max_parts,
            part=lambda name: partition.part(context.info, name),
            slots=WatchSlots(self._slots, context.user.name),
            remember=lambda version, position: self._positions.remember(client, version, position),
        )
        unsubscribe = visibility.subscribe(lambda change: merged.changed())
        try:
            start = self._start(visibility, context, query, client, partition.names)
            if not await merged.begin(start):
                raise _denied(context)
            _annotate(context, len(partition.names(visibility.visible) or ()))
            with calling_at(self._shutdown, merged.end):
                return await _stream(context, merged, requests.media.content_type)
        except Expired as error:
            # clients retry a watch that fails with an error status; an ERROR event makes them list again
            return await _failed(context, error, requests.media.content_type)
        finally:
            unsubscribe()
            await merged.close()

    def has_less(self, context: RequestContext, rights: Visibility) -> bool:
        """True for a watch that goes on from a version at which its client had not all that `rights` show now, and they
        show everything. False if that is not known, and for clients that cannot read these answers."""
        try:
            query, version = parse_watch_query(context.query), parse_resource_version(context.query)
            media = negotiate(context.http.headers.get("Accept", ""), watch=True)
        except StatusError:
            return False
        if not query.is_resumed or not version:
            return False
        found = self._positions.find(_client(context, media.transform), query.version)
        if found is not None:
            change = rights.change_since(max(version, self._history.first_rv), (found.time, found.time))
            return change is None or change.always.namespaces is not None
        # no margin: the list of the cluster by which a client has learned of its new right would be too old as well
        change = rights.change_since(version, (self._changes.time_after(version), time.monotonic()))
        return change is not None and change.always.namespaces is not None

    async def everything_expired(self, context: RequestContext) -> web.StreamResponse:
        """The answer to such a watch."""
        media = negotiate(context.http.headers.get("Accept", ""), watch=True)
        return await _failed(context, EVERYTHING, media.content_type)

    def _start(
        self,
        visibility: Visibility,
        context: RequestContext,
        query: WatchQuery,
        client: Client,
        names: Callable[[VisibleObjects], frozenset[str] | None],
    ) -> Start:
        """The state of a client. Raises Expired if it cannot be told what it may have, BadRequest for a version that is
        no number."""
        version = parse_resource_version(context.query)
        if not query.is_resumed or not version:
            return NOTHING
        found = self._positions.find(client, query.version)
        if found is not None:
            change = visibility.change_since(max(version, self._history.first_rv), (found.time, found.time))
        else:
            earliest = self._changes.time_after(version) - MARGIN_SECONDS
            change = visibility.change_since(version, (earliest, time.monotonic()))
        if change is None:
            raise _TOO_OLD
        known, possible = names(change.always), names(change.ever)
        if known is None or possible is None:
            raise GONE
        if found is None:
            return Start(known, possible, version)
        return Start(known, possible, min(found.version, version), found.sent_objects, found.form)


async def _stream(context: RequestContext, merged: WatchOfParts, content_type: str) -> web.StreamResponse:
    response = _response(context, content_type)
    # most watches end because their client disconnects
    with suppress(ConnectionError):
        await response.prepare(context.http)
        while lines := await merged.frames():
            await response.write(lines)
    return response


async def _failed(context: RequestContext, error: Expired, content_type: str) -> web.StreamResponse:
    response = _response(context, content_type)
    with suppress(ConnectionError):
        await response.prepare(context.http)
        await response.write(error_frame(error))
    return response


def _response(context: RequestContext, content_type: str) -> web.StreamResponse:
    response = web.StreamResponse(headers={"Content-Type": content_type})
    if context.http.version >= HttpVersion11:
        response.enable_chunked_encoding()
    return response


def _client(context: RequestContext, transform: str) -> Client:
    """Stands for an identity and a list with its selectors, of which a watch may go on."""
    info, query = context.info, context.query
    form = transform.removesuffix("List")
    selectors = (query.get("labelSelector"), query.get("fieldSelector"))
    name, groups = identity_of(context.user)
    return client_of(name, groups, info.group, info.version, info.resource, selectors, form)


def _denied(context: RequestContext) -> AccessDenied:
    return AccessDenied(request_attributes(context.user, context.info, context.query))


def _annotate(context: RequestContext, parts: int) -> None:
    context.annotations["tenant-apiserver-proxy/merged"] = str(parts)
