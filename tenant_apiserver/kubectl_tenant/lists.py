"""The objects that the user may list, also where that is only possible namespace by namespace."""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass
from typing import NamedTuple

from apiserver.meta.resource import Key, Object
from registry.names import POOL_QUOTA_NAME
from tenant_apiserver.kubectl_tenant.requests import Kubectl, RequestFailed, tenant_path

_GATEWAY_API, _OURS = "/apis/gateway.networking.k8s.io", "/apis/gateway.cozystack.io/v1alpha1"
_CERTIFICATES = "/apis/cert-manager.io/v1"
_ROUTES = ("httproutes", "grpcroutes", "tlsroutes")
_VERSIONS = ("v1", "v1alpha3", "v1alpha2")
"""Of the kinds of routes, the best first: old releases of Gateway API have TLSRoutes in the latter two alone."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Listed:
    """Objects, and the namespaces in which the user may list them: None for all."""

    items: Sequence[Object] = ()
    namespaces: Set[str] | None = None

    def sees(self, namespace: str) -> bool:
        return self.namespaces is None or namespace in self.namespaces

    def by_key(self) -> Mapping[Key, Object]:
        return {Key(each["metadata"]["namespace"], each["metadata"]["name"]): each for each in self.items}


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
    return [
        route
        for kind, version in _served_routes(kubectl).items()
        for route in _everywhere(kubectl, f"{_GATEWAY_API}/{version}/{kind}", namespaces)[0]
    ]


def _served_routes(kubectl: Kubectl) -> Mapping[str, str]:
    """The best version of each kind of route that the cluster serves. A list of another version is refused to users
    with few rights before it is said to be missing, so discovery tells; without it, the current version is asked for.
    Raises RequestFailed."""
    found: dict[str, str] = {}
    try:
        group = kubectl.get(_GATEWAY_API)
        served = [each.get("version") for each in group.get("versions") or ()]
        for version in (each for each in _VERSIONS if each in served):
            if len(found) == len(_ROUTES):
                break
            names = {each.get("name") for each in kubectl.get(f"{_GATEWAY_API}/{version}").get("resources") or ()}
            found |= {kind: version for kind in _ROUTES if kind in names and kind not in found}
    except RequestFailed as failure:
        if failure.is_denied:
            return dict.fromkeys(_ROUTES, _VERSIONS[0])
        if not failure.is_missing:
            raise
    return {kind: found[kind] for kind in _ROUTES if kind in found}


class ListedGateways(NamedTuple):
    """TenantGateways, their Gateways and Certificates."""

    tenantgateways: Listed
    gateways: Listed
    certificates: Listed


def list_gateways(kubectl: Kubectl, namespaces: Sequence[str]) -> ListedGateways:
    """As `list_routes` lists routes. Raises RequestFailed."""
    kinds = f"{_OURS}/tenantgateways", f"{_GATEWAY_API}/v1/gateways", f"{_CERTIFICATES}/certificates"
    return ListedGateways(*(_listed(kubectl, each, namespaces) for each in kinds))


def gateway_namespace(tenant: Object) -> str:
    """The namespace of the Gateway that serves the Tenant, empty if there is none."""
    return str(((tenant.get("status") or {}).get("gateway") or {}).get("namespace") or "")


def workload_namespace(tenant: Object) -> str:
    """Empty before the controller has reported it."""
    return str((tenant.get("status") or {}).get("namespace") or "")


def _listed(kubectl: Kubectl, path: str, namespaces: Sequence[str]) -> Listed:
    """The objects that the user may list. A kind that the cluster does not serve is hidden from nobody."""
    try:
        return Listed(items=kubectl.items(path))
    except RequestFailed as failure:
        if failure.is_missing:
            return Listed()
        if not failure.is_denied:
            raise
    found, denied = _in_namespaces(kubectl, path, namespaces)
    return Listed(items=found, namespaces=frozenset(namespaces) - frozenset(denied))


def _everywhere(
    kubectl: Kubectl, path: str, namespaces: Sequence[str], query: Mapping[str, str] | None = None
) -> tuple[Sequence[Object], Sequence[str]]:
    """The objects of all namespaces, or where that is not allowed, those of `namespaces` that the user may list; and
    the namespaces in which the user may not, or that do not have the kind."""
    found = kubectl.readable_items(path, query)
    return (found, ()) if found is not None else _in_namespaces(kubectl, path, namespaces, query)


def _in_namespaces(
    kubectl: Kubectl, path: str, namespaces: Sequence[str], query: Mapping[str, str] | None = None
) -> tuple[Sequence[Object], Sequence[str]]:
    base, _, plural = path.rpartition("/")
    pages = {each: kubectl.readable_items(f"{base}/namespaces/{each}/{plural}", query) for each in namespaces if each}
    items = [item for page in pages.values() if page is not None for item in page]
    return items, [namespace for namespace, page in pages.items() if page is None]
