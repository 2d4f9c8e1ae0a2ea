"""Fixtures: Cozystack's definitions on the cluster, and what the test creates of their kinds."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.e2e.support.applications import Applications
from tests.e2e.support.clusters.cluster import E2eCluster


@pytest.fixture(scope="package")
def applications(cluster: E2eCluster) -> Iterator[Applications]:
    """All kinds are served, until the tests of this folder are done."""
    found = Applications(cluster)
    found.install()
    yield found
    found.remove()
