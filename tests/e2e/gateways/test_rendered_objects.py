"""Every object that is rendered for a TenantGateway is one that the host takes, and leaves as it was meant."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from apiserver.meta.resource import Object
from controller.runtime.apply import merge_patch
from tests.e2e.support.clusters import E2eCluster

_GOLDEN = Path(__file__).parents[2] / "controller" / "golden" / "tenantgateway"
_COLLECTIONS = {
    "gateway": "gateway.networking.k8s.io/v1/gateways",
    "redirect": "gateway.networking.k8s.io/v1/httproutes",
    "issuer": "cert-manager.io/v1/issuers",
    "certificates": "cert-manager.io/v1/certificates",
}
_KINDS = {"gateways": "Gateway", "httproutes": "HTTPRoute", "issuers": "Issuer", "certificates": "Certificate"}
NAMESPACE = "rendered"


@pytest.mark.parametrize("file", sorted(_GOLDEN.glob("*.yaml")), ids=lambda file: file.stem)
def test_rendered_objects_are_admitted_and_need_no_second_write(cluster: E2eCluster, file: Path) -> None:
    """R-102, GW-20: the validation rules of the CRDs, and their defaults, are the host's own."""
    client = cluster.client()
    group_version, _, plural = _COLLECTIONS[file.stem.partition("-")[0]].rpartition("/")
    if client.get(f"/api/v1/namespaces/{NAMESPACE}").status == 404:
        namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}}
        client.request("POST", "/api/v1/namespaces", namespace).expect(201)
    rendered = yaml.safe_load(file.read_text())
    for each in rendered if isinstance(rendered, list) else [rendered]:
        desired = _without_owner(each, name=f"{file.stem}-{each['metadata']['name']}")
        collection = f"/apis/{group_version}/namespaces/{NAMESPACE}/{plural}"
        body = {"apiVersion": group_version, "kind": _KINDS[plural], **desired}
        client.request("POST", collection, body).expect(201)
        there = client.get(f"{collection}/{desired['metadata']['name']}").expect(200)
        assert merge_patch(there, desired) == {}


def _without_owner(rendered: Object, *, name: str) -> Object:
    """Under a name of the test's own; an owner that does not exist would have it collected."""
    metadata = {"name": name, "namespace": NAMESPACE, "labels": rendered["metadata"]["labels"]}
    return {**rendered, "metadata": metadata}
