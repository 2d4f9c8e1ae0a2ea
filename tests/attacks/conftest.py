"""Fixtures of the attacks: the clusters of tests/server_fixtures.py or the one named by the environment, and two users
of different tenants."""

from __future__ import annotations

import uuid
from collections.abc import Iterator

import pytest

from tests.attacks.support.proxied_replica import Replica, started_replica
from tests.attacks.support.two_tenants import TenantAdmin, create_tenant_admin
from tests.e2e.support.clusters.cluster import E2eCluster
from tests.e2e.support.tenants import Tenants


@pytest.fixture(scope="session")
def cluster(running_cluster: E2eCluster) -> E2eCluster:
    return running_cluster


@pytest.fixture
def alice(request: pytest.FixtureRequest, cluster: E2eCluster, tenants: Tenants, unique: str) -> TenantAdmin:
    """The attacker."""
    return _lasting(request, "alice") or create_tenant_admin(cluster, tenants, f"alice-{unique}")


@pytest.fixture
def bob(request: pytest.FixtureRequest, cluster: E2eCluster, tenants: Tenants, unique: str) -> TenantAdmin:
    """The victim: an administrator of another tenant than alice's."""
    return _lasting(request, "bob") or create_tenant_admin(cluster, tenants, f"bob-{unique}")


def _lasting(request: pytest.FixtureRequest, name: str) -> TenantAdmin | None:
    """The administrator that tests with the mark `lasting` share: a kube-apiserver has more work with a tenant that is
    created and deleted than with most attacks. These tests leave no other Tenant, and change only annotations and
    `etcd` of its child Tenant."""
    mark = request.node.get_closest_marker("lasting")
    if mark is None or name not in mark.args:
        return None
    found: TenantAdmin = request.getfixturevalue(f"lasting_{name}")
    return found


@pytest.fixture(scope="session")
def lasting_tenants(cluster: E2eCluster) -> Iterator[Tenants]:
    created = Tenants(cluster)
    yield created
    created.clean_up()


@pytest.fixture(scope="session")
def lasting_alice(cluster: E2eCluster, lasting_tenants: Tenants) -> TenantAdmin:
    return create_tenant_admin(cluster, lasting_tenants, f"alice-{uuid.uuid4().hex[:8]}")


@pytest.fixture(scope="session")
def lasting_bob(cluster: E2eCluster, lasting_tenants: Tenants) -> TenantAdmin:
    return create_tenant_admin(cluster, lasting_tenants, f"bob-{uuid.uuid4().hex[:8]}")


@pytest.fixture(scope="module")
def replica(cluster: E2eCluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Replica]:
    """A second server on the cluster whose requests to the cluster are recorded."""
    with started_replica(cluster, tmp_path_factory.mktemp("replica")) as running:
        yield running
