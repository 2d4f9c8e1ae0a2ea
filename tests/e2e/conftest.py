"""Fixtures of the end-to-end tests, on the clusters of tests/server_fixtures.py."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.support.admission.webhook_server import WebhookServer
from tests.e2e.support.admission.webhooks import AdmittedResource, Webhooks, configmap_resource, tenant_resource
from tests.e2e.support.clusters.cluster import E2eCluster


@pytest.fixture(scope="session")
def cluster(running_cluster: E2eCluster) -> E2eCluster:
    return running_cluster


@pytest.fixture
def hook_server(tmp_path: Path) -> Iterator[WebhookServer]:
    """A webhook server in this process."""
    running = WebhookServer(tmp_path)
    yield running
    running.stop()


@pytest.fixture(params=[configmap_resource("default"), tenant_resource()], ids=lambda admitted: admitted.plural)
def admitted(request: pytest.FixtureRequest) -> AdmittedResource:
    """The resource that webhooks admit: a kube-apiserver calls them for ConfigMaps, our server for Tenants."""
    found: AdmittedResource = request.param
    return found


@pytest.fixture
def webhooks(cluster: E2eCluster, hook_server: WebhookServer, admitted: AdmittedResource) -> Webhooks:
    return Webhooks(cluster, hook_server, admitted)
