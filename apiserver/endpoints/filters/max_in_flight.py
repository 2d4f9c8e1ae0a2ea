"""Limits the number and the bytes of concurrent requests; excess ones get 429 with Retry-After (WIRE-I7)."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Protocol

from aiohttp import web

from apiserver.authorization.authorizer import MASTERS
from apiserver.endpoints.responsewriters import LargeResponse
from apiserver.meta.errors import TooManyRequests
from apiserver.metrics import Metrics
from apiserver.request.bytes_in_flight import BytesInFlight, Reservation
from apiserver.request.context import Handler, RequestContext, User

WATCHES_PER_SLOT = 4

_READS = frozenset({"get", "list", "head", "watch"})
_PROBES = ("/healthz", "/livez", "/readyz")
# the share of the limit that one user can use
_USER_SHARE = 0.75


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

    One user can have at most three quarters of the requests, so that no user blocks the others (ATTACK-13). Probes are
    exempt, because a rejected probe would get a busy server restarted; so are cluster admins, who may have to repair
    it.
    """

    def __init__(
        self,
        limit: int,
        metrics: Metrics,
        *,
        bytes_in_flight: BytesInFlight,
        connection: Callable[[web.BaseRequest], Connection],
    ) -> None:
        self._bytes = bytes_in_flight
        self._connection = connection
        self._limit = limit
        self._share = math.ceil(limit * _USER_SHARE)
        self._watches = Counter[str]()
        self._users = Counter[str]()
        self._metrics = metrics
        self._current = {"readOnly": 0, "mutating": 0}
        self._gauges = {kind: metrics.inflight(kind) for kind in self._current}

    async def __call__(self, context: RequestContext, next: Handler) -> web.StreamResponse:
        connection = self._connection(context.http)
        connection.identify(context.impersonator or context.user)
        head = connection.claim_head()
        if context.info.path.startswith(_PROBES) or MASTERS in context.user.groups:
            return await next(context)
        reservation = context.reservation = Reservation(self._bytes, context.user.name)
        try:
            if head:
                reservation.add(head)
            return await self._count_request(context, next)
        finally:
            reservation.resize(0)

    async def _count_request(self, context: RequestContext, next: Handler) -> web.StreamResponse:
        if context.info.is_long_running:
            with self._slot(self._watches, context.user.name, self._limit * WATCHES_PER_SLOT):
                # a watch begins with all objects: many that begin together would stall everybody else
                await context.reservation.turn()
                return await next(context)
        if sum(self._current.values()) >= self._limit:
            raise self._too_many_requests()
        kind = "readOnly" if context.info.verb in _READS else "mutating"
        with self._slot(self._users, context.user.name, self._share):
            self._count(kind, 1)
            try:
                response = await next(context)
                if isinstance(response, LargeResponse):
                    await _send(context, response)
                return response
            finally:
                self._count(kind, -1)

    @contextmanager
    def _slot(self, used: Counter[str], user: str, limit: int) -> Iterator[None]:
        """Count one more request of `user`. Raises TooManyRequests if the user has `limit` already."""
        if used[user] >= limit:
            raise self._too_many_requests()
        used[user] += 1
        try:
            yield
        finally:
            used[user] -= 1
            if not used[user]:
                del used[user]

    def _too_many_requests(self) -> TooManyRequests:
        self._metrics.request_dropped()
        return TooManyRequests("Too many requests, please try again later.")

    def _count(self, kind: str, change: int) -> None:
        self._current[kind] += change
        self._gauges[kind].inc(change)


async def _send(context: RequestContext, response: LargeResponse) -> None:
    """Send the response as long as the request counts: a client that reads it slowly occupies memory."""
    context.reservation.add(response.memory)
    await response.prepare(context.http)
    await response.write_eof()
