"""Names and labels of what is made from a TenantGateway, as other components spell them. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from hashlib import sha256

from apiserver.meta.resource import Object
from controller.runtime.apply import ControllerOwner
from controller.tenantgateway.model import TenantGateway
from registry.names import MAX_LABEL_VALUE
from registry.tenantgateway.types import GROUP, KIND, VERSION

GATEWAY_API_GROUP = "gateway.networking.k8s.io"
CERT_MANAGER_GROUP = "cert-manager.io"

# What this controller signs the status of routes with.
CONTROLLER_NAME = "gateway.cozystack.io/tenantgateway-controller"

OWNER_LABEL = "cozystack.io/gateway"
MANAGED_BY_LABEL = "cozystack.io/managed-by"
MANAGED_BY = "cozystack-controller"
TENANTGATEWAY_LABEL = "cozystack.io/tenantgateway"
PER_LISTENER_LABEL = "cozystack.io/per-listener-cert"

HTTP_LISTENER = "http"
HTTP_PORT = 80
WILDCARD_LISTENER = "https"
APEX_LISTENER = "https-apex"
# Where cert-manager is expected to run.
CERT_MANAGER_NAMESPACE = "cozy-cert-manager"


def listener_name(hostname: str) -> str:
    """R-110: `https-<first label>-<8 hex>`."""
    return f"https-{_slug(hostname)}"


def child_listener_name(host: str) -> str:
    """R-115."""
    return f"https-child-{_slug(host)}"


def passthrough_listener_name(service: str) -> str:
    """R-118."""
    return f"tls-{service}"


def certificate_name(tenantgateway: str, hostname: str) -> str:
    """R-112, R-152: of the Certificate of one hostname, and of its Secret."""
    return f"{tenantgateway}-{_slug(hostname)}-tls"


def wildcard_certificate_name(tenantgateway: str) -> str:
    """R-159: of the Certificate, and of its Secret."""
    return f"{tenantgateway}-gateway-tls"


def issuer_name(tenantgateway: str) -> str:
    """R-141."""
    return f"{tenantgateway}-gateway"


def account_secret_name(tenantgateway: str) -> str:
    """R-142."""
    return f"{tenantgateway}-acme-account"


def redirect_name(tenantgateway: str) -> str:
    """R-183."""
    return f"{tenantgateway}-http-redirect"


def owner(gateway: TenantGateway) -> ControllerOwner:
    """The TenantGateway as the owner of what is made from it (R-103)."""
    return ControllerOwner(api_version=f"{GROUP}/{VERSION}", kind=KIND, name=gateway.key.name, uid=gateway.uid)


def metadata(gateway: TenantGateway, name: str, labels: Mapping[str, str]) -> Object:
    """Of an object that is made from the TenantGateway, in its namespace."""
    return {
        "name": name,
        "namespace": gateway.key.namespace,
        "labels": dict(labels),
        "ownerReferences": [owner(gateway).reference()],
    }


def tenantgateway_labels(gateway: TenantGateway) -> dict[str, str]:
    return {TENANTGATEWAY_LABEL: _label_value(gateway.key.name), MANAGED_BY_LABEL: MANAGED_BY}


def _label_value(name: str) -> str:
    """A name as a label holds it: a long one is cut and told apart by its hash."""
    if len(name) <= MAX_LABEL_VALUE:
        return name
    return f"{name[: MAX_LABEL_VALUE - 9]}-{_hash(name)}"


def _slug(hostname: str) -> str:
    """The first label and the first 32 bits of the hash, since two hostnames may share a first label (R-111)."""
    return f"{hostname.partition('.')[0]}-{_hash(hostname)}"


def _hash(text: str) -> str:
    return sha256(text.encode()).hexdigest()[:8]
