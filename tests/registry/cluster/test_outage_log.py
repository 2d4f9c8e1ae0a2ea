"""A restart of kube-apiserver is a line at its begin and one at its end, and not two for each kind."""

from __future__ import annotations

import asyncio
import logging
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from apiserver.meta.errors import StatusError
from apiserver.meta.resource import Key
from registry.cluster.informer import Informer
from registry.cluster.interface import (
    CONFIGMAPS,
    HELMRELEASES,
    NAMESPACES,
    SECRETS,
    SERVICES,
    ClusterResource,
    ClusterUnreachable,
)
from tests.fake_cluster import FakeCluster
from tests.virtual_time import virtual

KINDS = NAMESPACES, CONFIGMAPS, SECRETS, SERVICES, HELMRELEASES
BACK = "kube-apiserver answers again: 5 informers go on, or list what they missed"
AWAY = "the watch failed: kube-apiserver cannot be reached"


@asynccontextmanager
async def watching(cluster: FakeCluster) -> AsyncIterator[list[asyncio.Task[None]]]:
    tasks = [asyncio.create_task(Informer(cluster, each).run()) for each in KINDS]
    await asyncio.sleep(60)
    try:
        yield tasks
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.wait(tasks)


async def outage(cluster: FakeCluster, seconds: float = 30) -> None:
    cluster.unreachable = True
    await asyncio.sleep(seconds)
    cluster.unreachable = False
    await asyncio.sleep(60)


def logged(caplog: pytest.LogCaptureFixture, level: int = logging.INFO) -> list[str]:
    """Any kind may be the first of which an outage is noticed."""
    records = [each for each in caplog.records if each.levelno >= level and each.name.startswith("registry")]
    return [re.sub(rf"informer of \w+: {AWAY}", AWAY, each.getMessage()) for each in records]


@virtual
async def test_an_outage_is_logged_once_and_so_is_its_end(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    cluster = FakeCluster()
    async with watching(cluster):
        for _ in range(2):
            await outage(cluster)
    assert logged(caplog) == [AWAY, BACK] * 2
    assert logged(caplog, logging.WARNING) == [AWAY] * 2


@virtual
async def test_versions_that_are_gone_after_an_outage_are_no_news(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    cluster = FakeCluster()
    async with watching(cluster):
        cluster.unreachable = True
        await asyncio.sleep(30)
        cluster.add(SECRETS, {"metadata": {"name": "a", "namespace": "n"}})
        cluster.compact()
        cluster.unreachable = False
        await asyncio.sleep(60)
    assert len(logged(caplog)) == 2


@virtual
async def test_a_kind_that_is_refused_after_an_outage_is_logged_with_its_reason(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.INFO)
    refuses = False

    async def refuse(verb: str, res: ClusterResource, key: Key) -> None:
        if refuses and res == SECRETS and not cluster.unreachable:
            raise StatusError(403, "Forbidden", "secrets is forbidden")

    cluster = FakeCluster(before=refuse)
    async with watching(cluster):
        refuses = True
        await outage(cluster)
        assert logged(caplog)[1:] == [BACK, "informer of secrets: the watch failed: secrets is forbidden"]


@virtual
async def test_one_kind_that_stays_away_does_not_hide_a_later_outage(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)

    async def withhold(verb: str, res: ClusterResource, key: Key) -> None:
        if res == SECRETS:
            raise ClusterUnreachable

    cluster = FakeCluster(before=withhold)
    async with watching(cluster):
        await asyncio.sleep(400)
        assert logged(caplog) == [AWAY]
        await outage(cluster)
        assert logged(caplog)[1:] == [AWAY]


@virtual
async def test_an_informer_that_ends_during_an_outage_is_not_waited_for(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    cluster = FakeCluster()
    async with watching(cluster) as tasks:
        cluster.unreachable = True
        await asyncio.sleep(30)
        tasks[0].cancel()
        cluster.unreachable = False
        await asyncio.sleep(60)
        assert logged(caplog)[-1] == BACK
        cluster.unreachable = True
        await asyncio.sleep(1)
    assert logged(caplog)[2:] == [AWAY]
