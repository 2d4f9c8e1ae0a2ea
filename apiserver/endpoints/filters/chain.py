"""What every request goes through before its handler, in run order; a file a filter (WIRE-I1)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from apiserver.authentication.request_header import RequestHeaderConfig
from apiserver.authorization.authorizer import Authorizer
from apiserver.endpoints.filters.access_log import AccessLog
from apiserver.endpoints.filters.audit import Audit, Sink
from apiserver.endpoints.filters.authentication import Authentication, Identify
from apiserver.endpoints.filters.authorization import Authorization
from apiserver.endpoints.filters.error_response import Recovery
from apiserver.endpoints.filters.impersonation import Impersonation, RefuseImpersonation
from apiserver.endpoints.filters.max_in_flight import Inflight
from apiserver.endpoints.filters.request_deadline import Deadline
from apiserver.endpoints.filters.request_metrics import Metering
from apiserver.endpoints.filters.response_headers import Headers
from apiserver.metrics import Metrics
from apiserver.request.context import Filter
from apiserver.request.request_info import RequestInfo


@dataclass(frozen=True, slots=True, kw_only=True)
class FilterConfig:
    """What the filters depend on. Without an `audit` sink nothing is audited.

    `impersonation` is off behind an aggregator, which has consumed the headers. `served` tells whether a request is
    about a resource that there is.
    """

    authenticator: Identify
    authorizer: Authorizer
    request_headers: Callable[[], RequestHeaderConfig]
    metrics: Metrics
    served: Callable[[RequestInfo], bool]
    max_requests_inflight: int
    impersonation: bool
    audit: Sink | None = None


def build_filters(config: FilterConfig) -> list[Filter]:
    """The filters, the first to run first. The application also needs `headers.install`."""
    audit = Audit(config.audit, config.metrics) if config.audit is not None else None
    authentication = Authentication(
        config.authenticator,
        config=config.request_headers,
        observe=config.metrics.authentication,
        refused=audit.refused if audit is not None else None,
    )
    return [
        AccessLog(),
        Metering(config.metrics, config.served),
        Headers(),
        Recovery(),
        Deadline(),
        authentication,
        *([audit] if audit is not None else []),
        Impersonation(config.authorizer) if config.impersonation else RefuseImpersonation(),
        Inflight(config.max_requests_inflight, config.metrics),
        Authorization(config.authorizer),
    ]
