"""Moving the platform's services from Ingresses to the Gateway and back, as seed 000 describes it, step by step.

The charts, Cilium and cert-manager are played. At each step, the hostnames are counted that nobody serves.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest
import yaml

from controller.publishing.services import SERVICES
from tests.e2e.support.clusters.cluster import ROOT, ROOT_HOST, E2eCluster, tenants_path
from tests.e2e.support.gateways import MERGE, Gateways
from tests.e2e.support.platform_package import root_condition
from tests.e2e.support.platform_services import Hostnames, PlatformCharts, accept_route

LISTED = [each.name for each in SERVICES.values() if each.listed]
SETTINGS = "platform.yaml"
HOSTS = [each.hostname(ROOT_HOST) for each in SERVICES.values()]


def write_settings(file: Path, *, enabled: bool, rollback_timeout: str = "10m") -> None:
    gateway = {"enabled": enabled, "platformRoutes": True, "rollbackTimeout": rollback_timeout}
    settings = {"platform": {"source": "file"}, "publishing": {"exposedServices": LISTED}, "gateway": gateway}
    fresh = file.with_suffix(".new")
    fresh.write_text(yaml.safe_dump(settings))
    fresh.rename(file)


class Migration:
    """`file` is the settings file that the server of the cluster watches."""

    def __init__(self, cluster: E2eCluster, file: Path) -> None:
        self.cluster = cluster
        self.file = file
        self.gateways, self.charts, self.hostnames = Gateways(cluster), PlatformCharts(cluster), Hostnames(cluster)

    def configure(self, *, enabled: bool, rollback_timeout: str = "10m") -> None:
        write_settings(self.file, enabled=enabled, rollback_timeout=rollback_timeout)

    def has_route(self, service: str) -> bool:
        found = SERVICES[service]
        return not self.gateways.is_gone(f"{found.kind.lower()}s", found.namespace, found.route)

    def routes(self) -> list[str]:
        return [each for each in SERVICES if self.has_route(each)]

    def wait_until(self, what: str, check: partial[bool]) -> None:
        self.cluster.wait_until(what, check)

    def wait_for_verdict(self, message: str) -> None:
        def is_told() -> bool:
            return (root_condition(self.cluster, "PublishingReady") or {}).get("message") == message

        self.cluster.wait_until(f"PublishingReady says {message}", is_told)


@pytest.fixture
def own_flags(tmp_path: Path) -> list[str]:
    write_settings(tmp_path / SETTINGS, enabled=False)
    return [f"--config={tmp_path / SETTINGS}"]


@pytest.fixture
def migration(own_cluster: E2eCluster, tmp_path: Path) -> Iterator[Migration]:
    """All seven services are installed, and published by Ingresses. Prints the final state, which pytest shows if the
    test fails."""
    made = Migration(own_cluster, tmp_path / SETTINGS)
    for service in SERVICES:
        made.charts.install(service)
        made.charts.create_ingress(service)
    yield made
    print(f"routes: {made.routes()}; unserved: {made.hostnames.unserved()}")
    print(f"PublishingReady: {root_condition(own_cluster, 'PublishingReady')}")


@pytest.mark.timeout(900)
def test_no_hostname_is_unserved_on_the_way_there_and_the_way_back_has_a_limit(migration: Migration) -> None:
    """R-289, R-290, R-297, R-298, R-300, R-302, R-303."""
    assert migration.hostnames.unserved() == []
    _give_the_root_a_gateway(migration)
    assert migration.hostnames.unserved() == []
    assert migration.routes() == []

    _turn_the_flag_on(migration)
    _remove_the_ingresses(migration)
    _turn_the_flag_off(migration)

    # the charts bring the last Ingress back too late: this is the gap that the timeout leaves
    assert migration.routes() == ["api"]
    assert migration.hostnames.unserved() == []
    migration.configure(enabled=False, rollback_timeout="1s")
    migration.cluster.wait_until("the last route is pruned", lambda: migration.routes() == [])
    assert migration.hostnames.unserved() == ["api"]
    migration.wait_for_verdict("api: IngressMissing (Ingress of class tenant-root for api.example.org)")
    migration.charts.create_ingress("api")
    assert migration.hostnames.unserved() == []
    migration.wait_for_verdict(f"served: {', '.join(_told())}")


def _told() -> list[str]:
    """In the order of the condition: those of the list come first."""
    return [*LISTED, *(each for each in SERVICES if each not in LISTED)]


def _give_the_root_a_gateway(migration: Migration) -> None:
    """Step 1 and 2 of the seed: the listeners of passthrough are there before any route is."""
    root = {"spec": {"gateway": True}}
    path = tenants_path(ROOT, "root")
    migration.cluster.client().request("PATCH", path, root, content_type=MERGE).expect(200)
    passthrough = [f"{each}.{ROOT_HOST}" for each in ("api", "vm-exportproxy", "cdi-uploadproxy")]
    migration.wait_until("the Gateway has its listeners", partial(migration.gateways.has_listeners, ROOT, *passthrough))
    migration.gateways.mark_gateway_programmed(ROOT)


def _turn_the_flag_on(migration: Migration) -> None:
    """Step 3: our routes, then Cilium and cert-manager. Nobody deletes an Ingress yet."""
    gateways = migration.gateways
    migration.configure(enabled=True)
    migration.cluster.wait_until("there are seven routes", lambda: migration.routes() == list(SERVICES))
    assert migration.hostnames.unserved() == []
    migration.wait_until("each has a listener", partial(gateways.has_listeners, ROOT, *HOSTS))
    for service in SERVICES:
        accept_route(gateways, service)
    gateways.mark_gateway_programmed(ROOT)
    gateways.mark_certificates_ready(ROOT)
    migration.wait_for_verdict(f"served: {', '.join(_told())}")


def _remove_the_ingresses(migration: Migration) -> None:
    """The charts follow the flag."""
    for service in SERVICES:
        migration.charts.delete_ingress(service)
        assert migration.hostnames.unserved() == []


def _turn_the_flag_off(migration: Migration) -> None:
    """The rollback: a route is deleted when its Ingress is back. That of `api` never is."""
    migration.configure(enabled=False)
    migration.cluster.wait_until("the routes wait", lambda: _waits(migration, "api"))
    assert migration.hostnames.unserved() == []
    assert migration.routes() == list(SERVICES)
    for service in SERVICES:
        if service != "api":
            migration.charts.create_ingress(service)
            migration.cluster.wait_until(f"the route of {service} is gone", partial(_is_gone, migration, service))
            assert migration.hostnames.unserved() == []


def _is_gone(migration: Migration, service: str) -> bool:
    return not migration.has_route(service)


def _waits(migration: Migration, service: str) -> bool:
    found = SERVICES[service]
    route = migration.gateways.get(f"{found.kind.lower()}s", found.namespace, found.route)
    return "apps.cozystack.io/unneeded-since" in route["metadata"].get("annotations", {})
