"""Metrics of what alerts are about and no other metric tells: health checks, Tenants by condition, the certificate, the
age of what the caches contain, and the handlers of events that have failed."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from sys import intern

import orjson
from prometheus_client import CollectorRegistry
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from apiserver.encoding.encoded_object import CachedObject
from apiserver.meta.resource import GroupResource, Key
from apiserver.server.healthz import HealthChecks
from apiserver.storage.watch_cache import CacheEvent, WatchCache
from apiserver.tls.certificates import expiry
from apiserver.tls.server_context import ServerTls
from registry.cluster.informer import Informer
from registry.tenant.readiness import READY
from tenant_apiserver.process import Process
from tenant_apiserver.wiring.tenant_api import TenantApi


def export_state(process: Process, tls: ServerTls, informers: Sequence[Informer]) -> None:
    """Adds the metrics of checks, the certificate and informers to those of the process."""
    StateCollector(
        process.metrics.registry,
        health=process.health,
        certificate=lambda: tls.certificate,
        informers=informers,
    )


def export_tenants(process: Process, tenants: TenantApi) -> None:
    """Adds the metrics of Tenants. Called before their cache has objects."""
    TenantCollector(
        process.metrics.registry, tenants=TenantCounts(tenants.cache), failures=tenants.release_events.failures
    )


class TenantCounts:
    """Tenants by status and reason of the condition Ready. Each change of a Tenant is parsed once, so that a scrape
    costs no time for each Tenant."""

    def __init__(self, cache: WatchCache) -> None:
        self._conditions: dict[Key, tuple[str, str]] = {}
        self._counts: Counter[tuple[str, str]] = Counter()
        cache.subscribe(self._follow)

    def __iter__(self) -> Iterator[tuple[str, str, int]]:
        for (status, reason), count in self._counts.items():
            yield status, reason, count

    def _follow(self, event: CacheEvent) -> None:
        key = event.object.key
        before = self._conditions.pop(key, None)
        if before is not None:
            self._counts[before] -= 1
            if not self._counts[before]:
                del self._counts[before]
        if event.type != "DELETED":
            self._conditions[key] = now = _ready(event.object)
            self._counts[now] += 1


def _ready(obj: CachedObject) -> tuple[str, str]:
    status = orjson.loads(obj.json).get("status") or {}
    for condition in status.get("conditions") or ():
        if condition["type"] == READY:
            return intern(condition["status"]), intern(condition.get("reason", ""))
    return "Unknown", ""


class StateCollector(Collector):
    """Everything is read when the metrics are. `certificate` returns PEM."""

    def __init__(
        self,
        registry: CollectorRegistry,
        *,
        health: HealthChecks,
        certificate: Callable[[], bytes],
        informers: Sequence[Informer],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._health = health
        self._certificate = certificate
        self._informers = informers
        self._clock = clock
        registry.register(self)

    def collect(self) -> Iterator[Metric]:
        yield self._healthchecks()
        yield self._expiry()
        yield self._ages()

    def _healthchecks(self) -> GaugeMetricFamily:
        found = GaugeMetricFamily(
            "kubernetes_healthcheck",
            "1 if the check passed when last probed, 0 if not.",
            labels=["name", "type"],
        )
        for (endpoint, name), passed in self._health.results.items():
            found.add_metric([name, endpoint], float(passed))
        return found

    def _expiry(self) -> GaugeMetricFamily:
        return GaugeMetricFamily(
            "tenant_apiserver_certificate_expiration_timestamp_seconds",
            "The time at which the serving certificate expires, in seconds of the epoch.",
            value=expiry(self._certificate()).timestamp(),
        )

    def _ages(self) -> GaugeMetricFamily:
        """A kube-apiserver sends no bookmarks of a kind of which it has seen no event since its start, nor progress of
        etcd. The watch is then silent, and opened again."""
        found = GaugeMetricFamily(
            "tenant_apiserver_informer_age_seconds",
            "Seconds since the cluster last sent a list, an event or a bookmark of it, or accepted a watch.",
            labels=["resource"],
        )
        now, ages = self._clock(), dict[str, float]()
        for each in self._informers:
            if each.heard_at is not None:
                resource = str(GroupResource(each.resource.group, each.resource.plural))
                ages[resource] = max(now - each.heard_at, ages.get(resource, 0.0))
        for resource, age in ages.items():
            found.add_metric([resource], age)
        return found


class TenantCollector(Collector):
    """Everything is read when the metrics are. `failures` are counts by handler."""

    def __init__(self, registry: CollectorRegistry, *, tenants: TenantCounts, failures: Mapping[str, int]) -> None:
        self._tenants = tenants
        self._failures = failures
        registry.register(self)

    def collect(self) -> Iterator[Metric]:
        yield self._conditions()
        yield self._failed_handlers()

    def _conditions(self) -> GaugeMetricFamily:
        found = GaugeMetricFamily(
            "tenant_apiserver_tenants",
            "Tenants, by status and reason of their condition Ready.",
            labels=["status", "reason"],
        )
        for status, reason, count in self._tenants:
            found.add_metric([status, reason], count)
        return found

    def _failed_handlers(self) -> CounterMetricFamily:
        found = CounterMetricFamily(
            "tenant_apiserver_event_handler_failures",
            "Events of HelmReleases that a handler has not processed, because of a bug.",
            labels=["handler"],
        )
        for handler, count in self._failures.items():
            found.add_metric([handler], count)
        return found
