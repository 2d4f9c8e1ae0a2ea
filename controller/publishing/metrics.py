"""The metric platform_service_served, computed from the verdicts whenever it is read."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from prometheus_client import CollectorRegistry
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector

from controller.publishing.verdicts import PublishingVerdict


class PublishingMetrics(Collector):
    """1 for each of the platform's services that is served, 0 for each that is not."""

    def __init__(self, registry: CollectorRegistry, verdicts: Callable[[], Sequence[PublishingVerdict]]) -> None:
        self._verdicts = verdicts
        registry.register(self)

    def collect(self) -> Iterator[GaugeMetricFamily]:
        found = GaugeMetricFamily(
            "platform_service_served", "1 if the platform's service is served, 0 if not.", labels=["service"]
        )
        for each in self._verdicts():
            found.add_metric([each.service], 1.0 if each.served else 0.0)
        yield found
