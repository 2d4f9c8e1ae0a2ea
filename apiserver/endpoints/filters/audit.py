"""Emits an audit event for each stage of a request: received, started (watches), complete or panic (WIRE-I17)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from aiohttp import web

from apiserver import audit
from apiserver.authentication.x509 import has_client_certificate
from apiserver.endpoints.filters.response_headers import on_start
from apiserver.meta.errors import StatusError
from apiserver.metrics import Metrics
from apiserver.request.context import Handler, RequestContext

_NO_CREDENTIALS = "Authentication failed, no credentials provided"

AuditSink = Callable[[audit.AuditEvent], None]
"""Receives audit events. It must not block."""


class Audit:
    """Runs after authentication, which calls `authentication_failed` for requests that it rejects."""

    def __init__(self, sink: AuditSink, metrics: Metrics) -> None:
        self._sink = sink
        self._metrics = metrics

    async def __call__(self, context: RequestContext, next: Handler) -> web.StreamResponse:
        self._emit(context, "RequestReceived", None)
        if context.info.is_watch:
            on_start(context, lambda response: self._response_started(context, response))
        try:
            response = await next(context)
        except StatusError as error:
            self._emit(context, "ResponseComplete", audit.response_status(error))
            raise
        except Exception:
            self._emit(context, "Panic", {"status": "Failure", "reason": "InternalError", "code": 500})
            raise
        self._emit(context, "ResponseComplete", {"code": response.status})
        return response

    def authentication_failed(self, context: RequestContext, error: StatusError) -> None:
        """Emit the event of a request whose authentication failed: as in Kubernetes a single one, without a user."""
        status = {"message": attempted_credentials(context), "code": error.code}
        self._emit(context, "ResponseStarted", status, identified=False)

    def _response_started(self, context: RequestContext, response: web.StreamResponse) -> None:
        # an error response instead of a stream gets ResponseComplete only
        if response.status == 200:
            self._emit(context, "ResponseStarted", {"code": 200})

    def _emit(
        self, context: RequestContext, stage: str, status: Mapping[str, Any] | None, *, identified: bool = True
    ) -> None:
        received = audit.received_at(context)
        self._sink(audit.event(context, stage, received=received, status=status, identified=identified))
        self._metrics.audit_event()


def attempted_credentials(context: RequestContext) -> str:
    """The message of a request whose authentication failed; it names the kinds of credentials that were sent."""
    kinds = []
    scheme, _, value = context.http.headers.get("Authorization", "").strip().partition(" ")
    if value and scheme.lower() in ("basic", "bearer"):
        kinds.append(scheme.lower())
    if has_client_certificate(context.http):
        kinds.append("x509")
    return f"Authentication failed, attempted: {', '.join(kinds)}" if kinds else _NO_CREDENTIALS
