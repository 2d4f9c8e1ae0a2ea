"""Logs one line per request. Headers are never logged (except User-Agent), so that no credential is."""

from __future__ import annotations

import logging
import time
from typing import Any

from aiohttp import web

from apiserver.request.context import Handler, RequestContext

_LOG = logging.getLogger("apiserver.access")
_QUIET_PATHS = ("/healthz", "/livez", "/readyz")
_AGENT_LIMIT = 256


class AccessLog:
    """Logs at level INFO, and successful probes at level DEBUG."""

    async def __call__(self, context: RequestContext, next: Handler) -> web.StreamResponse:
        status = 0
        try:
            response = await next(context)
            status = response.status
            return response
        finally:
            # status 0 means that the client disconnected, or the connection was aborted in the middle of the response
            quiet = status == 200 and context.info.path.startswith(_QUIET_PATHS)
            level = logging.DEBUG if quiet else logging.INFO
            if _LOG.isEnabledFor(level):
                _LOG.log(level, "HTTP", extra=_fields(context, status))


def _fields(context: RequestContext, status: int) -> dict[str, Any]:
    http = context.http
    fields: dict[str, Any] = {
        "verb": context.info.verb,
        "uri": http.raw_path,
        "status": status,
        "latency_ms": round((time.monotonic() - context.received_at) * 1000, 3),
        "audit_id": context.audit_id,
        "user": context.user.name,
        "source": http.remote or "",
        "user_agent": http.headers.get("User-Agent", "")[:_AGENT_LIMIT],
    }
    if context.impersonator is not None:
        fields["impersonator"] = context.impersonator.name
    return fields
