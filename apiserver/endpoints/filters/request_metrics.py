"""Records the number and duration of requests, and the number of open watches (WIRE-I14)."""

from __future__ import annotations

import time
from collections.abc import Callable

from aiohttp import web

from apiserver.metrics import Metrics, request_labels
from apiserver.request.context import Handler, RequestContext
from apiserver.request.request_info import RequestInfo


class RequestMetrics:
    """`served` returns whether the request's resource exists; the names of other resources are not recorded. It is
    asked when the request has ended, and for a watch or stream also when it begins."""

    def __init__(self, metrics: Metrics, served: Callable[[RequestInfo], bool]) -> None:
        self._metrics = metrics
        self._served = served

    async def __call__(self, context: RequestContext, next: Handler) -> web.StreamResponse:
        if context.info.is_long_running:
            with self._metrics.longrunning(self._labels(context)).track_inprogress():
                return await self._observe(context, next)
        return await self._observe(context, next)

    async def _observe(self, context: RequestContext, next: Handler) -> web.StreamResponse:
        try:
            response = await next(context)
        except ConnectionError:
            self._metrics.request_aborted(self._labels(context))
            raise
        size = response.content_length if isinstance(response, web.Response) else None
        seconds = time.monotonic() - context.received_at
        self._metrics.observe_request(
            self._labels(context), response.status, seconds, size=size, webhook_seconds=context.webhook_seconds
        )
        return response

    def _labels(self, context: RequestContext) -> tuple[str, ...]:
        info = context.info
        return request_labels(context, served=info.is_resource and self._served(info))
