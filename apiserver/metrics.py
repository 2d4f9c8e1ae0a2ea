"""Metrics with the names of kube-apiserver (WIRE-I14, WIRE-I15), in a registry of their own."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import Any

from aiohttp import web
from prometheus_client import (
    CollectorRegistry,
    Counter,
    Gauge,
    GCCollector,
    Histogram,
    PlatformCollector,
    ProcessCollector,
    disable_created_metrics,
)
from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4, generate_latest

from apiserver.plain_counter import PlainCounter
from apiserver.request.context import RequestContext
from apiserver.request.request_info import RequestInfo
from apiserver.storage.watch_cache import WatchCache

_SECONDS = (
    *(0.005, 0.025, 0.05, 0.1, 0.2, 0.4, 0.6, 0.8, 1, 1.25, 1.5, 2, 3, 4, 5, 6, 8),
    *(10, 15, 20, 30, 45, 60),
)
_SLI_SECONDS = _SECONDS[2:]
_SIZES = tuple(10.0**power for power in range(3, 10))
_ADMISSION_SECONDS = (0.005, 0.025, 0.1, 0.5, 1.0, 2.5)
_REQUEST = ("verb", "dry_run", "group", "version", "resource", "subresource", "scope", "component")
# the labels of metrics without dry_run
_READ = tuple(label for label in _REQUEST if label != "dry_run")
# the code that Kubernetes uses for a call without a response
_NO_ANSWER = "<error>"
_RESOURCE = ("group", "version", "resource")
_VERBS = {
    "get": "GET",
    "list": "LIST",
    "watch": "WATCH",
    "create": "POST",
    "update": "PUT",
    "patch": "PATCH",
    "delete": "DELETE",
    "deletecollection": "DELETECOLLECTION",
}
_APPLY = "application/apply-patch"


@dataclass(frozen=True, slots=True)
class _Children:
    """The time series of one set of request labels. `sizes` is None except for reads."""

    durations: Histogram
    sli: Histogram
    sizes: Histogram | None
    by_code: dict[int, Counter] = field(default_factory=dict)


class _RequestSeries:
    """The metrics of requests that have ended."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._requests = Counter(
            "apiserver_request", "Requests, by verb, resource and code.", (*_REQUEST, "code"), registry=registry
        )
        self._durations = Histogram(
            "apiserver_request_duration_seconds",
            "Response latency, by verb and resource.",
            _REQUEST,
            buckets=_SECONDS,
            registry=registry,
        )
        self._sli = Histogram(
            "apiserver_request_sli_duration_seconds",
            "Response latency without the duration of webhook calls, by verb and resource.",
            _REQUEST,
            buckets=_SLI_SECONDS,
            registry=registry,
        )
        self._sizes = Histogram(
            "apiserver_response_sizes", "Response sizes of reads, in bytes.", _READ, buckets=_SIZES, registry=registry
        )
        self._terminations = Counter(
            "apiserver_request_terminations",
            "Requests terminated in self-defence: there were too many, or they took too long.",
            (*_READ, "code"),
            registry=registry,
        )
        self._aborts = Counter(
            "apiserver_request_aborts",
            "Requests whose connection was aborted before the end of the response.",
            _READ[:-1],
            registry=registry,
        )
        self._children: dict[tuple[str, ...], _Children] = {}

    def observe(
        self, labels: tuple[str, ...], code: int, seconds: float, *, size: int | None, webhook_seconds: float
    ) -> None:
        child = self._children.get(labels) or self._create_children(labels)
        counter = child.by_code.get(code)
        if counter is None:
            counter = child.by_code[code] = self._requests.labels(*labels, str(code))
        counter.inc()
        child.durations.observe(seconds)
        child.sli.observe(max(seconds - webhook_seconds, 0.0))
        if child.sizes is not None and size is not None:
            child.sizes.observe(size)
        if code in (429, 504):
            self._terminations.labels(*_read_labels(labels), str(code)).inc()

    def aborted(self, labels: tuple[str, ...]) -> None:
        self._aborts.labels(*_read_labels(labels)[:-1]).inc()

    def _create_children(self, labels: tuple[str, ...]) -> _Children:
        sizes = self._sizes.labels(*_read_labels(labels)) if labels[0] in ("GET", "LIST") else None
        child = _Children(self._durations.labels(*labels), self._sli.labels(*labels), sizes)
        self._children[labels] = child
        return child


class _LoadSeries:
    """The metrics of the current requests, watches, caches and tasks."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self.inflight = Gauge(
            "apiserver_current_inflight_requests", "Requests in progress.", ("request_kind",), registry=registry
        )
        self.dropped = Counter(
            "apiserver_dropped_requests", "Requests rejected because too many were in progress.", registry=registry
        )
        self.longrunning = Gauge("apiserver_longrunning_requests", "Open watches.", _REQUEST, registry=registry)
        self.watch_events = Counter("apiserver_watch_events", "Events sent to watches.", _RESOURCE, registry=registry)
        self.cache_objects = Gauge(
            "apiserver_storage_objects", "Objects in the watch cache, by resource.", ("resource",), registry=registry
        )
        self.cache_version = Gauge(
            "apiserver_watch_cache_resource_version",
            "resourceVersion of the watch cache.",
            _RESOURCE,
            registry=registry,
        )
        self.watchers = Gauge(
            "apiserver_registered_watchers", "Open watches of the watch cache.", _RESOURCE, registry=registry
        )
        self.tasks = Gauge("apiserver_tasks", "Tasks of the event loop; a leak shows here.", registry=registry)


class Metrics:
    """The metrics of the process. The return values of `inflight`, `watch_events` and `longrunning` can be stored by
    callers that use them often."""

    def __init__(self) -> None:
        # Kubernetes has no series with the creation time of other series
        disable_created_metrics()  # type: ignore[no-untyped-call]
        self.registry = registry = CollectorRegistry()
        self._process = CollectorRegistry()
        for collector in (ProcessCollector, PlatformCollector, GCCollector):
            collector(registry=self._process)
        self._requests = _RequestSeries(registry)
        self._handshake_errors = Counter(
            "apiserver_tls_handshake_errors", "TLS handshakes that failed.", registry=registry
        )
        self._attempts = PlainCounter(
            "authentication_attempts",
            "Authentication attempts, by result.",
            ("result",),
            initial=[("success",), ("failure",), ("error",)],
        )
        registry.register(self._attempts)
        self._delegated = {review: _delegated_counter(review, registry) for review in ("authn", "authz")}
        self._calls = Counter(
            "rest_client_requests",
            "Requests to the cluster, by status code, method and host.",
            ("code", "method", "host"),
            registry=registry,
        )
        self._calls_by_answer: dict[tuple[int | None, str, str], Counter] = {}
        self._load = _LoadSeries(registry)
        self._stale = Counter(
            "apiserver_stale_verdicts",
            "Cached review decisions that were used after their expiry, because the cluster was unreachable.",
            ("review",),
            registry=registry,
        )
        self._audit_events = Counter("apiserver_audit_event", "Audit events generated.", registry=registry)
        self._audit_errors = Counter("apiserver_audit_error", "Audit events lost.", ("plugin",), registry=registry)
        self._admission_series: dict[tuple[object, ...], Histogram] = {}
        self._admission = Histogram(
            "apiserver_admission_controller_admission_duration_seconds",
            "Latency of admission, by plugin.",
            ("name", "type", "operation", "rejected"),
            buckets=_ADMISSION_SECONDS,
            registry=registry,
        )

    def observe_request(
        self,
        labels: tuple[str, ...],
        code: int,
        seconds: float,
        *,
        size: int | None = None,
        webhook_seconds: float = 0.0,
    ) -> None:
        """Count a request with a response. `labels` come from `request_labels`; `size` is the size of the response body
        in bytes, if known."""
        self._requests.observe(labels, code, seconds, size=size, webhook_seconds=webhook_seconds)

    def request_aborted(self, labels: tuple[str, ...]) -> None:
        """Count a request without a complete response. `labels` come from `request_labels`."""
        self._requests.aborted(labels)

    def longrunning(self, labels: tuple[str, ...]) -> Gauge:
        return self._load.longrunning.labels(*labels)

    def inflight(self, kind: str) -> Gauge:
        """`kind` is readOnly or mutating."""
        return self._load.inflight.labels(kind)

    def request_dropped(self) -> None:
        self._load.dropped.inc()

    def watch_events(self, group: str, version: str, resource: str) -> Counter:
        return self._load.watch_events.labels(group, version, resource)

    def track_cache(self, cache: WatchCache) -> None:
        """Export the gauges of a watch cache; they are read at every scrape."""
        resource = cache.resource
        names = (resource.group, resource.version, resource.plural)
        self._load.cache_objects.labels(str(resource.group_resource)).set_function(lambda: len(cache))
        self._load.cache_version.labels(*names).set_function(lambda: cache.rv)
        self._load.watchers.labels(*names).set_function(lambda: cache.watchers)

    def stale_decision_used(self, review: str) -> None:
        """`review` is tokenreviews or subjectaccessreviews."""
        self._stale.labels(review).inc()

    def authentication_attempt(self, result: str) -> None:
        """`result` is success (anonymous too), failure (a 401) or error."""
        self._attempts.increment(result)

    def handshake_error(self) -> None:
        self._handshake_errors.inc()

    def delegated_request(self, review: str, code: int | None) -> None:
        """`review` is authn or authz. `code` is the status code, None if there was no response."""
        self._delegated[review].labels(_NO_ANSWER if code is None else str(code)).inc()

    def client_request(self, method: str, host: str, code: int | None) -> None:
        """Count a request to the cluster. `code` is None if there was no response."""
        counter = self._calls_by_answer.get((code, method, host))
        if counter is None:
            labels = (_NO_ANSWER if code is None else str(code), method, host)
            counter = self._calls_by_answer[code, method, host] = self._calls.labels(*labels)
        counter.inc()

    def audit_event(self) -> None:
        self._audit_events.inc()

    def audit_event_lost(self) -> None:
        self._audit_errors.labels("log").inc()

    def observe_admission(self, name: str, type_: str, operation: str, *, rejected: bool, seconds: float) -> None:
        """`type_` is admit or validate, `operation` is CREATE, UPDATE or DELETE."""
        labels = (name, type_, operation, rejected)
        # labels() formats them anew each time, which takes as long as most plugins
        if (series := self._admission_series.get(labels)) is None:
            series = self._admission.labels(name, type_, operation, str(rejected).lower())
            self._admission_series[labels] = series
        series.observe(seconds)

    async def respond(self, context: RequestContext) -> web.StreamResponse | None:
        """The response of /metrics in the text format, None for other paths."""
        if context.info.path != "/metrics" or context.info.verb != "get":
            return None
        # process collectors read files, so they run in a thread; gauges read state of the event loop, so they run on it
        process = await asyncio.to_thread(generate_latest, self._process)
        self._load.tasks.set(len(asyncio.all_tasks()))
        body = generate_latest(self.registry) + process
        return web.Response(body=body, headers={"Content-Type": CONTENT_TYPE_PLAIN_0_0_4})


def request_labels(context: RequestContext, *, served: bool) -> tuple[str, ...]:
    """The values of verb, dry_run, group, version, resource, subresource, scope and component (WIRE-I15).

    The names of resources that are not `served` are empty: clients could invent any number of them.
    """
    info = context.info
    dry_run = "All" if "All" in context.query.all("dryRun") else ""
    if not info.is_resource:
        return (_http_verb(info), dry_run, "", "", "", "", "", "apiserver")
    verb = _VERBS.get(info.verb, "other")
    if verb == "PATCH" and context.http.headers.get("Content-Type", "").startswith(_APPLY):
        verb = "APPLY"
    names: tuple[Any, ...] = (info.group, info.version, info.resource, info.subresource) if served else ("",) * 4
    return (verb, dry_run, *names, scope_of(info), "apiserver")


def _delegated_counter(review: str, registry: CollectorRegistry) -> Counter:
    name = f"apiserver_delegated_{review}_request"
    return Counter(name, "Review requests to the cluster, by status code.", ("code",), registry=registry)


def _read_labels(labels: tuple[str, ...]) -> tuple[str, ...]:
    """`labels` without dry_run."""
    return (labels[0], *labels[2:])


def scope_of(info: RequestInfo) -> str:
    """The label `scope`: "resource" for a single object, else "namespace" or "cluster"."""
    if not info.collection_path or info.verb == "create":
        return "resource"
    return "namespace" if info.namespace else "cluster"


def _http_verb(info: RequestInfo) -> str:
    return info.method if info.method in _VERBS.values() else "other"
