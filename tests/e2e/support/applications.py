"""The kinds of Cozystack's ApplicationDefinitions on a cluster."""

from __future__ import annotations

from typing import Any

import pytest

from apiserver.meta.resource import Object
from tests.application_definitions.samples import definition, definition_names
from tests.e2e.support.clusters.cluster import GROUP_VERSION, ROOT, E2eCluster
from tests.e2e.support.clusters.control_plane import COZYSTACK_CRDS
from tests.e2e.support.clusters.kube import KubeCluster
from tests.e2e.support.http.https_client import Client

DEFINITIONS = "/apis/cozystack.io/v1alpha1/applicationdefinitions"
RELEASES = f"/apis/helm.toolkit.fluxcd.io/v2/namespaces/{ROOT}/helmreleases"
MERGE, APPLY = "application/merge-patch+json", "application/apply-patch+yaml"


class Applications:
    """Everything is created in the namespace of the root tenant."""

    def __init__(self, cluster: E2eCluster) -> None:
        self.cluster = cluster
        self.client: Client = cluster.client()
        self.stranger: Client = cluster.client("somebody-without-rights")

    def install(self) -> None:
        """Creates the definitions, and waits until their kinds are served."""
        if isinstance(self.cluster, KubeCluster):
            crd = self.cluster.crds / COZYSTACK_CRDS / "cozystack.io_applicationdefinitions.yaml"
            if not crd.is_file():
                pytest.skip(f"no {crd}: set TEST_CRD_DIR to a folder that also has the CRDs of Cozystack")
            self.cluster.kubectl("apply", "--server-side", f"--filename={crd}")
            self.cluster.wait_until_served(DEFINITIONS)
        for name in definition_names():
            self.put_definition(definition(name))
        for name in definition_names():
            self.cluster.wait_until_served(self.path(definition(name)["spec"]["application"]["plural"]))

    def remove(self) -> None:
        """Deletes the definitions, and waits until their kinds are no longer served.

        The aggregated discovery of a kube-apiserver may still list them for up to a minute.
        """
        for name in definition_names():
            self.client.request("DELETE", f"{DEFINITIONS}/{name}")
        for name in definition_names():
            if name != "tenant":
                self.wait_until_gone(definition(name)["spec"]["application"]["plural"])

    def wait_until_gone(self, plural: str) -> None:
        path = self.path(plural)
        self.cluster.wait_until(f"{path} is no longer served", lambda: self.client.get(path).status == 404)

    def put_definition(self, obj: Object) -> None:
        """Creates a definition, if it is not there yet."""
        response = self.client.request("POST", DEFINITIONS, obj)
        assert response.status in (201, 409), response.content

    def path(self, plural: str, name: str = "") -> str:
        base = f"{GROUP_VERSION}/namespaces/{ROOT}/{plural}"
        return f"{base}/{name}" if name else base

    def values(self, release: str) -> Any:
        """The values of a HelmRelease, None if it has none."""
        return self.client.get(f"{RELEASES}/{release}").expect(200)["spec"].get("values")
