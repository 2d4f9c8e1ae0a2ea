"""The log of a start says what runs where, when it is ready, and what is missing."""

from __future__ import annotations

import asyncio
import logging
from dataclasses import replace

import pytest

from apiserver.meta.resource import Key
from apiserver.storage.watch_cache import WatchCache
from registry.cluster.informer import Informer
from registry.cluster.informer_factory import InformerFactory
from registry.cluster.interface import CONFIGMAPS, HELMRELEASES, NAMESPACES, ClusterResource, NotServed
from registry.tenant.types import tenant_resource
from tenant_apiserver import __version__
from tenant_apiserver.process import Process, add_checks
from tenant_apiserver.start_log import StartLog, missing_kinds, object_counts
from tests.fake_cluster import FakeCluster
from tests.virtual_time import virtual


def start_log(process: Process, *informers: Informer, address: str = "127.0.0.1") -> StartLog:
    return StartLog(
        command="serve",
        address=address,
        port=8443,
        controllers=("tenant", "tenantgateway"),
        process=process,
        informers=informers,
        caches=(),
        optional=InformerFactory(FakeCluster()),
    )


def namespaces(*names: str) -> Informer:
    informer = Informer(FakeCluster(), NAMESPACES)
    for name in names:
        informer.store.put({"metadata": {"name": name, "resourceVersion": "1"}})
    return informer


@virtual
async def test_a_start_says_what_listens_where_and_what_was_loaded(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO, logger="tenant_apiserver"):
        await start_log(Process(), namespaces("a", "b"), address="::1").run()
    first, second = (each.getMessage() for each in caplog.records)
    assert first == (
        f"tenant-apiserver {__version__} serve listens on https://[::1]:8443, controllers: tenant, tenantgateway"
    )
    assert second.startswith("ready after ")
    assert second.endswith(" s with 2 namespaces")


@virtual
async def test_a_start_says_how_many_kinds_of_applications_are_served(caplog: pytest.LogCaptureFixture) -> None:
    log = replace(start_log(Process(), namespaces("a")), applications=lambda: "30 kinds of applications")
    with caplog.at_level(logging.INFO, logger="tenant_apiserver"):
        await log.run()
    assert caplog.records[1].getMessage().endswith(" s with 1 namespaces, 30 kinds of applications")


@virtual
async def test_a_start_that_takes_long_says_once_what_it_waits_for(caplog: pytest.LogCaptureFixture) -> None:
    releases, process = Informer(FakeCluster(), HELMRELEASES), Process()
    add_checks(process, (releases,))
    probes = 0

    def become_ready() -> None:
        nonlocal probes
        probes += 1
        if probes == 300:
            releases.synced.set()

    process.health.add("probe", become_ready)
    with caplog.at_level(logging.WARNING, logger="tenant_apiserver"):
        await start_log(process, releases).run()
    [warning] = [each.getMessage() for each in caplog.records]
    assert warning == (
        "not ready after 15 s: informer-sync: informers not synced: helmreleases; cluster: the cluster has not been "
        "reached yet. If its kinds are missing, install Flux's helm-controller"
    )


@virtual
async def test_a_kind_that_the_cluster_lacks_is_told_as_missing_and_once(caplog: pytest.LogCaptureFixture) -> None:
    cluster, process = FakeCluster(), Process()

    async def lack(verb: str, res: ClusterResource, key: Key) -> None:
        raise NotServed

    cluster.before = lack
    # two of one kind, as those of single ConfigMaps are
    informers = [Informer(cluster, HELMRELEASES) for _ in range(2)]
    add_checks(process, informers)
    with caplog.at_level(logging.WARNING, logger="tenant_apiserver"):
        async with asyncio.TaskGroup() as tasks:
            running = [tasks.create_task(each.run()) for each in informers]
            starting = tasks.create_task(start_log(process, *informers).run())
            await asyncio.sleep(20.0)
            for each in (*running, starting):
                each.cancel()
    [warning] = [each.getMessage() for each in caplog.records if each.name == "tenant_apiserver"]
    assert warning == (
        "not ready after 15 s: informer-sync: informers not synced: helmreleases (kube-apiserver does not serve "
        "them); cluster: the cluster has not been reached yet. Install Flux's helm-controller"
    )


def test_objects_are_counted_by_plural_and_served_kinds_first() -> None:
    single = Informer(FakeCluster(), CONFIGMAPS, field_selector="metadata.name=a")
    single.store.put({"metadata": {"name": "a", "namespace": "b", "resourceVersion": "1"}})
    empty = Informer(FakeCluster(), HELMRELEASES, store_objects=False)
    counts = object_counts([WatchCache(tenant_resource())], [namespaces("a"), single, empty])
    assert list(counts.items()) == [("tenants", 0), ("namespaces", 1)]


@pytest.mark.parametrize(
    ("names", "text"),
    [
        pytest.param([], "", id="none"),
        pytest.param(
            ["tlsroutes.gateway.networking.k8s.io", "certificates.cert-manager.io", "issuers.cert-manager.io"],
            "certificates.cert-manager.io, issuers.cert-manager.io (install cert-manager to use them); "
            "tlsroutes.gateway.networking.k8s.io (install the CRDs of Gateway API to use them)",
            id="by provider",
        ),
        pytest.param(["ingresses.networking.k8s.io"], "ingresses.networking.k8s.io", id="of Kubernetes itself"),
    ],
)
def test_missing_kinds_are_named_with_what_to_install(names: list[str], text: str) -> None:
    assert missing_kinds(names) == text
