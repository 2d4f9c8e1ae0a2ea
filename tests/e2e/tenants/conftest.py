"""Fixtures of the tests of tenants."""

from __future__ import annotations

import pytest

from tests.e2e.support.clusters.cluster import E2eCluster
from tests.e2e.support.namespace_content import NamespaceContent
from tests.e2e.support.tenants import Tenants


@pytest.fixture
def content(cluster: E2eCluster, tenants: Tenants) -> NamespaceContent:
    return NamespaceContent(cluster, tenants)
