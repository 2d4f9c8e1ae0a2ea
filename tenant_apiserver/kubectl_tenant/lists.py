"""The objects that the user may list, also where that is only possible namespace by namespace."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from apiserver.meta.resource import Object
from registry.names import POOL_QUOTA_NAME
from tenant_apiserver.kubectl_tenant.requests import Kubectl, tenant_path

_GATEWAY_API, _OURS = "/apis/gateway.networking.k8s.io/v1", "/apis/gateway.cozystack.io/v1alpha1"
_CERTIFICATES = "/apis/cert-manager.io/v1"
_ROUTES = ("httproutes", "grpcroutes", "tlsroutes")


class ListedQuotas(NamedTuple):
    """The ResourceQuotas of pools by namespace, and the namespaces in which the user may not list them."""

    found: Mapping[str, Object]
    denied: Sequence[str]


def list_tenants(kubectl: Kubectl) -> Sequence[Object]:
    """All Tenants that the user may see, or those of the context's namespace if only these may be listed. Raises
    RequestFailed."""
    found = kubectl.readable_items(tenant_path(""))
    return kubectl.items(tenant_path(kubectl.namespace())) if found is None else found


def list_quotas(kubectl: Kubectl, namespaces: Sequence[str]) -> ListedQuotas:
    """The ResourceQuotas of pools, everywhere, or else in the `namespaces` in which the user may list them. Raises
    RequestFailed."""
    if not namespaces:
        return ListedQuotas({}, ())
    selector = {"fieldSelector": f"metadata.name={POOL_QUOTA_NAME}"}
    found, denied = _everywhere(kubectl, "/api/v1/resourcequotas", namespaces, selector)
    return ListedQuotas({each["metadata"]["namespace"]: each for each in found}, denied)


def list_routes(kubectl: Kubectl, namespaces: Sequence[str]) -> Sequence[Object]:
    """The routes of all kinds, everywhere, or else in the `namespaces` in which the user may list them. Raises
    RequestFailed."""
    return [route for kind in _ROUTES for route in _everywhere(kubectl, f"{_GATEWAY_API}/{kind}", namespaces)[0]]


def list_gateways(kubectl: Kubectl, namespaces: Sequence[str]) -> tuple[Sequence[Object], Sequence[Object]]:
    """The TenantGateways and the Certificates, as `list_routes` lists routes. Raises RequestFailed."""
    gateways, _ = _everywhere(kubectl, f"{_OURS}/tenantgateways", namespaces)
    certificates, _ = _everywhere(kubectl, f"{_CERTIFICATES}/certificates", namespaces)
    return gateways, certificates


def workload_namespace(tenant: Object) -> str:
    """Empty before the controller has reported it."""
    return str((tenant.get("status") or {}).get("namespace") or "")


def _everywhere(
    kubectl: Kubectl, path: str, namespaces: Sequence[str], query: Mapping[str, str] | None = None
) -> tuple[Sequence[Object], Sequence[str]]:
    """The objects of all namespaces, or where that is not allowed, those of `namespaces` that the user may list; and
    the namespaces in which the user may not, or that do not have the kind."""
    found = kubectl.readable_items(path, query)
    if found is not None:
        return found, ()
    base, _, plural = path.rpartition("/")
    pages = {each: kubectl.readable_items(f"{base}/namespaces/{each}/{plural}", query) for each in namespaces if each}
    items = [item for page in pages.values() if page is not None for item in page]
    return items, [namespace for namespace, page in pages.items() if page is None]
