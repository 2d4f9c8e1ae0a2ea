"""Limits the number and the bytes of concurrent requests; excess ones get 429 with Retry-After (WIRE-I7)."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from fractions import Fraction
from typing import Protocol

from aiohttp import web

from apiserver.authorization.authorizer import MASTERS, VERBS_WITH_SELECTORS
from apiserver.encoding.offload import CURRENT_FLOW
from apiserver.endpoints.responsewriters import LargeResponse, send_large
from apiserver.meta.errors import TooManyRequests
from apiserver.metrics import Metrics
from apiserver.request.bytes_in_flight import BytesInFlight, Reservation
from apiserver.request.context import Handler, RequestContext, User
from apiserver.request.fair_shares import FairShares
from apiserver.request.options import selector_memory

WATCHES_PER_SLOT = 4

_READS = frozenset({"get", "list", "head", "watch"})
_PROBES = ("/healthz", "/livez", "/readyz")
# the share of one user, of the limit and of what others leave
_USER_SHARE = Fraction(3, 4)
# large heads and selectors of watches
_WATCH_BYTES, _WATCH_BYTES_PER_USER, _ALWAYS = 48 * 1024 * 1024, 12 * 1024 * 1024, 64 * 1024


class Connection(Protocol):
    """The connection of a request (HttpProtocol of apiserver/server)."""

    def identify(self, user: User) -> None:
        """Tells whose connection it is."""
        ...

    def claim_head(self) -> int:
        """The memory of the request's head in bytes if it is large, else 0. From now on its user accounts for it."""
        ...


class MaxInFlight:
    """Allows `limit` requests at a time, and separately four times as many watches per user.

    One user can have at most three quarters of the requests that the others leave, so that neither one user nor several
    block the others (ATTACK-13). The large heads and selectors of watches are limited in bytes, too (ATTACK-19). Users
    of one flow count as one user, as for bytes. Probes are exempt, because a rejected probe would get a busy server
    restarted; so are cluster admins, who may have to repair it.
    """

    def __init__(
        self,
        limit: int,
        metrics: Metrics,
        *,
        bytes_in_flight: BytesInFlight,
        watch_bytes_per_user: int = _WATCH_BYTES_PER_USER,
        connection: Callable[[web.BaseRequest], Connection],
    ) -> None:
        self._bytes = bytes_in_flight
        self._connection = connection
        self._limit = limit
        per_user = math.ceil(limit * _USER_SHARE)
        self._requests = FairShares(total=limit, per_user=per_user, always=1, part=_USER_SHARE)
        # the watches of all users together are not limited
        self._watches = FairShares(total=sys.maxsize, per_user=limit * WATCHES_PER_SLOT)
        # not those of bodies and events, which wait for each other: a watch has its bytes for an hour
        self._watch_bytes = FairShares(total=_WATCH_BYTES, per_user=watch_bytes_per_user, always=_ALWAYS)
        self._metrics = metrics
        self._current = {"readOnly": 0, "mutating": 0}
        self._gauges = {kind: metrics.inflight(kind) for kind in self._current}

    async def __call__(self, context: RequestContext, next: Handler) -> web.StreamResponse:
        connection = self._connection(context.http)
        connection.identify(context.impersonator or context.user)
        head = connection.claim_head()
        if context.info.path.startswith(_PROBES) or MASTERS in context.user.groups:
            CURRENT_FLOW.set("")
            return await next(context)
        reservation = context.reservation = Reservation(self._bytes, context.user.name)
        CURRENT_FLOW.set(reservation.flow)
        memory = head
        if context.info.verb in VERBS_WITH_SELECTORS:
            memory += selector_memory(context.query)
        try:
            if context.info.is_long_running:
                return await self._count_watch(context, next, memory)
            if memory:
                reservation.add(memory)
            return await self._count_request(context, next)
        finally:
            reservation.resize(0)

    async def _count_watch(self, context: RequestContext, next: Handler, memory: int) -> web.StreamResponse:
        flow = context.reservation.flow
        with self._slot(self._watches, flow), self._slot(self._watch_bytes, flow, memory):
            # a watch begins with all objects: many that begin together would stall everybody else
            await context.reservation.turn()
            return await next(context)

    async def _count_request(self, context: RequestContext, next: Handler) -> web.StreamResponse:
        flow = context.reservation.flow
        if sum(self._current.values()) >= self._limit:
            raise self._too_many_requests()
        kind = "readOnly" if context.info.verb in _READS else "mutating"
        with self._slot(self._requests, flow):
            self._count(kind, 1)
            try:
                response = await next(context)
                if isinstance(response, LargeResponse):
                    # as long as the request counts
                    await send_large(context, response)
                return response
            finally:
                self._count(kind, -1)

    @contextmanager
    def _slot(self, shares: FairShares, flow: str, count: int = 1) -> Iterator[None]:
        """Count one more request or watch of `flow`, or its bytes. Raises TooManyRequests."""
        if not shares.allows(flow, count):
            raise self._too_many_requests()
        shares.add(flow, count)
        try:
            yield
        finally:
            shares.add(flow, -count)

    def _too_many_requests(self) -> TooManyRequests:
        self._metrics.request_dropped()
        return TooManyRequests("Too many requests, please try again later.")

    def _count(self, kind: str, change: int) -> None:
        self._current[kind] += change
        self._gauges[kind].inc(change)
