"""Metrics of work queues, with the names that Kubernetes uses."""

from __future__ import annotations

from collections.abc import Hashable
from typing import TypeVar

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

from controller.runtime.workqueue import WorkQueue

K = TypeVar("K", bound=Hashable)

_BUCKETS = tuple(10.0**power for power in range(-8, 4))


class WorkQueueMetrics:
    """The metric families, once per process. `for_queue` returns the metrics of one queue."""

    def __init__(self, registry: CollectorRegistry) -> None:
        labels = ("name",)
        self.depth = Gauge("workqueue_depth", "Keys waiting in the queue.", labels, registry=registry)
        self.adds = Counter("workqueue_adds_total", "Keys added to the queue.", labels, registry=registry)
        self.retries = Counter(
            "workqueue_retries_total", "Keys added again after a failure.", labels, registry=registry
        )
        self.queue_duration = Histogram(
            "workqueue_queue_duration_seconds",
            "Time that a key waits in the queue before it is processed.",
            labels,
            registry=registry,
            buckets=_BUCKETS,
        )
        self.work_duration = Histogram(
            "workqueue_work_duration_seconds",
            "Time that processing a key takes.",
            labels,
            registry=registry,
            buckets=_BUCKETS,
        )
        self.unfinished = Gauge(
            "workqueue_unfinished_work_seconds",
            "Processing time so far of all keys in progress, added up.",
            labels,
            registry=registry,
        )
        self.longest_running = Gauge(
            "workqueue_longest_running_processor_seconds",
            "Processing time so far of the key that has been in progress longest.",
            labels,
            registry=registry,
        )

    def for_queue(self, name: str) -> NamedQueueMetrics:
        return NamedQueueMetrics(self, name)

    def track(self, name: str, queue: WorkQueue[K]) -> None:
        """Read the gauges of keys in progress from `queue` at every scrape, on the event loop's thread."""
        self.unfinished.labels(name).set_function(queue.unfinished_seconds)
        self.longest_running.labels(name).set_function(queue.longest_running_seconds)


class NamedQueueMetrics:
    """The QueueMetrics of the queue `name`."""

    def __init__(self, families: WorkQueueMetrics, name: str) -> None:
        self._depth = families.depth.labels(name)
        self._adds = families.adds.labels(name)
        self._retries = families.retries.labels(name)
        self._queue_duration = families.queue_duration.labels(name)
        self._work_duration = families.work_duration.labels(name)

    def depth(self, keys: int) -> None:
        self._depth.set(keys)

    def added(self) -> None:
        self._adds.inc()

    def retried(self) -> None:
        self._retries.inc()

    def waited(self, seconds: float) -> None:
        self._queue_duration.observe(seconds)

    def worked(self, seconds: float) -> None:
        self._work_duration.observe(seconds)
