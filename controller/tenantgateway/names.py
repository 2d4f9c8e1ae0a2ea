"""Names and labels of the objects that a TenantGateway owns; other components rely on them. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping
from hashlib import sha256

from apiserver.meta.resource import Object
from controller.runtime.apply import ControllerOwner
from controller.tenantgateway.model import TenantGateway
from registry.names import MAX_LABEL_VALUE
from registry.tenantgateway.types import GROUP, KIND, VERSION

GATEWAY_API_GROUP = "gateway.networking.k8s.io"
CERT_MANAGER_GROUP = "cert-manager.io"

# controllerName of our entries in the status of routes.
CONTROLLER_NAME = "gateway.cozystack.io/tenantgateway-controller"

RESOLVED_REFS = "ResolvedRefs"
"""The condition of routes and listeners about their references; REF_NOT_PERMITTED is its reason without a grant."""
REF_NOT_PERMITTED = "RefNotPermitted"

OWNER_LABEL = "cozystack.io/gateway"
GATEWAY_MANAGED_BY_LABEL = "cozystack.io/managed-by"
MANAGED_BY = "cozystack-controller"
TENANTGATEWAY_LABEL = "cozystack.io/tenantgateway"
PER_LISTENER_LABEL = "cozystack.io/per-listener-cert"

LISTENER_SET = "ListenerSet"
_LISTENER_SET_NAME = re.compile(r"(.+)-([1-9][0-9]{0,8})")
VERTEX_LABEL = "gateway.cozystack.io/vertex"
"""Part of a hash of the route whose rules a flat route has. Every flat route has this label (delegation/)."""
VERTEX_NAMESPACE_LABEL = "gateway.cozystack.io/vertex-namespace"

PLATFORM_PREFIX = "cozy-"
HTTP_LISTENER = "http"
HTTP_PORT = 80
WILDCARD_LISTENER = "https"
APEX_LISTENER = "https-apex"
# The namespace that cert-manager is expected to run in.
CERT_MANAGER_NAMESPACE = "cozy-cert-manager"


def is_platform(namespace: str) -> bool:
    """True for namespaces whose routes win a contested hostname (R-199)."""
    return namespace.startswith(PLATFORM_PREFIX)


def listener_name(hostname: str) -> str:
    """`https-<first label>-<8 hex digits>` (R-110)."""
    return f"https-{_slug(hostname)}"


def child_listener_name(host: str) -> str:
    """`https-child-<first label>-<8 hex digits>` (R-115)."""
    return f"https-child-{_slug(host)}"


def passthrough_listener_name(service: str) -> str:
    """`tls-<service>` (R-118)."""
    return f"tls-{service}"


def certificate_name(tenantgateway: str, hostname: str) -> str:
    """The name of the Certificate of one hostname, and of its Secret (R-112, R-152)."""
    return f"{tenantgateway}-{_slug(hostname)}-tls"


def wildcard_certificate_name(tenantgateway: str) -> str:
    """The name of the Certificate of the DNS-01 mode, and of its Secret (R-159)."""
    return f"{tenantgateway}-gateway-tls"


def listener_set_name(tenantgateway: str, number: int) -> str:
    """The name of a ListenerSet."""
    return f"{tenantgateway}-{number}"


def split_listener_set(name: str) -> tuple[str, int] | None:
    """The TenantGateway and the number that the name of a ListenerSet consists of; None for other names."""
    found = _LISTENER_SET_NAME.fullmatch(name)
    return (found[1], int(found[2])) if found else None


def issuer_name(tenantgateway: str) -> str:
    """The name of the Issuer (R-141)."""
    return f"{tenantgateway}-gateway"


def account_secret_name(tenantgateway: str) -> str:
    """The name of the Secret with the key of the ACME account (R-142)."""
    return f"{tenantgateway}-acme-account"


def redirect_name(tenantgateway: str) -> str:
    """The name of the HTTPRoute that redirects to HTTPS (R-183)."""
    return f"{tenantgateway}-http-redirect"


def owner(gateway: TenantGateway) -> ControllerOwner:
    """The TenantGateway as the controller owner of its objects (R-103)."""
    return ControllerOwner(api_version=f"{GROUP}/{VERSION}", kind=KIND, name=gateway.key.name, uid=gateway.uid)


def metadata(gateway: TenantGateway, name: str, labels: Mapping[str, str]) -> Object:
    """The metadata of an object that the TenantGateway owns, in the TenantGateway's namespace."""
    return {
        "name": name,
        "namespace": gateway.key.namespace,
        "labels": dict(labels),
        "ownerReferences": [owner(gateway).reference()],
    }


def tenantgateway_labels(gateway: TenantGateway) -> dict[str, str]:
    return {TENANTGATEWAY_LABEL: _label_value(gateway.key.name), GATEWAY_MANAGED_BY_LABEL: MANAGED_BY}


def _label_value(name: str) -> str:
    """A name as a label value; one that is too long is truncated and made unique by a hash."""
    if len(name) <= MAX_LABEL_VALUE:
        return name
    return f"{name[: MAX_LABEL_VALUE - 9]}-{_hash(name)}"


def _slug(hostname: str) -> str:
    """The first label and 32 bits of a hash, because two hostnames may have the same first label (R-111)."""
    return f"{hostname.partition('.')[0]}-{_hash(hostname)}"


def _hash(text: str) -> str:
    return sha256(text.encode()).hexdigest()[:8]
