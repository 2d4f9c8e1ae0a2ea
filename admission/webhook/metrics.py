"""Metrics of webhooks under the names that Kubernetes gives them (WIRE-I14)."""

from __future__ import annotations

from collections import Counter as Counts
from collections.abc import Iterator, Sequence
from typing import Literal

from prometheus_client import CollectorRegistry, Counter, Histogram
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

Phase = Literal["admit", "validating"]
ErrorType = Literal["calling_webhook_error", "apiserver_internal_error", "no_error"]

_SECONDS = (0.005, 0.025, 0.1, 0.5, 1.0, 2.5, 10, 25)
# so that a webhook cannot make any number of series
_LARGEST_CODE = 600


class WebhookMetrics:
    """The metric families; one for the process."""

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
        self._rejections = _PlainCounter(
            "apiserver_admission_webhook_rejection_count",
            "Requests that webhooks refused, or that were refused because of them.",
            ("name", "type", "operation", "error_type", "rejection_code"),
        )
        self._opened = _PlainCounter(
            "apiserver_admission_webhook_fail_open_count", "Failures of webhooks that were ignored.", ("name", "type")
        )
        for collector in (self._rejections, self._opened):
            registry.register(collector)

    def called(self, name: str, phase: Phase, operation: str, *, code: int, rejected: bool, seconds: float) -> None:
        """Count a call; `code` is 0 for what went wrong on this side."""
        is_rejected = str(rejected).lower()
        self._requests.labels(name, phase, operation, _code(code), is_rejected).inc()
        self._durations.labels(name, phase, operation, is_rejected).observe(seconds)

    def rejected(self, name: str, phase: Phase, operation: str, *, error: ErrorType, code: int) -> None:
        self._rejections.count(name, phase, operation, error, _code(code))

    def failed_open(self, name: str, phase: Phase) -> None:
        self._opened.count(name, phase)


class _PlainCounter(Collector):
    """A counter under its own name: the library would append _total."""

    def __init__(self, name: str, documentation: str, labels: Sequence[str]) -> None:
        self._name = name
        self._documentation = documentation
        self._labels = tuple(labels)
        self._counts: Counts[tuple[str, ...]] = Counts()

    def count(self, *values: str) -> None:
        self._counts[values] += 1

    def collect(self) -> Iterator[Metric]:
        metric = Metric(self._name, self._documentation, "unknown")
        for values, number in self._counts.items():
            metric.add_sample(self._name, dict(zip(self._labels, values, strict=True)), number)
        yield metric


def _code(code: int) -> str:
    return str(min(code, _LARGEST_CODE))
