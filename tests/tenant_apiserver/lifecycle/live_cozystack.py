"""An in-memory cluster on which cozystack-api serves the groups, as its chart installs it, and one of an operator's
commands on it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from apiserver.meta.resource import Object
from registry.cluster.interface import APISERVICES, APPLICATIONDEFINITIONS, NAMESPACES, UnexpectedAnswer
from tenant_apiserver.lifecycle.facts import GROUPS
from tenant_apiserver.lifecycle.kinds import CRDS, DEPLOYMENTS
from tests.fake_cluster import FakeCluster

PEER = {"namespace": "cozy-system", "name": "cozystack-api"}
HELM = {"meta.helm.sh/release-name": "cozystack-api", "meta.helm.sh/release-namespace": "cozy-system"}
INJECTED = {"cert-manager.io/inject-ca-from": "cozy-system/cozystack-api"}
AVAILABLE = {"conditions": [{"type": "Available", "status": "True", "message": "all checks passed"}]}
PEERS_KINDS = {
    "apps.cozystack.io": ["tenants", "postgreses"],
    "core.cozystack.io": ["tenantnamespaces"],
    "sdn.cozystack.io": ["securitygroups"],
}


@dataclass
class LiveCozystack(FakeCluster):
    """A cluster that tells its version and the kinds that are served. `add` and `peek` change and show it. Groups that
    nobody answers for are not in `served`. `forbidden` are the verbs that the operator may not use on APIServices."""

    version: str = "v1.34.2"
    served: dict[str, Sequence[str]] = field(default_factory=dict)
    forbidden: set[str] = field(default_factory=set)

    async def get_path(self, path: str) -> Object:
        assert path == "/version"
        return {"gitVersion": self.version}

    async def discover(self, api_version: str) -> Object:
        group = api_version.partition("/")[0]
        if group not in self.served:
            raise down()
        return {"resources": [{"name": name} for name in (*self.served[group], "tenants/status")]}

    async def review(self, path: str, body: Object) -> Object:
        assert path == "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"
        attributes = body["spec"]["resourceAttributes"]
        assert (attributes["group"], attributes["resource"]) == ("apiregistration.k8s.io", "apiservices")
        return {"status": {"allowed": attributes["verb"] not in self.forbidden}}


def down() -> UnexpectedAnswer:
    """The answer of kube-apiserver's aggregator for a server that is down."""
    error = UnexpectedAnswer()
    error.__cause__ = ValueError("the answer is 503 Service Unavailable: service unavailable")
    return error


def api_service(group: str, service: Object = PEER, **metadata: Any) -> Object:
    """As cert-manager and kube-apiserver have completed it."""
    spec = {
        "group": group,
        "version": "v1alpha1",
        "groupPriorityMinimum": 1000,
        "versionPriority": 15,
        "service": {**service, "port": 443},
        "caBundle": "cGVlcg==",
    }
    name = f"v1alpha1.{group}"
    shown = {"name": name, "annotations": {**HELM, **INJECTED}, **metadata}
    return {"metadata": shown, "spec": spec, "status": AVAILABLE}


def local(group: str) -> Object:
    """As kube-apiserver makes it for the group of a CustomResourceDefinition."""
    spec = {"group": group, "version": "v1alpha1", "groupPriorityMinimum": 1000, "versionPriority": 100}
    labels = {"kube-aggregator.kubernetes.io/automanaged": "true"}
    status = {
        "conditions": [{"type": "Available", "status": "True", "message": "Local APIServices are always available"}]
    }
    return {"metadata": {"name": f"v1alpha1.{group}", "labels": labels}, "spec": spec, "status": status}


def deployment(
    name: str, *arguments: str, namespace: str = "cozy-system", image: str = "x:1", **metadata: Any
) -> Object:
    container = {"name": name, "image": image, "args": list(arguments)}
    return {
        "metadata": {"name": name, "namespace": namespace, **metadata},
        "spec": {"replicas": 2, "template": {"spec": {"containers": [container]}}},
    }


def crd(name: str, *versions: str, **metadata: Any) -> Object:
    served = [{"name": each, "served": True, "storage": each == versions[-1]} for each in versions]
    return {"metadata": {"name": name, **metadata}, "spec": {"versions": served}}


def definition(kind: str, plural: str, **changes: Any) -> Object:
    application = {"kind": kind, "plural": plural, "singular": kind.lower(), "openAPISchema": "{}", **changes}
    release = {"prefix": f"{kind.lower()}-", "chartRef": {"kind": "ExternalArtifact", "name": kind.lower()}}
    return {"metadata": {"name": kind.lower()}, "spec": {"application": application, "release": release}}


def live_cozystack() -> LiveCozystack:
    cluster = LiveCozystack()
    cluster.served = dict(PEERS_KINDS)
    cluster.add(APISERVICES, *(api_service(group) for group in GROUPS))
    cluster.add(NAMESPACES, {"metadata": {"name": "cozy-system", "annotations": HELM}})
    cluster.add(APPLICATIONDEFINITIONS, definition("Postgres", "postgreses"))
    cluster.add(
        CRDS,
        crd("helmreleases.helm.toolkit.fluxcd.io", "v2", labels={"app.kubernetes.io/version": "v2.7.1"}),
        crd(
            "gateways.gateway.networking.k8s.io",
            "v1beta1",
            "v1",
            annotations={
                "gateway.networking.k8s.io/bundle-version": "v1.4.0",
                "gateway.networking.k8s.io/channel": "experimental",
            },
        ),
        crd("certificates.cert-manager.io", "v1"),
    )
    cluster.add(
        DEPLOYMENTS,
        deployment("cozystack-controller"),
        deployment("cert-manager", namespace="cozy-cert-manager", image="r/jetstack/cert-manager-controller:v1.19.1"),
    )
    return cluster
