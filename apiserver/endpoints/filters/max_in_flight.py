"""Limits the number of concurrent requests; excess ones get 429 with Retry-After (WIRE-I7)."""

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


# the share of the limit that one user can use
_USER_SHARE = 0.75
_WATCHES_PER_SLOT = 4


class MaxInFlight:
    """Allows `limit` requests at a time, and separately four times as many watches per user.

    One user can have at most three quarters of the requests, so that no user blocks the others (ATTACK-13). Probes are
    exempt, because a rejected probe would get a busy server restarted; so are cluster admins, who may have to repair
    it.
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
