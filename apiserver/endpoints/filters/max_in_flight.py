"""How many requests are worked on at a time; more are told to come back (WIRE-I7)."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager

from aiohttp import web

from apiserver.authorization.authorizer import MASTERS
from apiserver.meta.errors import TooManyRequests
from apiserver.metrics import Metrics
from apiserver.request.context import Handler, RequestContext

_READS = frozenset({"get", "list", "head"})
_PROBES = ("/healthz", "/livez", "/readyz")


# of the limit: no user has all the places
_USER_SHARE = 0.75
_WATCHES_PER_SLOT = 4


class MaxInFlight:
    """Probes, whose refusal would have a busy server restarted, and cluster admins, who may have to repair things, do
    not count. Watches have places of their own.

    One user has no more than three quarters of the places, and four watches for each place that there is: who takes
    more is refused, and nobody else (ATTACK-13).
    """

    def __init__(self, limit: int, metrics: Metrics) -> None:
        self._limit = limit
        self._share = math.ceil(limit * _USER_SHARE)
        self._watches = Counter[str]()
        self._users = Counter[str]()
        self._metrics = metrics
        self._current = {"readOnly": 0, "mutating": 0}
        self._gauges = {kind: metrics.inflight(kind) for kind in self._current}

    async def __call__(self, context: RequestContext, next: Handler) -> web.StreamResponse:
        if context.info.path.startswith(_PROBES) or MASTERS in context.user.groups:
            return await next(context)
        if context.info.is_watch:
            with self._slot(self._watches, context.user.name, self._limit * _WATCHES_PER_SLOT):
                return await next(context)
        if sum(self._current.values()) >= self._limit:
            raise self._too_many_requests()
        kind = "readOnly" if context.info.verb in _READS else "mutating"
        with self._slot(self._users, context.user.name, self._share):
            self._count(kind, 1)
            try:
                return await next(context)
            finally:
                self._count(kind, -1)

    @contextmanager
    def _slot(self, held: Counter[str], user: str, limit: int) -> Iterator[None]:
        """Raises TooManyRequests if the user has as many as one may have."""
        if held[user] >= limit:
            raise self._too_many_requests()
        held[user] += 1
        try:
            yield
        finally:
            held[user] -= 1
            if not held[user]:
                del held[user]

    def _too_many_requests(self) -> TooManyRequests:
        self._metrics.request_dropped()
        return TooManyRequests("Too many requests, please try again later.")

    def _count(self, kind: str, change: int) -> None:
        self._current[kind] += change
        self._gauges[kind].inc(change)
