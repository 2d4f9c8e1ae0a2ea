"""One proxy for the tests of a cluster."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.e2e.support.clusters.cluster import E2eCluster
from tests.e2e.support.clusters.tenant_proxy import TenantProxy


@pytest.fixture(scope="session")
def proxy(cluster: E2eCluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[TenantProxy]:
    directory = tmp_path_factory.mktemp("proxy")
    config = directory / "config.yaml"
    config.write_text("namespacedKinds: [configmaps, secrets, pods]\n")
    running = TenantProxy(cluster, directory, f"--config={config}")
    yield running
    running.stop()
