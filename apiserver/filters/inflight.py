"""How many requests are worked on at a time; more are told to come back (I7)."""

from __future__ import annotations

from aiohttp import web

from apiserver.authorization import MASTERS
from apiserver.context import Handler, RequestContext
from apiserver.errors import TooManyRequests
from apiserver.metrics import Metrics

_READS = frozenset({"get", "list", "head"})
_PROBES = ("/healthz", "/livez", "/readyz")


class Inflight:
    """Watches, probes, whose refusal would have a busy server restarted, and cluster admins, who may have to repair
    things, do not count."""

    def __init__(self, limit: int, metrics: Metrics) -> None:
        self._limit = limit
        self._metrics = metrics
        self._current = {"readOnly": 0, "mutating": 0}
        self._gauges = {kind: metrics.inflight(kind) for kind in self._current}

    async def __call__(self, context: RequestContext, next: Handler) -> web.StreamResponse:
        if context.info.is_watch or context.info.path.startswith(_PROBES) or MASTERS in context.user.groups:
            return await next(context)
        if sum(self._current.values()) >= self._limit:
            self._metrics.dropped()
            raise TooManyRequests("Too many requests, please try again later.")
        kind = "readOnly" if context.info.verb in _READS else "mutating"
        self._count(kind, 1)
        try:
            return await next(context)
        finally:
            self._count(kind, -1)

    def _count(self, kind: str, change: int) -> None:
        self._current[kind] += change
        self._gauges[kind].inc(change)
