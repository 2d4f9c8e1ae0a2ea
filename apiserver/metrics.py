"""Metrics under the names that Kubernetes' own servers use (I14, I15), in a registry of the process's own."""

from __future__ import annotations

import asyncio
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
)
from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4, generate_latest

from apiserver.context import RequestContext
from apiserver.request_info import RequestInfo
from apiserver.watchcache import WatchCache

_SECONDS = (
    *(0.005, 0.025, 0.05, 0.1, 0.2, 0.4, 0.6, 0.8, 1, 1.25, 1.5, 2, 3, 4, 5, 6, 8),
    *(10, 15, 20, 30, 45, 60),
)
_ADMISSION_SECONDS = (0.005, 0.025, 0.1, 0.5, 1.0, 2.5)
_REQUEST = ("verb", "dry_run", "group", "version", "resource", "subresource", "scope", "component")
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


class Metrics:
    """What the process counts. Callers that count often keep what `inflight`, `watch_events` and their like return."""

    def __init__(self) -> None:
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
        self._children: dict[tuple[str, ...], tuple[dict[str, Counter], Histogram]] = {}

    def observe_request(self, labels: tuple[str, ...], code: int, seconds: float) -> None:
        """Count an answered request; `labels` come from `request_labels`."""
        child = self._children.get(labels)
        if child is None:
            child = self._children[labels] = ({}, self._durations.labels(*labels))
        counters, durations = child
        text = str(code)
        counter = counters.get(text)
        if counter is None:
            counter = counters[text] = self._requests.labels(*labels, text)
        counter.inc()
        durations.observe(seconds)

    def longrunning(self, labels: tuple[str, ...]) -> Gauge:
        return self._longrunning.labels(*labels)

    def inflight(self, kind: str) -> Gauge:
        """`kind` is readOnly or mutating."""
        return self._inflight.labels(kind)

    def dropped(self) -> None:
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

    def stale_verdict(self, review: str) -> None:
        """`review` is tokenreviews or subjectaccessreviews."""
        self._stale.labels(review).inc()

    def audit_event(self) -> None:
        self._audit_events.inc()

    def audit_lost(self) -> None:
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
        body = generate_latest(self.registry) + process
        return web.Response(body=body, headers={"Content-Type": CONTENT_TYPE_PLAIN_0_0_4})


def request_labels(context: RequestContext, *, served: bool) -> tuple[str, ...]:
    """Values of verb, dry_run, group, version, resource, subresource, scope and component (I15).

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


def scope_of(info: RequestInfo) -> str:
    """resource for one object, else namespace or cluster."""
    if not info.collection_path or info.verb == "create":
        return "resource"
    return "namespace" if info.namespace else "cluster"


def _http_verb(info: RequestInfo) -> str:
    return info.method if info.method in _VERBS.values() else "other"
