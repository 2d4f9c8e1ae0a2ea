"""The Package is watched where its kind is served, which may begin and end while the server runs."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from apiserver.meta import errors
from apiserver.meta.resource import GroupResource, Key, Object
from controller.platform.package import PACKAGE, PACKAGES
from controller.platform.settings import PlatformSettings, ReloadableSettings
from controller.platform.sources import PlatformSources
from registry.cluster.interface import ClusterResource
from tenant_apiserver.wiring.platform_package import PackageWatch
from tests.fake_cluster import FakeCluster
from tests.virtual_time import virtual


def package(host: str, name: str = PACKAGE) -> Object:
    return {
        "metadata": {"name": name},
        "spec": {"components": {"platform": {"values": {"publishing": {"host": host}}}}},
    }


class Kind:
    """A cluster that serves Packages while `served` is true, and allows to read them while `allowed` is."""

    def __init__(self) -> None:
        self.served = self.allowed = True
        self.calls = 0
        self.cluster = FakeCluster(before=self._before)

    async def _before(self, verb: str, res: ClusterResource, key: Key) -> None:
        if res != PACKAGES:
            return
        self.calls += 1
        if not self.served:
            raise errors.NotFound(GroupResource(res.group, res.plural), key.name)
        if not self.allowed:
            raise errors.Forbidden(GroupResource(res.group, res.plural), key.name, "not for you")


@asynccontextmanager
async def watching(kind: Kind, source: str = "auto") -> AsyncIterator[PlatformSources]:
    sources = PlatformSources(ReloadableSettings(PlatformSettings.model_validate({"platform": {"source": source}})))
    task = asyncio.create_task(PackageWatch(kind.cluster, sources).run())
    await asyncio.sleep(30)
    try:
        yield sources
    finally:
        task.cancel()
        await asyncio.wait([task])


@virtual
async def test_the_one_package_is_followed_and_others_are_not() -> None:
    kind = Kind()
    kind.cluster.add(PACKAGES, package("a.example"), package("other.example", "cozystack.other"))
    async with watching(kind) as sources:
        assert sources.current.publishing.host == "a.example"
        kind.cluster.add(PACKAGES, package("b.example"))
        await asyncio.sleep(0.1)
        assert sources.current.publishing.host == "b.example"


@virtual
async def test_a_kind_that_is_not_served_means_the_file_until_it_is_installed() -> None:
    kind = Kind()
    kind.served = False
    async with watching(kind) as sources:
        assert sources.known.is_set()
        kind.served = True
        kind.cluster.add(PACKAGES, package("a.example"))
        await asyncio.sleep(30)
        assert sources.current.publishing.host == "a.example"


@virtual
async def test_a_server_without_the_right_uses_the_file_until_it_gets_it() -> None:
    kind = Kind()
    kind.allowed = False
    kind.cluster.add(PACKAGES, package("a.example"))
    async with watching(kind) as sources:
        assert sources.known.is_set()
        assert sources.current.publishing.host is None
        kind.allowed = True
        await asyncio.sleep(30)
        assert sources.current.publishing.host == "a.example"


@virtual
async def test_a_refusal_of_a_kube_apiserver_that_starts_is_forgotten_once_it_serves_no_packages() -> None:
    kind = Kind()
    kind.served = False
    async with watching(kind) as sources:
        before = sources.describe()
        kind.served, kind.allowed = True, False
        await asyncio.sleep(30)
        assert sources.describe() != before
        kind.served = False
        await asyncio.sleep(30)
        assert sources.describe() == before


@virtual
async def test_with_source_file_the_cluster_is_not_asked() -> None:
    kind = Kind()
    async with watching(kind, "file"):
        assert kind.calls == 0
