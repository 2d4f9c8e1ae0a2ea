"""TenantGateway as pydantic models, from which its CRD and the resource of the embedded cluster are generated."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from apiserver.meta.resource import Column, Object, Resource
from registry.cluster.interface import ClusterResource
from registry.structural_schema import structural_schema
from registry.tenant.types import Conditions

GROUP = "gateway.cozystack.io"
VERSION = "v1alpha1"
KIND = "TenantGateway"
TENANTGATEWAY_NAME = "cozystack"
"""Of the TenantGateway of a Tenant, and of its Gateway."""
TENANTGATEWAYS = ClusterResource(GROUP, VERSION, "tenantgateways", KIND)

_DNS_NAME = r"^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?(\.[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?)*$"
_OBJECT_NAME = r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$"
_NAMESPACE = r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$"


class _Model(BaseModel):
    model_config = ConfigDict(populate_by_name=True, extra="ignore", strict=True, frozen=True)


class SecretKeyRef(_Model):
    """A key of a Secret in the same namespace."""

    name: str = Field(description="Name of the Secret.", min_length=1, max_length=253, pattern=_OBJECT_NAME)
    key: str = Field(description="Key in the Secret.")


class SecretRef(_Model):
    """A Secret in the same namespace, or in one that consents by a ReferenceGrant."""

    name: str = Field(description="Name of the Secret.", min_length=1, max_length=253, pattern=_OBJECT_NAME)
    namespace: str | None = Field(
        None,
        description="Namespace of the Secret, by default the gateway's own. Another one needs a ReferenceGrant.",
        min_length=1,
        max_length=63,
        pattern=_NAMESPACE,
    )


class Cloudflare(_Model):
    """Cloudflare's DNS."""

    api_token_secret_ref: SecretKeyRef = Field(alias="apiTokenSecretRef", description="API token.")


class Route53(_Model):
    """Amazon Route 53."""

    region: str = Field(description="Region of the API.")
    access_key_id: str | None = Field(None, alias="accessKeyID", description="Access key.")
    secret_access_key_secret_ref: SecretKeyRef | None = Field(
        None, alias="secretAccessKeySecretRef", description="Secret access key."
    )


class DigitalOcean(_Model):
    """DigitalOcean's DNS."""

    token_secret_ref: SecretKeyRef = Field(alias="tokenSecretRef", description="API token.")


class RFC2136(_Model):
    """A name server that accepts dynamic updates."""

    nameserver: str = Field(description="Address of the name server, with a port if it is not 53.")
    tsig_key_name: str | None = Field(None, alias="tsigKeyName", description="Name of the TSIG key.")
    tsig_algorithm: str = Field("HMACSHA256", alias="tsigAlgorithm", description="Algorithm of the TSIG key.")
    tsig_secret_secret_ref: SecretKeyRef | None = Field(None, alias="tsigSecretSecretRef", description="The TSIG key.")


class DNS01(_Model):
    """The DNS provider for DNS-01 challenges."""

    provider: Literal["cloudflare", "route53", "digitalocean", "rfc2136"] = Field(
        "cloudflare", description="The DNS provider."
    )
    cloudflare: Cloudflare | None = Field(None, description="Settings of the provider cloudflare.")
    route53: Route53 | None = Field(None, description="Settings of the provider route53.")
    digitalocean: DigitalOcean | None = Field(None, description="Settings of the provider digitalocean.")
    rfc2136: RFC2136 | None = Field(None, description="Settings of the provider rfc2136.")


class TenantGatewaySpec(_Model):
    """The desired state of a tenant's gateway."""

    apex: str = Field(
        description="The domain that the gateway serves, including its subdomains.",
        min_length=1,
        max_length=253,
        pattern=_DNS_NAME,
    )
    cert_mode: Literal["http01", "dns01", "existingSecret"] = Field(
        "http01", alias="certMode", description="The source of the certificates."
    )
    issuer_name: str = Field(
        "letsencrypt-prod",
        alias="issuerName",
        description="The platform issuer whose settings the gateway's own Issuer copies.",
    )
    dns01: DNS01 | None = Field(None, description="The DNS provider for DNS-01 challenges, with certMode dns01.")
    wildcard_secret_ref: SecretRef | None = Field(
        None, alias="wildcardSecretRef", description="The wildcard certificate, with certMode existingSecret."
    )
    attached_namespaces: list[str] | None = Field(
        None,
        alias="attachedNamespaces",
        description="Namespaces whose routes may attach, in addition to the gateway's own.",
        json_schema_extra={"x-kubernetes-list-type": "set"},
    )
    tls_passthrough_services: list[str] | None = Field(
        None,
        alias="tlsPassthroughServices",
        description="Services below the apex that terminate TLS themselves.",
        json_schema_extra={"x-kubernetes-list-type": "set"},
    )
    gateway_class_name: str = Field("cilium", alias="gatewayClassName", description="GatewayClass of the Gateway.")


class ListenerStatus(_Model):
    """One listener of the Gateway."""

    name: str = Field(description="Name of the listener.")
    hostname: str | None = Field(None, description="The hostname that it serves.")
    listener_set: str | None = Field(None, alias="listenerSet", description="The ListenerSet that has it.")
    ready: bool | None = Field(None, description="True if its certificate exists.")
    certificate_name: str | None = Field(None, alias="certificateName", description="Its Certificate.")
    reason: str | None = Field(None, description="The reason why it is not ready.")


class DelegationCount(_Model):
    """The number of delegations in one state."""

    state: str = Field(description="Connected, or the reason why they are not served.")
    count: int = Field(description="Their number.", ge=0)


class DelegationProblem(_Model):
    """A part of a hostname that is delegated but not served."""

    route: str = Field(description="Name of the route that delegates, in the gateway's own namespace.")
    to: str = Field(description="Namespace and name of the route that it delegates to.")
    reason: str = Field(description="The reason why it is not served.")
    message: str | None = Field(None, description="The remedy.")


class DelegationsStatus(_Model):
    """The states of the parts of hostnames that routes delegate to routes of other namespaces."""

    states: (
        Annotated[
            list[DelegationCount],
            Field(json_schema_extra={"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["state"]}),
        ]
        | None
    ) = Field(None, description="The number of delegations in each state.")
    problems: list[DelegationProblem] | None = Field(
        None, description="At most 50 delegations that are not served, of routes in the gateway's own namespace."
    )


class TenantGatewayStatus(_Model):
    """The observed state of a tenant's gateway."""

    observed_generation: int | None = Field(
        None, alias="observedGeneration", description="The metadata.generation that this status is based on.", ge=0
    )
    conditions: Conditions | None = Field(None, description="The condition Ready, and the conditions it depends on.")
    listeners: (
        Annotated[
            list[ListenerStatus],
            Field(json_schema_extra={"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"]}),
        ]
        | None
    ) = Field(None, description="The listeners of the Gateway and of its ListenerSets, at most 1024.")
    listeners_total: int | None = Field(
        None, alias="listenersTotal", description="The number of listeners, if some are in ListenerSets.", ge=0
    )
    listeners_ready: int | None = Field(
        None, alias="listenersReady", description="The number of those that are ready.", ge=0
    )
    delegations: DelegationsStatus | None = Field(
        None, description="The states of the parts of hostnames that are delegated."
    )


# name, type, JSONPath, description
_COLUMNS = (
    ("Apex", "string", ".spec.apex", "The domain that the gateway serves."),
    ("Mode", "string", ".spec.certMode", "The source of the certificates."),
    ("Ready", "string", '.status.conditions[?(@.type=="Ready")].status', "Status of the condition Ready."),
)


def tenantgateway_resource() -> Resource:
    """The resource that the embedded cluster serves. Other clusters serve the CRD."""
    return Resource(
        group=GROUP,
        version=VERSION,
        kind=KIND,
        plural="tenantgateways",
        singular="tenantgateway",
        namespaced=True,
        short_names=("tgw",),
        description="TenantGateway describes a tenant's own Gateway with its listeners and certificates.",
        properties={"spec": structural_schema(TenantGatewaySpec), "status": structural_schema(TenantGatewayStatus)},
        columns=tuple(Column(name, type_, description=text) for name, type_, _, text in _COLUMNS),
        cells=_cells,
    )


def tenantgateway_crd() -> Object:
    """The CustomResourceDefinition of TenantGateway."""
    resource = tenantgateway_resource()
    columns: list[dict[str, Any]] = [
        {"name": name, "type": type_, "jsonPath": path, "description": text} for name, type_, path, text in _COLUMNS
    ]
    columns.append({"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"})
    schema = {
        "description": resource.description,
        "type": "object",
        "required": ["spec"],
        "properties": {
            "apiVersion": {"type": "string"},
            "kind": {"type": "string"},
            "metadata": {"type": "object"},
            **resource.properties,
        },
    }
    version = {
        "name": resource.version,
        "served": True,
        "storage": True,
        "schema": {"openAPIV3Schema": schema},
        "subresources": {"status": {}},
        "additionalPrinterColumns": columns,
    }
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{resource.plural}.{resource.group}"},
        "spec": {
            "group": resource.group,
            "scope": "Namespaced",
            "names": {
                "kind": resource.kind,
                "listKind": resource.list_kind,
                "plural": resource.plural,
                "singular": resource.singular,
                "shortNames": list(resource.short_names),
            },
            "versions": [version],
        },
    }


def _cells(obj: Object) -> Sequence[object]:
    spec = obj.get("spec") or {}
    conditions = (obj.get("status") or {}).get("conditions") or ()
    ready = [condition.get("status", "") for condition in conditions if condition.get("type") == "Ready"]
    return (spec.get("apex", ""), spec.get("certMode", ""), ready[0] if ready else "")
