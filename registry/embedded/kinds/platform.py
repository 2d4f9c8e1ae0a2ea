"""The kinds of the platform: Flux, Gateway API, cert-manager, and TenantGateway.

Their schemas contain those defaults of the CRDs that a controller sees when it compares desired and stored objects.
"""

from __future__ import annotations

from dataclasses import replace

from apiserver.meta.resource import Column, Object, Schema, fields_at
from registry.embedded.kinds import schema_builders as schemas
from registry.embedded.kinds import table_cells as cells
from registry.embedded.kinds.kind import Kind
from registry.embedded.kinds.schema_builders import (
    ANYTHING,
    INTEGER,
    STRING,
    list_map,
    list_of,
    open_struct,
    with_default,
)
from registry.tenantgateway.types import tenantgateway_resource

_GATEWAY_GROUP = "gateway.networking.k8s.io"
_CERT_MANAGER = "cert-manager.io"

_READY = Column("Ready", description="Status of the condition Ready.")
_STATUS = Column("Status", description="Message of the condition Ready.")


def _pending(*types: str) -> Object:
    """Returns the status that Gateway API's CRDs set on a new object."""
    return {
        "conditions": [
            {
                "type": type_,
                "status": "Unknown",
                "reason": "Pending",
                "message": "Waiting for controller",
                "lastTransitionTime": "1970-01-01T00:00:00Z",
            }
            for type_ in types
        ]
    }


_HELMRELEASE = Kind(
    group="helm.toolkit.fluxcd.io",
    versions=("v2",),
    kind="HelmRelease",
    plural="helmreleases",
    short_names=("hr",),
    description="HelmRelease is a Helm chart with values, as Flux installs it.",
    status=True,
    initial_status={"observedGeneration": -1},
    generation=True,
    properties={"spec": open_struct({"values": ANYTHING, "interval": STRING}), "status": schemas.STATUS},
    columns=(_READY, _STATUS),
    cells=cells.helmrelease,
)

_ALLOWED_ROUTES = with_default(
    {"namespaces": {"from": "Same"}},
    open_struct({"namespaces": with_default({"from": "Same"}, open_struct({"from": with_default("Same")}))}),
)
_CERTIFICATE_REF = open_struct({"group": with_default(""), "kind": with_default("Secret"), "name": STRING})
_LISTENER = open_struct(
    {
        "name": STRING,
        "hostname": STRING,
        "port": INTEGER,
        "protocol": STRING,
        "allowedRoutes": _ALLOWED_ROUTES,
        "tls": open_struct(
            {
                "mode": with_default("Terminate"),
                "certificateRefs": list_of(_CERTIFICATE_REF, **{"x-kubernetes-list-type": "atomic"}),
            }
        ),
    },
    required=("name",),
)
_LISTENERS = list_map(_LISTENER, "name")
_LISTENER_STATUS = list_map(open_struct({"name": STRING, "conditions": schemas.CONDITIONS}, required=("name",)), "name")
_ATTACHED_STATUS = open_struct({"conditions": schemas.CONDITIONS, "listeners": _LISTENER_STATUS})

_GATEWAY_CLASS = Kind(
    group=_GATEWAY_GROUP,
    versions=("v1", "v1beta1"),
    kind="GatewayClass",
    plural="gatewayclasses",
    namespaced=False,
    short_names=("gc",),
    categories=("gateway-api",),
    description="GatewayClass names the controller that implements the Gateways of this class.",
    status=True,
    initial_status=_pending("Accepted"),
    generation=True,
    properties={"spec": ANYTHING, "status": schemas.STATUS},
    columns=(
        Column("Controller", description="The controller that implements it."),
        Column("Accepted", description="Status of the condition Accepted."),
        Column("Description", description="The description in its spec.", priority=1),
    ),
    cells=cells.gatewayclass,
)
_GATEWAY = Kind(
    group=_GATEWAY_GROUP,
    versions=("v1", "v1beta1"),
    kind="Gateway",
    plural="gateways",
    short_names=("gtw",),
    categories=("gateway-api",),
    description="Gateway is an entry point for traffic, with a listener for each port, protocol and hostname.",
    status=True,
    initial_status=_pending("Accepted", "Programmed"),
    generation=True,
    properties={"spec": open_struct({"gatewayClassName": STRING, "listeners": _LISTENERS}), "status": _ATTACHED_STATUS},
    columns=(
        Column("Class", description="Its GatewayClass."),
        Column("Address", description="The first address that it listens on."),
        Column("Programmed", description="Status of the condition Programmed."),
    ),
    cells=cells.gateway,
)
_LISTENER_SET = Kind(
    group=_GATEWAY_GROUP,
    kind="ListenerSet",
    plural="listenersets",
    short_names=("lset",),
    categories=("gateway-api",),
    description="ListenerSet adds listeners to a Gateway.",
    status=True,
    initial_status=_pending("Accepted", "Programmed"),
    generation=True,
    properties={
        "spec": open_struct(
            {
                "parentRef": open_struct({"group": with_default(_GATEWAY_GROUP), "kind": with_default("Gateway")}),
                "listeners": _LISTENERS,
            }
        ),
        "status": _ATTACHED_STATUS,
    },
    columns=(
        Column("Accepted", description="Whether the Gateway accepts it."),
        Column("Programmed", description="Whether it is ready for traffic."),
    ),
    cells=cells.listenerset,
)

_PARENTS = list_of(
    open_struct({"group": with_default(_GATEWAY_GROUP), "kind": with_default("Gateway"), "name": STRING}),
    **{"x-kubernetes-list-type": "atomic"},
)
_BACKENDS = list_of(
    open_struct({"group": with_default(""), "kind": with_default("Service"), "weight": with_default(1, INTEGER)}),
    **{"x-kubernetes-list-type": "atomic"},
)
_ROOT_PATH = {"type": "PathPrefix", "value": "/"}
_HTTP_MATCHES = with_default(
    [{"path": _ROOT_PATH}],
    list_of(
        open_struct(
            {
                "path": with_default(
                    _ROOT_PATH, open_struct({"type": with_default("PathPrefix"), "value": with_default("/")})
                )
            }
        ),
        **{"x-kubernetes-list-type": "atomic"},
    ),
)
_HTTP_RULES = with_default(
    [{"matches": [{"path": _ROOT_PATH}]}],
    list_of(open_struct({"matches": _HTTP_MATCHES, "backendRefs": _BACKENDS}), **{"x-kubernetes-list-type": "atomic"}),
)
_RULES = list_of(open_struct({"backendRefs": _BACKENDS}), **{"x-kubernetes-list-type": "atomic"})
_ROUTE_STATUS = open_struct(
    {"parents": list_of(open_struct({"conditions": schemas.CONDITIONS}), **{"x-kubernetes-list-type": "atomic"})}
)
_HOSTNAMES = Column("Hostnames", description="The hostnames whose requests it routes.")


def _route(kind: str, versions: tuple[str, ...], rules: Schema, description: str) -> Kind:
    return Kind(
        group=_GATEWAY_GROUP,
        versions=versions,
        kind=kind,
        plural=f"{kind.lower()}s",
        categories=("gateway-api",),
        description=description,
        status=True,
        generation=True,
        properties={
            "spec": open_struct({"parentRefs": _PARENTS, "hostnames": schemas.STRINGS, "rules": rules}),
            "status": _ROUTE_STATUS,
        },
        columns=(_HOSTNAMES,),
        cells=cells.hostnames,
    )


_TLS_ROUTE = replace(
    _route(
        "TLSRoute",
        ("v1", "v1alpha3", "v1alpha2"),
        _RULES,
        "TLSRoute forwards TLS connections to backends by their server name.",
    ),
    columns=(),
    cells=lambda obj: (),
)
_REFERENCE_GRANT = Kind(
    group=_GATEWAY_GROUP,
    versions=("v1", "v1beta1"),
    kind="ReferenceGrant",
    plural="referencegrants",
    short_names=("refgrant",),
    categories=("gateway-api",),
    description="ReferenceGrant permits objects of other namespaces to refer to objects of its own namespace.",
    generation=True,
    properties={"spec": ANYTHING},
)


def _issuer(kind: str, short_name: str, *, namespaced: bool) -> Kind:
    return Kind(
        group=_CERT_MANAGER,
        kind=kind,
        plural=f"{kind.lower()}s",
        namespaced=namespaced,
        short_names=(short_name,),
        categories=("cert-manager",),
        description=f"{kind} describes how certificates are signed.",
        status=True,
        generation=True,
        properties={"spec": ANYTHING, "status": schemas.STATUS},
        columns=(_READY, replace(_STATUS, priority=1)),
        cells=cells.issuer,
    )


_CERTIFICATE = Kind(
    group=_CERT_MANAGER,
    kind="Certificate",
    plural="certificates",
    short_names=("cert", "certs"),
    categories=("cert-manager",),
    description="Certificate requests a certificate, which is stored in a Secret and renewed in time.",
    status=True,
    generation=True,
    properties={"spec": ANYTHING, "status": schemas.STATUS},
    selectable_fields=fields_at("spec.issuerRef.group", "spec.issuerRef.kind", "spec.issuerRef.name"),
    columns=(
        _READY,
        Column("Secret", description="The Secret that contains the certificate and its key."),
        Column("Issuer", description="The issuer that signs it.", priority=1),
        replace(_STATUS, priority=1),
    ),
    cells=cells.certificate,
)


def _tenant_gateway() -> Kind:
    resource = tenantgateway_resource()
    return Kind(
        group=resource.group,
        versions=(resource.version,),
        kind=resource.kind,
        plural=resource.plural,
        short_names=resource.short_names,
        categories=resource.categories,
        description=resource.description,
        status=True,
        generation=True,
        required=("spec",),
        properties=resource.properties,
        columns=resource.columns,
        cells=resource.cells,
    )


_KINDS = (
    _HELMRELEASE,
    _tenant_gateway(),
    _GATEWAY_CLASS,
    _GATEWAY,
    _LISTENER_SET,
    _route("HTTPRoute", ("v1", "v1beta1"), _HTTP_RULES, "HTTPRoute forwards HTTP requests to backends."),
    _route("GRPCRoute", ("v1",), _RULES, "GRPCRoute forwards gRPC calls to backends."),
    _TLS_ROUTE,
    _REFERENCE_GRANT,
    _issuer("Issuer", "iss", namespaced=True),
    _issuer("ClusterIssuer", "ciss", namespaced=False),
    _CERTIFICATE,
)
PLATFORM_KINDS = tuple(replace(kind, custom=True) for kind in _KINDS)
