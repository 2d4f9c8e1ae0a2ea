"""Metrics under the names that Kubernetes' own servers use (WIRE-I14, WIRE-I15), in a registry of the process's own."""

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
# of answers that say how large they are: a dry run is no read
_READ = tuple(label for label in _REQUEST if label != "dry_run")
# how Kubernetes calls a call that no answer came to
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
    """The time series of one set of request labels. `sizes` is for reads only."""

    durations: Histogram
    sli: Histogram
    sizes: Histogram | None
    by_code: dict[int, Counter] = field(default_factory=dict)


class Metrics:
    """What the process counts. Callers that count often keep what `inflight`, `watch_events` and their like return."""

    def __init__(self) -> None:
        # Kubernetes has no series that say since when another one is counted
        disable_created_metrics()  # type: ignore[no-untyped-call]
        self.registry = registry = CollectorRegistry()
        self._process = CollectorRegistry()
        for collector in (ProcessCollector, PlatformCollector, GCCollector):
            collector(registry=self._process)
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
            "Response latency without what webhooks take, by verb and resource.",
            _REQUEST,
            buckets=_SLI_SECONDS,
            registry=registry,
        )
        self._sizes = Histogram(
            "apiserver_response_sizes", "Bytes of answers to reads.", _READ, buckets=_SIZES, registry=registry
        )
        self._terminations = Counter(
            "apiserver_request_terminations",
            "Requests ended in self-defence: too many of them, or one that took too long.",
            (*_READ, "code"),
            registry=registry,
        )
        self._aborts = Counter(
            "apiserver_request_aborts",
            "Requests whose connection was cut in the middle.",
            _READ[:-1],
            registry=registry,
        )
        self._handshake_errors = Counter(
            "apiserver_tls_handshake_errors", "TLS handshakes that did not come to their end.", registry=registry
        )
        self._attempts = PlainCounter(
            "authentication_attempts",
            "Requests authenticated, by result.",
            ("result",),
            initial=[("success",), ("failure",), ("error",)],
        )
        registry.register(self._attempts)
        self._delegated = {
            review: Counter(
                f"apiserver_delegated_{review}_request",
                "Calls of the host's reviews, by status code.",
                ("code",),
                registry=registry,
            )
            for review in ("authn", "authz")
        }
        self._calls = Counter(
            "rest_client_requests",
            "Requests to the host, by status code, method and host.",
            ("code", "method", "host"),
            registry=registry,
        )
        self._inflight = Gauge(
            "apiserver_current_inflight_requests", "Requests being worked on.", ("request_kind",), registry=registry
        )
        self._dropped = Counter(
            "apiserver_dropped_requests", "Requests refused because of too many others.", registry=registry
        )
        self._longrunning = Gauge(
            "apiserver_longrunning_requests", "Watches that are open.", _REQUEST, registry=registry
        )
        self._watch_events = Counter("apiserver_watch_events", "Events sent to watches.", _RESOURCE, registry=registry)
        self._cache_objects = Gauge(
            "apiserver_storage_objects", "Objects in the watch cache, by resource.", ("resource",), registry=registry
        )
        self._cache_version = Gauge(
            "apiserver_watch_cache_resource_version",
            "resourceVersion of the watch cache.",
            _RESOURCE,
            registry=registry,
        )
        self._watchers = Gauge("apiserver_registered_watchers", "Watches open.", _RESOURCE, registry=registry)
        self._tasks = Gauge("apiserver_tasks", "Tasks of the event loop: what leaks is seen here.", registry=registry)
        self._stale = Counter(
            "apiserver_stale_verdicts",
            "Verdicts of before that were used because the host could not be reached.",
            ("review",),
            registry=registry,
        )
        self._audit_events = Counter("apiserver_audit_event", "Audit events generated.", registry=registry)
        self._audit_errors = Counter("apiserver_audit_error", "Audit events lost.", ("plugin",), registry=registry)
        self._admission = Histogram(
            "apiserver_admission_controller_admission_duration_seconds",
            "Latency of admission, by plugin.",
            ("name", "type", "operation", "rejected"),
            buckets=_ADMISSION_SECONDS,
            registry=registry,
        )
        self._children: dict[tuple[str, ...], _Children] = {}

    def observe_request(
        self,
        labels: tuple[str, ...],
        code: int,
        seconds: float,
        *,
        size: int | None = None,
        webhook_seconds: float = 0.0,
    ) -> None:
        """Count an answered request; `labels` come from `request_labels`, `size` is that of the body, if known."""
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

    def request_aborted(self, labels: tuple[str, ...]) -> None:
        """Count a request that has no whole answer; `labels` come from `request_labels`."""
        self._aborts.labels(*_read_labels(labels)[:-1]).inc()

    def _create_children(self, labels: tuple[str, ...]) -> _Children:
        sizes = self._sizes.labels(*_read_labels(labels)) if labels[0] in ("GET", "LIST") else None
        child = _Children(self._durations.labels(*labels), self._sli.labels(*labels), sizes)
        self._children[labels] = child
        return child

    def longrunning(self, labels: tuple[str, ...]) -> Gauge:
        return self._longrunning.labels(*labels)

    def inflight(self, kind: str) -> Gauge:
        """`kind` is readOnly or mutating."""
        return self._inflight.labels(kind)

    def request_dropped(self) -> None:
        self._dropped.inc()

    def watch_events(self, group: str, version: str, resource: str) -> Counter:
        return self._watch_events.labels(group, version, resource)

    def track_cache(self, cache: WatchCache) -> None:
        """Read the gauges of a watch cache at every scrape."""
        resource = cache.resource
        names = (resource.group, resource.version, resource.plural)
        self._cache_objects.labels(str(resource.group_resource)).set_function(lambda: len(cache))
        self._cache_version.labels(*names).set_function(lambda: cache.rv)
        self._watchers.labels(*names).set_function(lambda: cache.watchers)

    def stale_decision_used(self, review: str) -> None:
        """`review` is tokenreviews or subjectaccessreviews."""
        self._stale.labels(review).inc()

    def authentication_attempt(self, result: str) -> None:
        """`result` is success (anonymous too), failure (a 401) or error."""
        self._attempts.increment(result)

    def handshake_error(self) -> None:
        self._handshake_errors.inc()

    def delegated_request(self, review: str, code: int | None) -> None:
        """`review` is authn or authz, `code` that of the host's answer, None if there was none."""
        self._delegated[review].labels(_NO_ANSWER if code is None else str(code)).inc()

    def client_request(self, method: str, host: str, code: int | None) -> None:
        """Count a request to the host; no `code` if no answer came."""
        self._calls.labels(_NO_ANSWER if code is None else str(code), method, host).inc()

    def audit_event(self) -> None:
        self._audit_events.inc()

    def audit_event_lost(self) -> None:
        self._audit_errors.labels("log").inc()

    def observe_admission(self, name: str, type_: str, operation: str, *, rejected: bool, seconds: float) -> None:
        """`type_` is admit or validate, `operation` as in CREATE."""
        self._admission.labels(name, type_, operation, str(rejected).lower()).observe(seconds)

    async def respond(self, context: RequestContext) -> web.StreamResponse | None:
        """/metrics, in the text format; None for other paths."""
        if context.info.path != "/metrics" or context.info.verb != "get":
            return None
        # gauges look at objects of the event loop, collectors of the process read files
        process = await asyncio.to_thread(generate_latest, self._process)
        self._tasks.set(len(asyncio.all_tasks()))
        body = generate_latest(self.registry) + process
        return web.Response(body=body, headers={"Content-Type": CONTENT_TYPE_PLAIN_0_0_4})


def request_labels(context: RequestContext, *, served: bool) -> tuple[str, ...]:
    """Values of verb, dry_run, group, version, resource, subresource, scope and component (WIRE-I15).

    Names of resources that are not `served` are left out: who asks could make up any number of them.
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


def _read_labels(labels: tuple[str, ...]) -> tuple[str, ...]:
    return (labels[0], *labels[2:])


def scope_of(info: RequestInfo) -> str:
    """resource for one object, else namespace or cluster."""
    if not info.collection_path or info.verb == "create":
        return "resource"
    return "namespace" if info.namespace else "cluster"


def _http_verb(info: RequestInfo) -> str:
    return info.method if info.method in _VERBS.values() else "other"
