"""Authorizes requests before anything is looked up, so that unauthorized callers learn nothing from a 404
(WIRE-B16)."""

from __future__ import annotations

from aiohttp import web

from apiserver.authorization.authorizer import AccessDenied, Authorizer, authorize_request
from apiserver.request.context import Handler, RequestContext

_DECISION = "authorization.k8s.io/decision"
_REASON = "authorization.k8s.io/reason"


class Authorization:
    """Annotates the audit event with the decision (WIRE-B17). Raises AccessDenied."""

    def __init__(self, authorizer: Authorizer) -> None:
        self._authorizer = authorizer

    async def __call__(self, context: RequestContext, next: Handler) -> web.StreamResponse:
        try:
            decision = await authorize_request(context, self._authorizer)
        except AccessDenied as denial:
            context.annotations[_DECISION] = "forbid"
            context.annotations[_REASON] = denial.authorizer_reason
            raise
        context.annotations[_DECISION] = "allow"
        context.annotations[_REASON] = decision.reason
        return await next(context)
