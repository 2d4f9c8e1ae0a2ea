"""Fixtures of the attacks: the clusters of tests/server_fixtures.py or the one named by the environment, and two users
of different tenants."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.attacks.proxied_replica import Replica, started_replica
from tests.attacks.two_tenants import TenantAdmin, create_tenant_admin
from tests.e2e.support.clusters import E2eCluster
from tests.e2e.support.tenants import Tenants


@pytest.fixture(scope="session")
def cluster(running_cluster: E2eCluster) -> E2eCluster:
    return running_cluster


@pytest.fixture
def alice(cluster: E2eCluster, tenants: Tenants, unique: str) -> TenantAdmin:
    """The attacker."""
    return create_tenant_admin(cluster, tenants, f"alice-{unique}")


@pytest.fixture
def bob(cluster: E2eCluster, tenants: Tenants, unique: str) -> TenantAdmin:
    """The victim: an administrator of another tenant than alice's."""
    return create_tenant_admin(cluster, tenants, f"bob-{unique}")


@pytest.fixture(scope="module")
def replica(cluster: E2eCluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Replica]:
    """A second server on the cluster whose requests to the cluster are recorded."""
    with started_replica(cluster, tmp_path_factory.mktemp("replica")) as running:
        yield running
