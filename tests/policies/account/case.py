"""One write of our ServiceAccount, with the refusal that it must get from its limits, if any."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from apiserver.meta.resource import Object

ACCOUNT = "system:serviceaccount:cozy-system:tenant-apiserver"
TENANT, OTHER, HOME, ROOT = "tenant-limits", "limits-other", "cozy-system", "tenant-root"
CHILD = f"{TENANT}-child"
NAMESPACES = (TENANT, CHILD, OTHER, HOME, ROOT)
Content = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Kind:
    group: str
    version: str
    kind: str
    plural: str
    namespaced: bool = True

    @property
    def api_version(self) -> str:
        return f"{self.group}/{self.version}" if self.group else self.version


@dataclass(frozen=True, slots=True, kw_only=True)
class AccountCase:
    """Creates `new`, changes `old` to `new`, or deletes `old`. `refusal` is a part of the message.

    Cases with `in_process` run in the test process only: in a cluster, they would disturb others, or the garbage
    collector would delete an object whose owner does not exist.
    """

    id: str
    kind: Kind
    namespace: str
    name: str
    old: Object | None = None
    new: Object | None = None
    subresource: str = ""
    user: str = ACCOUNT
    refusal: str = ""
    in_process: bool = False

    @property
    def operation(self) -> str:
        return "DELETE" if self.new is None else "CREATE" if self.old is None else "UPDATE"


SECRETS = Kind("", "v1", "Secret", "secrets")
NAMESPACE_KIND = Kind("", "v1", "Namespace", "namespaces", namespaced=False)
CONFIGMAPS = Kind("", "v1", "ConfigMap", "configmaps")
SERVICEACCOUNTS = Kind("", "v1", "ServiceAccount", "serviceaccounts")
RESOURCEQUOTAS = Kind("", "v1", "ResourceQuota", "resourcequotas")
LIMITRANGES = Kind("", "v1", "LimitRange", "limitranges")
ROLES = Kind("rbac.authorization.k8s.io", "v1", "Role", "roles")
ROLEBINDINGS = Kind("rbac.authorization.k8s.io", "v1", "RoleBinding", "rolebindings")
NETWORKPOLICIES = Kind("networking.k8s.io", "v1", "NetworkPolicy", "networkpolicies")
CILIUM_POLICIES = Kind("cilium.io", "v2", "CiliumNetworkPolicy", "ciliumnetworkpolicies")
HELMRELEASES = Kind("helm.toolkit.fluxcd.io", "v2", "HelmRelease", "helmreleases")
TENANTGATEWAYS = Kind("gateway.cozystack.io", "v1alpha1", "TenantGateway", "tenantgateways")
GATEWAYS = Kind("gateway.networking.k8s.io", "v1", "Gateway", "gateways")
LISTENERSETS = Kind("gateway.networking.k8s.io", "v1", "ListenerSet", "listenersets")
HTTPROUTES = Kind("gateway.networking.k8s.io", "v1", "HTTPRoute", "httproutes")
GRPCROUTES = Kind("gateway.networking.k8s.io", "v1", "GRPCRoute", "grpcroutes")
TLSROUTES = Kind("gateway.networking.k8s.io", "v1", "TLSRoute", "tlsroutes")
ISSUERS = Kind("cert-manager.io", "v1", "Issuer", "issuers")
CERTIFICATES = Kind("cert-manager.io", "v1", "Certificate", "certificates")
EVENTS = Kind("events.k8s.io", "v1", "Event", "events")
LEASES = Kind("coordination.k8s.io", "v1", "Lease", "leases")
APISERVICES = Kind("apiregistration.k8s.io", "v1", "APIService", "apiservices", namespaced=False)


def case(kind: Kind, id: str, namespace: str, name: str, **fields: Any) -> AccountCase:
    return AccountCase(id=f"{kind.kind}: {id}", kind=kind, namespace=namespace, name=name, **fields)
