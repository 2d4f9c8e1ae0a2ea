"""Metrics of webhooks, with the names of kube-apiserver (WIRE-I14)."""

from __future__ import annotations

from typing import Literal

from prometheus_client import CollectorRegistry, Counter, Histogram

from apiserver.plain_counter import PlainCounter

WebhookType = Literal["admit", "validating"]
ErrorType = Literal["calling_webhook_error", "apiserver_internal_error", "no_error"]

_SECONDS = (0.005, 0.025, 0.1, 0.5, 1.0, 2.5, 10, 25)
# limits the number of series that a webhook can create
_LARGEST_CODE = 600


class WebhookMetrics:
    """The metric families of webhooks; one instance per process."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._durations = Histogram(
            "apiserver_admission_webhook_admission_duration_seconds",
            "Latency of webhooks, by name.",
            ("name", "type", "operation", "rejected"),
            buckets=_SECONDS,
            registry=registry,
        )
        self._requests = Counter(
            "apiserver_admission_webhook_request",
            "Calls of webhooks, by name and code.",
            ("name", "type", "operation", "code", "rejected"),
            registry=registry,
        )
        self._rejections = PlainCounter(
            "apiserver_admission_webhook_rejection_count",
            "Requests that webhooks refused, or that were refused because of them.",
            ("name", "type", "operation", "error_type", "rejection_code"),
        )
        self._opened = PlainCounter(
            "apiserver_admission_webhook_fail_open_count", "Failures of webhooks that were ignored.", ("name", "type")
        )
        for collector in (self._rejections, self._opened):
            registry.register(collector)

    def record_call(
        self, name: str, webhook_type: WebhookType, operation: str, *, code: int, rejected: bool, seconds: float
    ) -> None:
        """Records a call; `code` is 0 for an error of this server."""
        is_rejected = str(rejected).lower()
        self._requests.labels(name, webhook_type, operation, _code(code), is_rejected).inc()
        self._durations.labels(name, webhook_type, operation, is_rejected).observe(seconds)

    def record_rejection(
        self, name: str, webhook_type: WebhookType, operation: str, *, error: ErrorType, code: int
    ) -> None:
        self._rejections.increment(name, webhook_type, operation, error, _code(code))

    def record_fail_open(self, name: str, webhook_type: WebhookType) -> None:
        self._opened.increment(name, webhook_type)


def _code(code: int) -> str:
    return str(min(code, _LARGEST_CODE))
