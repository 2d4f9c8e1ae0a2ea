"""The cluster accepts every object rendered for a TenantGateway and changes none of its fields."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from apiserver.meta.resource import Object
from controller.runtime.apply import create_merge_patch
from tests.e2e.support.gateways import Gateways

_GOLDEN = Path(__file__).parents[2] / "controller" / "golden" / "tenantgateway"
_COLLECTIONS = {
    "gateway": "gateway.networking.k8s.io/v1/gateways",
    "listenerset": "gateway.networking.k8s.io/v1/listenersets",
    "flat": "gateway.networking.k8s.io/v1/httproutes",
    "redirect": "gateway.networking.k8s.io/v1/httproutes",
    "issuer": "cert-manager.io/v1/issuers",
    "certificates": "cert-manager.io/v1/certificates",
}
_KINDS = {
    "gateways": "Gateway",
    "listenersets": "ListenerSet",
    "httproutes": "HTTPRoute",
    "issuers": "Issuer",
    "certificates": "Certificate",
}


@pytest.mark.parametrize("file", sorted(_GOLDEN.glob("*.yaml")), ids=lambda file: file.stem)
def test_rendered_objects_are_admitted_and_need_no_second_write(gateways: Gateways, file: Path) -> None:
    """The cluster applies the validation rules and the defaults of the CRDs (R-102, GW-20)."""
    client, namespace = gateways.client, gateways.create_namespace("rendered")
    group_version, _, plural = _COLLECTIONS[file.stem.partition("-")[0]].rpartition("/")
    rendered = yaml.load(file.read_text(), Loader=yaml.CSafeLoader)
    for each in rendered if isinstance(rendered, list) else [rendered]:
        desired = _without_owner(each, namespace)
        collection = f"/apis/{group_version}/namespaces/{namespace}/{plural}"
        body = {"apiVersion": group_version, "kind": _KINDS[plural], **desired}
        client.request("POST", collection, body).expect(201)
        stored = client.get(f"{collection}/{desired['metadata']['name']}").expect(200)
        assert create_merge_patch(stored, desired) == {}


def _without_owner(rendered: Object, namespace: str) -> Object:
    """The object in another namespace, without the owner, which does not exist in this cluster."""
    labels = rendered["metadata"]["labels"]
    metadata = {"name": rendered["metadata"]["name"], "namespace": namespace, "labels": labels}
    return {**rendered, "metadata": metadata}
