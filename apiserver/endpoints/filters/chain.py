"""Builds the chain of filters that every request passes before its handler, in the order of Kubernetes (WIRE-I1)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from aiohttp import web

from apiserver.authentication.request_header import RequestHeaderConfig
from apiserver.authorization.authorizer import Authorizer
from apiserver.endpoints.filters.access_log import AccessLog
from apiserver.endpoints.filters.audit import Audit, AuditSink
from apiserver.endpoints.filters.authentication import Authentication, RequestAuthenticator
from apiserver.endpoints.filters.authorization import Authorization
from apiserver.endpoints.filters.cors import Cors
from apiserver.endpoints.filters.error_response import ErrorResponses
from apiserver.endpoints.filters.impersonation import Impersonation, RejectImpersonation
from apiserver.endpoints.filters.max_in_flight import Connection, MaxInFlight
from apiserver.endpoints.filters.read_only import ReadOnly
from apiserver.endpoints.filters.refuse_watches import RefuseNewWatches
from apiserver.endpoints.filters.request_deadline import RequestDeadline
from apiserver.endpoints.filters.request_metrics import RequestMetrics
from apiserver.endpoints.filters.response_headers import ResponseHeaders
from apiserver.metrics import Metrics
from apiserver.request.bytes_in_flight import BytesInFlight
from apiserver.request.context import Filter
from apiserver.request.request_info import RequestInfo


@dataclass(frozen=True, slots=True, kw_only=True)
class FilterConfig:
    """The dependencies of the filters. Without an `audit` sink there are no audit events.

    `impersonation` is off behind an aggregator, which has consumed the headers. `served` returns whether the request's
    resource exists, `connection` the connection that it came from.
    """

    authenticator: RequestAuthenticator
    authorizer: Authorizer
    request_headers: Callable[[], RequestHeaderConfig]
    metrics: Metrics
    served: Callable[[RequestInfo], bool]
    max_requests_inflight: int
    bytes_in_flight: BytesInFlight
    connection: Callable[[web.BaseRequest], Connection]
    impersonation: bool
    is_draining: Callable[[], bool]
    """Says if clients are to come to another replica, because this one shuts down."""
    audit: AuditSink | None = None
    read_only: bool = False
    """Refuses all writes of those who may write."""
    cors_allowed_origins: Sequence[str] = ()
    """Regular expressions of the origins whose pages may use the API; without any, no page of another origin may."""


def build_filters(config: FilterConfig) -> list[Filter]:
    """The filters in the order in which they run. The application also needs `response_headers.install`."""
    audit = Audit(config.audit, config.metrics) if config.audit is not None else None
    authentication = Authentication(
        config.authenticator,
        config=config.request_headers,
        observe=config.metrics.authentication_attempt,
        on_failure=audit.authentication_failed if audit is not None else None,
    )
    return [
        AccessLog(),
        RequestMetrics(config.metrics, config.served),
        ResponseHeaders(),
        *([Cors(config.cors_allowed_origins)] if config.cors_allowed_origins else []),
        ErrorResponses(),
        RequestDeadline(),
        RefuseNewWatches(config.is_draining),
        authentication,
        *([audit] if audit is not None else []),
        Impersonation(config.authorizer) if config.impersonation else RejectImpersonation(),
        MaxInFlight(
            config.max_requests_inflight,
            config.metrics,
            bytes_in_flight=config.bytes_in_flight,
            connection=config.connection,
        ),
        Authorization(config.authorizer),
        *([ReadOnly()] if config.read_only else []),
    ]
