"""The proxy's own health checks and metrics, below /proxy: /livez and the like are those of the cluster."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from aiohttp import web

from apiserver.authorization.authorizer import AccessAttributes, Authorizer, authorize_attributes
from apiserver.meta.errors import UnknownPath
from apiserver.request.context import Handler, RequestContext
from tenant_apiserver.process import Process

PREFIX: Final = "/proxy"
_METRICS: Final = "/metrics"


class OwnPaths:
    """A filter that answers requests below /proxy and never forwards them."""

    def __init__(self, process: Process, authorizer: Authorizer) -> None:
        self._process = process
        self._authorizer = authorizer

    async def __call__(self, context: RequestContext, next: Handler) -> web.StreamResponse:
        """Raises UnknownPath, and AccessDenied for metrics that the caller may not get."""
        path = context.info.path
        if path != PREFIX and not path.startswith(f"{PREFIX}/"):
            return await next(context)
        context.info = replace(context.info, path=path.removeprefix(PREFIX))
        if context.info.path == _METRICS:
            attributes = AccessAttributes(user=context.user, verb="get", path=_METRICS)
            await authorize_attributes(context, self._authorizer, attributes)
        health, metrics = self._process.health, self._process.metrics
        response = await health.respond(context, authorizer=self._authorizer) or await metrics.respond(context)
        if response is None:
            raise UnknownPath
        return response
