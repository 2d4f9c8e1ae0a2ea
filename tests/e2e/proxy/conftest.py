"""One proxy for the tests of a cluster."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.e2e.support.clusters.cluster import E2eCluster
from tests.e2e.support.clusters.tenant_proxy import TenantProxy

CONFIG = """
namespacedKinds: [configmaps, secrets, pods]
clusterKinds: [clusterroles.rbac.authorization.k8s.io, storageclasses.storage.k8s.io, nodes]
persistentVolumesByClaim: true
selectedKinds:
  - kind: clusterroles.rbac.authorization.k8s.io
    labelSelector: shown-to=tenants
    subjects: [{kind: Group, name: class-a}]
  - kind: nodes
    labelSelector: shown-to=tenants
    subjects: [{kind: Group, name: class-a}]
"""


@pytest.fixture(scope="session")
def proxy(cluster: E2eCluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[TenantProxy]:
    directory = tmp_path_factory.mktemp("proxy")
    config = directory / "config.yaml"
    config.write_text(CONFIG)
    running = TenantProxy(cluster, directory, f"--config={config}")
    yield running
    running.stop()
