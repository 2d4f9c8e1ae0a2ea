"""Cilium's kinds, for a cluster that has none of Cilium."""

from __future__ import annotations

from apiserver.meta.resource import Object

CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"


def crd(kind: str, plural: str, scope: str) -> Object:
    """A CustomResourceDefinition with the name of Cilium's, and without its validation."""
    schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    version = {"name": "v2", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
    names = {"kind": kind, "plural": plural, "singular": kind.lower()}
    spec = {"group": "cilium.io", "scope": scope, "names": names, "versions": [version]}
    head = {"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition"}
    return {**head, "metadata": {"name": f"{plural}.cilium.io"}, "spec": spec}


CILIUM_CRDS = (
    crd("CiliumNetworkPolicy", "ciliumnetworkpolicies", "Namespaced"),
    crd("CiliumClusterwideNetworkPolicy", "ciliumclusterwidenetworkpolicies", "Cluster"),
)
