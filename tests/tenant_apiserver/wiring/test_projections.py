"""The kinds of an account that may not read what they are made from."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

from admission.chain import ignore_observation
from apiserver.authorization.authorizer import PrivilegedGroups
from apiserver.meta import errors
from apiserver.meta.resource import GroupResource, Key
from apiserver.metrics import Metrics
from apiserver.storage.watch_cache import WatchCache
from registry.cluster.informer import Informer
from registry.cluster.interface import NAMESPACES, SECRETS, ClusterResource
from tenant_apiserver.wiring.applications.api import ApplicationApiConfig
from tenant_apiserver.wiring.projections import ProjectionApi
from tenant_apiserver.wiring.releases import watch_releases
from tenant_apiserver.wiring.visibility import by_rbac
from tests.fake_cluster import FakeCluster

_SECONDS = 20.0


class CachesByPlural(Metrics):
    """Knows the watch caches of the kinds."""

    def __init__(self) -> None:
        super().__init__()
        self.caches: dict[str, WatchCache] = {}

    def track_cache(self, cache: WatchCache) -> None:
        self.caches[cache.resource.plural] = cache


def cluster_without_secrets() -> FakeCluster:
    """As kube-apiserver answers an account without the component tenantsecrets."""
    cluster = FakeCluster()
    labels = {"internal.cozystack.io/tenantresource": "true"}
    cluster.add(SECRETS, {"metadata": {"name": "db", "namespace": "tenant-a", "labels": labels}, "type": "Opaque"})

    async def deny(verb: str, res: ClusterResource, key: Key) -> None:
        if res == SECRETS:
            raise errors.Forbidden(GroupResource("", "secrets"), "", f'User "us" cannot {verb} resource "secrets"')

    cluster.before = deny
    return cluster


def served_by(cluster: FakeCluster, metrics: Metrics) -> tuple[ProjectionApi, Informer]:
    """The API, and the informer of HelmReleases, which runs with that of Tenants."""
    visibility = by_rbac(cluster)
    for each in visibility.informers:
        each.answered.set()
    releases = watch_releases(cluster)
    tenants: Any = SimpleNamespace(
        namespaces=Informer(cluster, NAMESPACES),
        visibility=visibility,
        cache=SimpleNamespace(rv=cluster.rv),
        releases=releases.informer,
        release_events=releases.events,
    )
    api = ProjectionApi(
        ApplicationApiConfig(
            cluster=cluster,
            tenants=tenants,
            authorizer=PrivilegedGroups(),
            metrics=metrics,
            observe=ignore_observation,
            cluster_admission=lambda _: (),
            admission_informers=(),
        )
    )
    return api, releases.informer


async def until(condition: Callable[[], object]) -> None:
    async with asyncio.timeout(_SECONDS):
        while not condition():  # noqa: ASYNC110 - nothing signals what the informers have done
            await asyncio.sleep(0.01)


def is_ready(api: ProjectionApi) -> bool:
    try:
        api.describe()
    except RuntimeError:
        return False
    return True


async def test_a_server_that_may_not_read_secrets_becomes_ready_and_says_so_once(
    caplog: pytest.LogCaptureFixture,
) -> None:
    metrics = CachesByPlural()
    api, releases = served_by(cluster_without_secrets(), metrics)
    with caplog.at_level(logging.INFO):
        tasks = [asyncio.create_task(each.run()) for each in (api, releases)]
        try:
            await until(lambda: is_ready(api))
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.wait(tasks)
    assert api.describe().startswith("tenantsecrets: ")
    # the other kinds are read
    assert metrics.caches["tenantmodules"].ready
    assert len(metrics.caches["tenantsecrets"]) == 0
    assert len([each for each in caplog.messages if each.startswith("TenantSecrets are off: ")]) == 1
    assert not [each for each in caplog.records if each.levelno >= logging.WARNING]
