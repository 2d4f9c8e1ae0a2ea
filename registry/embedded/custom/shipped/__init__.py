"""The definitions of other projects' kinds that every embedded cluster has: structure, bounds, defaults and rules.

`tenant_apiserver/generate_crd_schemas.py` makes the JSON files from the projects' CRDs, whose versions they name. The
descriptions of the kinds are our own.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib.resources import files

import orjson

from apiserver.meta.resource import Object
from registry.embedded.custom.compact import expand

_DESCRIPTIONS: Mapping[str, str] = {
    "applicationdefinitions.cozystack.io": "ApplicationDefinition describes a kind of application: its name, the "
    "schema of its values, and the chart that Flux installs.",
    "certificates.cert-manager.io": "Certificate requests a certificate, which is stored in a Secret and renewed in "
    "time.",
    "clusterissuers.cert-manager.io": "ClusterIssuer describes how certificates are signed.",
    "gatewayclasses.gateway.networking.k8s.io": "GatewayClass names the controller that implements the Gateways of "
    "this class.",
    "gateways.gateway.networking.k8s.io": "Gateway is an entry point for traffic, with a listener for each port, "
    "protocol and hostname.",
    "grpcroutes.gateway.networking.k8s.io": "GRPCRoute forwards gRPC calls to backends.",
    "helmreleases.helm.toolkit.fluxcd.io": "HelmRelease is a Helm chart with values, as Flux installs it.",
    "httproutes.gateway.networking.k8s.io": "HTTPRoute forwards HTTP requests to backends.",
    "issuers.cert-manager.io": "Issuer describes how certificates are signed.",
    "listenersets.gateway.networking.k8s.io": "ListenerSet adds listeners to a Gateway.",
    "referencegrants.gateway.networking.k8s.io": "ReferenceGrant permits objects of other namespaces to refer to "
    "objects of its own namespace.",
    "tlsroutes.gateway.networking.k8s.io": "TLSRoute forwards TLS connections to backends by their server name.",
    "workloadmonitors.cozystack.io": "WorkloadMonitor counts the pods of an application that are ready.",
    "workloads.cozystack.io": "Workload is a pod, volume or Service that a WorkloadMonitor counts.",
}
NAMES = frozenset(_DESCRIPTIONS)


def definitions() -> Sequence[Object]:
    """Returns the CustomResourceDefinitions, which must not be changed."""
    documents = sorted((path for path in files(__name__).iterdir() if path.name.endswith(".json")), key=str)
    found = [each for path in documents for each in expand(orjson.loads(path.read_bytes()))]
    return [_described(each) for each in found]


def _described(definition: Object) -> Object:
    text = _DESCRIPTIONS[definition["metadata"]["name"]]
    versions = []
    for version in definition["spec"]["versions"]:
        schema = {"description": text, **version["schema"]["openAPIV3Schema"]}
        versions.append({**version, "schema": {"openAPIV3Schema": schema}})
    return {**definition, "spec": {**definition["spec"], "versions": versions}}
