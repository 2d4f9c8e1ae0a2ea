"""The kinds that the overlay names, compared with those that a real kube-apiserver has itself."""

from __future__ import annotations

from apiserver.meta.resource import GroupResource
from tenant_apiserver.options.proxy_settings import load_proxy_settings
from tests.e2e.support.clusters.kube import KubeCluster
from tests.e2e.support.clusters.processes import REPOSITORY

_ACCEPT = {"Accept": "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"}


def test_every_namespaced_kind_of_kubernetes_is_listed_in_all_namespaces(kube: KubeCluster) -> None:
    """A Role may give each of them: the lists would be refused for no reason."""
    client = kube.client()
    crds = client.get("/apis/apiextensions.k8s.io/v1/customresourcedefinitions").expect(200)["items"]
    added = {each["spec"]["group"] for each in crds}
    groups = [each for path in ("/api", "/apis") for each in client.get(path, headers=_ACCEPT).expect(200)["items"]]
    own = {
        GroupResource(group["metadata"].get("name", ""), resource["resource"])
        for group in groups
        if not group["metadata"].get("name", "").endswith("cozystack.io")
        for version in group["versions"]
        for resource in version["resources"]
        if resource["scope"] == "Namespaced" and "list" in resource["verbs"]
    }
    settings = load_proxy_settings(REPOSITORY / "manifests/overlays/proxy/config.yaml")
    assert GroupResource("resource.k8s.io", "resourceclaims") in own
    assert {each for each in own if each.group not in added} - {*settings.namespaced_kinds} == set()
