"""One proxy for the tests of a cluster."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.e2e.support.clusters.cluster import E2eCluster
from tests.e2e.support.clusters.tenant_proxy import TenantProxy


@pytest.fixture(scope="session")
def proxy(cluster: E2eCluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[TenantProxy]:
    running = TenantProxy(cluster, tmp_path_factory.mktemp("proxy"))
    yield running
    running.stop()
