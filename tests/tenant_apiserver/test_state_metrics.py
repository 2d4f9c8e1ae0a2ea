"""Metrics of health checks, Tenants by condition, the certificate and the age of caches."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pytest
from prometheus_client import CollectorRegistry, generate_latest

from apiserver.server.healthz import HealthChecks
from apiserver.storage.watch_cache import WatchCache, encode
from apiserver.tls import certificates
from registry.cluster.informer import Informer
from registry.cluster.interface import HELMRELEASES
from registry.tenant.types import tenant_resource
from tenant_apiserver.state_metrics import StateCollector, TenantCollector, TenantCounts
from tests.apiserver.server.test_healthz import get
from tests.fake_cluster import FakeCluster

TENANT_RESOURCE = tenant_resource()
CERTIFICATE = certificates.make_serving(certificates.make_ca("ca"), ["localhost"]).certificate


def tenant(name: str, rv: int, status: str = "", reason: str = "") -> dict[str, Any]:
    conditions = [{"type": "Ready", "status": status, "reason": reason}] if status else []
    metadata = {"namespace": "tenant-root", "name": name, "uid": name, "resourceVersion": str(rv)}
    return {"metadata": metadata, "spec": {}, "status": {"conditions": conditions}}


@pytest.fixture
def cache() -> WatchCache:
    return WatchCache(TENANT_RESOURCE)


def scrape(
    cache: WatchCache,
    health: HealthChecks | None = None,
    informers: Sequence[Informer] = (),
    failures: Mapping[str, int] | None = None,
    now: float = 0.0,
) -> Scrape:
    registry = CollectorRegistry()
    return Scrape(registry, TenantCounts(cache), health or HealthChecks(), informers, failures or {}, now)


class Scrape:
    def __init__(
        self,
        registry: CollectorRegistry,
        counts: TenantCounts,
        health: HealthChecks,
        informers: Sequence[Informer],
        failures: Mapping[str, int],
        now: float,
    ) -> None:
        self._registry = registry
        StateCollector(
            registry,
            health=health,
            certificate=lambda: CERTIFICATE,
            informers=informers,
            clock=lambda: now,
        )
        TenantCollector(registry, tenants=counts, failures=failures)

    def samples(self, name: str) -> set[str]:
        """The samples of a metric without its name."""
        lines = generate_latest(self._registry).decode().splitlines()
        return {line.removeprefix(name) for line in lines if line.startswith(name)}


def test_tenants_are_counted_by_condition_as_they_change(cache: WatchCache) -> None:
    scraped = scrape(cache)
    cache.replace([encode(TENANT_RESOURCE, tenant(name, 1, "True", "Reconciled")) for name in ("a", "b")], 1)
    cache.apply("ADDED", encode(TENANT_RESOURCE, tenant("c", 2)))
    assert scraped.samples("tenant_apiserver_tenants") == {
        '{reason="Reconciled",status="True"} 2.0',
        '{reason="",status="Unknown"} 1.0',
    }
    cache.apply("MODIFIED", encode(TENANT_RESOURCE, tenant("a", 3, "False", "HostConflict")))
    cache.apply("DELETED", encode(TENANT_RESOURCE, tenant("c", 4)))
    assert scraped.samples("tenant_apiserver_tenants") == {
        '{reason="HostConflict",status="False"} 1.0',
        '{reason="Reconciled",status="True"} 1.0',
    }
    cache.replace([], 5)
    assert scraped.samples("tenant_apiserver_tenants") == set()


async def test_a_check_has_the_result_of_its_last_probe(cache: WatchCache) -> None:
    health, fails = HealthChecks(), [True]

    def check() -> None:
        if fails:
            raise RuntimeError("down")

    health.add("cluster", check)
    scraped = scrape(cache, health)
    assert scraped.samples("kubernetes_healthcheck") == set()
    await get(health, "/readyz")
    assert '{name="cluster",type="readyz"} 0.0' in scraped.samples("kubernetes_healthcheck")
    fails.clear()
    await get(health, "/readyz")
    assert scraped.samples("kubernetes_healthcheck") == {
        '{name="ping",type="readyz"} 1.0',
        '{name="cluster",type="readyz"} 1.0',
    }


def test_the_expiry_is_that_of_the_certificate_in_use(cache: WatchCache) -> None:
    [sample] = scrape(cache).samples("tenant_apiserver_certificate_expiration_timestamp_seconds")
    assert float(sample) == certificates.expiry(CERTIFICATE).timestamp()


def test_the_age_is_that_of_the_oldest_informer_of_a_resource(cache: WatchCache) -> None:
    informers = [Informer(FakeCluster(), HELMRELEASES) for _ in range(3)]
    for informer, heard_at in zip(informers, (90.0, 40.0, None), strict=True):
        informer.heard_at = heard_at
    found = scrape(cache, informers=informers, now=100.0).samples("tenant_apiserver_informer_age_seconds")
    assert found == {'{resource="helmreleases.helm.toolkit.fluxcd.io"} 60.0'}


def test_a_handler_counts_its_failures_from_the_start(cache: WatchCache) -> None:
    failures = {"tenants": 0, "modules": 0}
    scraped = scrape(cache, failures=failures)
    failures["modules"] += 2
    assert scraped.samples("tenant_apiserver_event_handler_failures_total") == {
        '{handler="tenants"} 0.0',
        '{handler="modules"} 2.0',
    }
