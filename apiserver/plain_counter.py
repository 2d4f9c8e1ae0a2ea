"""A Prometheus counter whose name is exported unchanged."""

from __future__ import annotations

from collections import Counter as Counts
from collections.abc import Iterable, Iterator, Sequence

from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector


class PlainCounter(Collector):
    """The Prometheus client appends `_total` to the names of its own counters; Kubernetes has some without it."""

    def __init__(
        self, name: str, documentation: str, labels: Sequence[str], *, initial: Iterable[tuple[str, ...]] = ()
    ) -> None:
        """`initial` are label values whose series exist from the start, with the value 0."""
        self._name = name
        self._documentation = documentation
        self._labels = tuple(labels)
        self._counts: Counts[tuple[str, ...]] = Counts(dict.fromkeys(initial, 0))

    def increment(self, *values: str) -> None:
        """Count one more for these label values."""
        self._counts[values] += 1

    def collect(self) -> Iterator[Metric]:
        metric = Metric(self._name, self._documentation, "unknown")
        for values, number in self._counts.items():
            metric.add_sample(self._name, dict(zip(self._labels, values, strict=True)), number)
        yield metric
