"""The ClusterRoles cozy:tenant and cozy:tenant:* that the people of a tenant and of its ancestors are bound to in its
namespace (R-020 to R-026).

None of them may write Namespaces, Gateways, routes, TenantGateways or Packages: people change the platform through
Tenants only. Nobody is bound to cozy:tenant:routes unless an administrator decides so.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from registry.names import GROUP
from registry.rbac.role_index import ALL, RbacRule

_READ = ("get", "list", "watch")
_WRITE = ("create", "update", "patch", "delete")
_CORE_GROUP = "core.cozystack.io"
_SDN_GROUP = "sdn.cozystack.io"

_EVERYONE = (
    RbacRule(verbs=_READ, groups=(_CORE_GROUP,), resources=("tenantnamespaces", "tenantmodules")),
    RbacRule(verbs=_READ, groups=("",), resources=("resourcequotas", "limitranges")),
)
_VIEW = (
    *_EVERYONE,
    RbacRule(verbs=_READ, groups=(GROUP,), resources=(ALL,)),
    RbacRule(verbs=_READ, groups=(_CORE_GROUP,), resources=("options",)),
    RbacRule(verbs=_READ, groups=(_SDN_GROUP,), resources=("securitygroups",)),
    # what `tenant-apiserver proxy` lists can also be read by name
    RbacRule(verbs=("get",), groups=("",), resources=("namespaces",)),
    RbacRule(verbs=_READ, groups=("",), resources=("pods", "services", "events", "persistentvolumeclaims")),
    RbacRule(verbs=_READ, groups=("events.k8s.io",), resources=("events",)),
    RbacRule(verbs=_READ, groups=("gateway.networking.k8s.io",), resources=("gateways", "httproutes", "tlsroutes")),
)
_USE = (
    *_VIEW,
    RbacRule(verbs=("get", "list"), groups=("",), resources=("pods/log",)),
    RbacRule(verbs=_READ, groups=(_CORE_GROUP,), resources=("tenantsecrets",)),
    RbacRule(
        verbs=("get", "update"),
        groups=("subresources.kubevirt.io",),
        resources=("virtualmachineinstances/console", "virtualmachineinstances/vnc"),
    ),
)
# an administrator creates sub-tenants; only a super-administrator may delete collections
_ADMIN = (
    *_USE,
    RbacRule(verbs=_WRITE, groups=(GROUP,), resources=(ALL,)),
    RbacRule(verbs=_WRITE, groups=(_SDN_GROUP,), resources=("securitygroups",)),
)
_SUPER_ADMIN = (*_ADMIN, RbacRule(verbs=("deletecollection",), groups=(GROUP,), resources=(ALL,)))

TENANTS_VISIBLE = "cozy:tenants:visible"
"""The name of the ClusterRole, and of its binding to all authenticated users, that allows lists and watches; their
results are limited by visibility. It must not grant `get`, which is the criterion of visibility. It covers all kinds of
the group, which come and go with ApplicationDefinitions: every storage of the group filters."""
TENANTS_VISIBLE_RULES: Sequence[RbacRule] = (
    RbacRule(verbs=("list", "watch"), groups=(GROUP,), resources=(ALL,)),
    RbacRule(verbs=_READ, groups=(_CORE_GROUP,), resources=("tenantnamespaces",)),
)

TENANT_LISTS = "cozy:tenants:lists"
"""The name of the ClusterRole that allows lists and watches of kinds in namespaces, across all namespaces. Our server
limits their results to what the user may `get`; cozystack-api does not, so nobody is bound to it by default."""
TENANT_LISTS_RULES: Sequence[RbacRule] = (
    RbacRule(verbs=("list", "watch"), groups=(_CORE_GROUP,), resources=("tenantmodules", "tenantsecrets")),
    RbacRule(verbs=("list", "watch"), groups=(_SDN_GROUP,), resources=("securitygroups",)),
)

TENANT_ROLES: Mapping[str, Sequence[RbacRule]] = {
    "cozy:tenant": _EVERYONE,
    "cozy:tenant:view": _VIEW,
    "cozy:tenant:use": _USE,
    "cozy:tenant:admin": _ADMIN,
    "cozy:tenant:super-admin": _SUPER_ADMIN,
}

TENANT_ROUTES = "cozy:tenant:routes"
"""The name of the ClusterRole by which people of a tenant publish routes of their own, and consent to delegation."""
TENANT_ROUTES_RULES: Sequence[RbacRule] = (
    RbacRule(
        verbs=(*_READ, *_WRITE),
        groups=("gateway.networking.k8s.io",),
        resources=("httproutes", "grpcroutes", "tlsroutes", "referencegrants"),
    ),
)
