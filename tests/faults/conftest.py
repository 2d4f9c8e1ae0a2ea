"""Clusters of this folder's own: its tests do not always undo what they do to a cluster."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.support.clusters.cluster import E2eCluster
from tests.e2e.support.clusters.embedded import EmbeddedCluster
from tests.faults.support.sizes import size
from tests.server_fixtures import started_cluster

_HERE = f"{Path(__file__).parent}/"


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if str(item.path).startswith(_HERE):
            item.add_marker(pytest.mark.faults)
            item.add_marker(pytest.mark.timeout(size(short=300, full=3600)))


@pytest.fixture(scope="package")
def running_cluster(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[E2eCluster]:
    with started_cluster(request.param, tmp_path_factory) as running:
        yield running


@pytest.fixture(scope="package")
def cluster(running_cluster: E2eCluster) -> E2eCluster:
    return running_cluster


@pytest.fixture
def own(tmp_path: Path) -> Iterator[EmbeddedCluster]:
    """An embedded cluster of the test's own."""
    running = EmbeddedCluster(tmp_path)
    yield running
    assert running.stop() == 0, running.server.tail()
