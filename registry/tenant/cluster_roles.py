"""The ClusterRoles cozy:tenant:* that a tenant's own people are bound to, in the tenant's namespace (R-020 to R-026).

None of them may write a Namespace, a Gateway or a route, a TenantGateway or a Package: the Tenant is the only place
where a tenant touches the platform.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from registry.names import GROUP
from registry.rbac.role_index import ALL, RbacRule

_READ = ("get", "list", "watch")
_WRITE = ("create", "update", "patch", "delete")
_CORE_GROUP = "core.cozystack.io"

_VIEW = (
    RbacRule(verbs=_READ, groups=(GROUP,), resources=(ALL,)),
    RbacRule(verbs=_READ, groups=(_CORE_GROUP,), resources=("tenantnamespaces", "tenantmodules")),
    RbacRule(
        verbs=_READ,
        groups=("",),
        resources=("pods", "services", "events", "persistentvolumeclaims", "resourcequotas", "limitranges"),
    ),
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
# an administrator of a tenant makes sub-tenants; only a super-administrator removes everything at once
_ADMIN = (*_USE, RbacRule(verbs=_WRITE, groups=(GROUP,), resources=(ALL,)))
_SUPER_ADMIN = (*_ADMIN, RbacRule(verbs=("deletecollection",), groups=(GROUP,), resources=(ALL,)))

TENANTS_VISIBLE = "cozy:tenants:visible"
"""The name of the ClusterRole, and of its binding to everybody who is known, that opens the door to lists and
watches; what is seen through it the filter decides. It never grants `get` of Tenants, which is what the filter asks
for."""
TENANTS_VISIBLE_RULES: Sequence[RbacRule] = (
    RbacRule(verbs=("list", "watch"), groups=(GROUP,), resources=("tenants",)),
    RbacRule(verbs=_READ, groups=(_CORE_GROUP,), resources=("tenantnamespaces",)),
)

TENANT_ROLES: Mapping[str, Sequence[RbacRule]] = {
    "cozy:tenant:view": _VIEW,
    "cozy:tenant:use": _USE,
    "cozy:tenant:admin": _ADMIN,
    "cozy:tenant:super-admin": _SUPER_ADMIN,
}
