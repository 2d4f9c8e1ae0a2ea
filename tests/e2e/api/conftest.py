"""A kube-apiserver to compare the embedded cluster with."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import pytest

from tests.e2e.support.clusters.processes import wait_until
from tests.e2e.support.http.https_client import Client
from tests.server_fixtures import control_plane_with_crds

SERVED = (
    *(f"/apis/gateway.networking.k8s.io/v1beta1/{plural}" for plural in ("gateways", "httproutes", "referencegrants")),
    "/apis/cert-manager.io/v1/certificates",
    "/apis/cert-manager.io/v1/issuers",
    "/apis/helm.toolkit.fluxcd.io/v2/helmreleases",
)


@pytest.fixture(scope="module")
def kube_apiserver(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Client]:
    """A kube-apiserver with the CRDs of Flux, Gateway API and cert-manager, without our server."""
    running = control_plane_with_crds(tmp_path_factory.mktemp("judge"), tmp_path_factory)
    try:
        client = Client(running.url, running.admin.tls, running.admin.headers)
        for path in SERVED:
            wait_until(f"{path} is served", partial(client.serves, path), seconds=120)
        yield client
    finally:
        running.stop()
