"""Fixtures of the tests of kubectl."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.e2e.support.clusters.cluster import E2eCluster


@pytest.fixture
def namespace(cluster: E2eCluster, unique: str) -> Iterator[str]:
    cluster.kubectl("create", "namespace", unique)
    yield unique
    cluster.kubectl("delete", "namespace", unique, "--wait=false")
