"""The filters that a request of the proxy passes, in the order of Kubernetes. There is no authorization among them: the
cluster authorizes what is forwarded."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from aiohttp import web

from apiserver.authentication.request_header import RequestHeaderConfig
from apiserver.authorization.authorizer import Authorizer
from apiserver.endpoints.filters.access_log import AccessLog
from apiserver.endpoints.filters.audit import Audit, AuditSink
from apiserver.endpoints.filters.authentication import Authentication, RequestAuthenticator
from apiserver.endpoints.filters.error_response import ErrorResponses
from apiserver.endpoints.filters.impersonation import Impersonation
from apiserver.endpoints.filters.max_in_flight import MaxInFlight
from apiserver.endpoints.filters.refuse_watches import RefuseNewWatches
from apiserver.endpoints.filters.request_deadline import RequestDeadline
from apiserver.endpoints.filters.request_metrics import RequestMetrics
from apiserver.endpoints.filters.response_headers import ResponseHeaders
from apiserver.meta.errors import Unauthorized
from apiserver.request.context import ANONYMOUS, Filter, Handler, RequestContext, compose
from apiserver.server.app import route_everything
from apiserver.server.http_protocol import connection_of
from registry.cluster.upstream import UpstreamClient
from tenant_apiserver.options.proxy import ProxyOptions
from tenant_apiserver.process import Process
from tenant_apiserver.proxy.forward import Forwarder, OwnAnswer
from tenant_apiserver.proxy.identity import RefusePrivileged
from tenant_apiserver.proxy.impersonation_refusal import ImpersonationRefusals
from tenant_apiserver.proxy.known_resources import KnownResources
from tenant_apiserver.proxy.own_paths import OwnPaths


@dataclass(frozen=True, slots=True, kw_only=True)
class ProxyParts:
    """`authorizer` decides about impersonation by the caller, and about the proxy's own metrics."""

    upstream: UpstreamClient
    process: Process
    authenticator: RequestAuthenticator
    authorizer: Authorizer
    own_account: Callable[[], str]
    own_answer: OwnAnswer
    expired: OwnAnswer
    refusals: ImpersonationRefusals
    audit: AuditSink | None
    is_served: Callable[[str, str, str], bool] = lambda group, version, resource: False
    """Says if discovery has a group, version and resource."""


def proxy_application(parts: ProxyParts, options: ProxyOptions) -> web.Application:
    """The application that forwards every request but those below /proxy."""
    metrics, stages, known = parts.process.metrics, parts.process.stages, KnownResources(parts.is_served)
    audit = Audit(parts.audit, metrics) if parts.audit is not None else None
    authentication = Authentication(
        parts.authenticator,
        config=RequestHeaderConfig,
        observe=metrics.authentication_attempt,
        on_failure=audit.authentication_failed if audit is not None else None,
    )
    privileged = RefusePrivileged(parts.own_account, allow_groups=options.allow_privileged_groups)
    filters: list[Filter] = [
        AccessLog(),
        RequestMetrics(metrics, known.has),
        ResponseHeaders(),
        ErrorResponses(),
        RequestDeadline(),
        RefuseNewWatches(stages.is_draining),
        authentication,
        *([audit] if audit is not None else []),
        OwnPaths(parts.process, parts.authorizer),
        *([] if options.anonymous_auth else [_refuse_anonymous]),
        privileged,
        Impersonation(parts.authorizer),
        privileged,
        MaxInFlight(
            options.max_requests_inflight,
            metrics,
            bytes_in_flight=parts.process.bytes_in_flight,
            connection=connection_of,
        ),
    ]
    forwarder = Forwarder(
        parts.upstream,
        parts.own_answer,
        parts.refusals,
        expired=parts.expired,
        known=known,
        shutdown=stages.shutdown,
    )
    return route_everything(compose(filters, forwarder))


async def _refuse_anonymous(context: RequestContext, next: Handler) -> web.StreamResponse:
    if context.user.name == ANONYMOUS.name:
        raise Unauthorized
    return await next(context)
