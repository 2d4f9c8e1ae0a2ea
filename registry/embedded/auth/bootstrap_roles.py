"""The default ClusterRoles and bindings of Kubernetes that the embedded cluster needs, and those of Tenants."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from apiserver.authentication.authenticator import AUTHENTICATED, UNAUTHENTICATED
from apiserver.authorization.authorizer import MASTERS
from apiserver.meta.resource import Object
from registry.rbac import role_index as rbac
from registry.rbac.escalation import ALL_RULES
from registry.rbac.role_index import RbacRule, to_policy_rule
from registry.tenant.cluster_roles import TENANT_ROLES, TENANTS_VISIBLE, TENANTS_VISIBLE_RULES

AUTOUPDATE = "rbac.authorization.kubernetes.io/autoupdate"
_AGGREGATE = "rbac.authorization.k8s.io/aggregate-to-"

_READ = ("get", "list", "watch")
_WRITE = ("create", "update", "patch", "delete", "deletecollection")
_VIEWED = ("configmaps", "services", "serviceaccounts", "resourcequotas", "limitranges", "events", "namespaces")
_EDITED = ("configmaps", "secrets", "services", "serviceaccounts")
_PUBLIC = ("/healthz", "/livez", "/readyz", "/version", "/version/")
_DISCOVERY = (*_PUBLIC, "/api", "/api/*", "/apis", "/apis/*", "/openapi", "/openapi/*")


@dataclass(frozen=True, slots=True, kw_only=True)
class SystemRole:
    """`aggregate_to` names the role that receives this role's rules; `is_aggregated` means that this role receives the
    rules of others."""

    rules: Sequence[RbacRule] = ()
    aggregate_to: str = ""
    is_aggregated: bool = False


_ROLES: Mapping[str, SystemRole] = {
    "cluster-admin": SystemRole(rules=ALL_RULES),
    "system:discovery": SystemRole(rules=(RbacRule(verbs=("get",), paths=_DISCOVERY),)),
    "system:public-info-viewer": SystemRole(rules=(RbacRule(verbs=("get",), paths=_PUBLIC),)),
    "system:monitoring": SystemRole(
        rules=(
            RbacRule(
                verbs=("get",),
                paths=("/healthz", "/healthz/*", "/livez", "/livez/*", "/metrics", "/readyz", "/readyz/*"),
            ),
        )
    ),
    "system:basic-user": SystemRole(
        rules=(
            RbacRule(
                verbs=("create",),
                groups=("authorization.k8s.io",),
                resources=("selfsubjectaccessreviews", "selfsubjectrulesreviews"),
            ),
            RbacRule(verbs=("create",), groups=("authentication.k8s.io",), resources=("selfsubjectreviews",)),
        )
    ),
    "system:auth-delegator": SystemRole(
        rules=(
            RbacRule(verbs=("create",), groups=("authentication.k8s.io",), resources=("tokenreviews",)),
            RbacRule(verbs=("create",), groups=("authorization.k8s.io",), resources=("subjectaccessreviews",)),
        )
    ),
    "system:aggregate-to-view": SystemRole(
        rules=(RbacRule(verbs=_READ, groups=("",), resources=_VIEWED),), aggregate_to="view"
    ),
    "system:aggregate-to-edit": SystemRole(
        rules=(
            RbacRule(verbs=_READ, groups=("",), resources=("secrets",)),
            RbacRule(verbs=_WRITE, groups=("",), resources=_EDITED),
            RbacRule(verbs=("create",), groups=("",), resources=("serviceaccounts/token",)),
            RbacRule(verbs=("impersonate",), groups=("",), resources=("serviceaccounts",)),
            RbacRule(verbs=(*_READ, *_WRITE), groups=("coordination.k8s.io",), resources=("leases",)),
        ),
        aggregate_to="edit",
    ),
    "system:aggregate-to-admin": SystemRole(
        rules=(
            RbacRule(verbs=("create",), groups=("authorization.k8s.io",), resources=("localsubjectaccessreviews",)),
            RbacRule(verbs=(*_READ, *_WRITE), groups=(rbac.GROUP,), resources=("roles", "rolebindings")),
        ),
        aggregate_to="admin",
    ),
    "view": SystemRole(is_aggregated=True, aggregate_to="edit"),
    "edit": SystemRole(is_aggregated=True, aggregate_to="admin"),
    "admin": SystemRole(is_aggregated=True),
    **{name: SystemRole(rules=rules) for name, rules in TENANT_ROLES.items()},
    TENANTS_VISIBLE: SystemRole(rules=tuple(TENANTS_VISIBLE_RULES)),
}
# ClusterRole -> groups
_BINDINGS: Mapping[str, Sequence[str]] = {
    "cluster-admin": (MASTERS,),
    "system:discovery": (AUTHENTICATED,),
    "system:basic-user": (AUTHENTICATED,),
    "system:public-info-viewer": (AUTHENTICATED, UNAUTHENTICATED),
    "system:monitoring": ("system:monitoring",),
    TENANTS_VISIBLE: (AUTHENTICATED,),
}
AUTHENTICATION_CONFIGMAP = "extension-apiserver-authentication"
_AUTHENTICATION_READER = RbacRule(
    verbs=_READ, groups=("",), resources=("configmaps",), names=(AUTHENTICATION_CONFIGMAP,)
)


def cluster_roles() -> list[Object]:
    return [_cluster_role(name, role) for name, role in _ROLES.items()]


def cluster_role_bindings() -> list[Object]:
    return [_cluster_role_binding(name, groups) for name, groups in _BINDINGS.items()]


def roles() -> list[Object]:
    metadata = _metadata(f"{AUTHENTICATION_CONFIGMAP}-reader")
    metadata["namespace"] = "kube-system"
    return [{"metadata": metadata, "rules": [to_policy_rule(_AUTHENTICATION_READER)]}]


def _cluster_role(name: str, role: SystemRole) -> Object:
    metadata = _metadata(name)
    if role.aggregate_to:
        metadata["labels"][f"{_AGGREGATE}{role.aggregate_to}"] = "true"
    if not role.is_aggregated:
        return {"metadata": metadata, "rules": [to_policy_rule(rule) for rule in role.rules]}
    selectors = [{"matchLabels": {f"{_AGGREGATE}{name}": "true"}}]
    return {"metadata": metadata, "aggregationRule": {"clusterRoleSelectors": selectors}, "rules": []}


def _cluster_role_binding(name: str, groups: Sequence[str]) -> Object:
    return {
        "metadata": _metadata(name),
        "roleRef": {"apiGroup": rbac.GROUP, "kind": "ClusterRole", "name": name},
        "subjects": [{"kind": "Group", "apiGroup": rbac.GROUP, "name": group} for group in groups],
    }


def _metadata(name: str) -> Object:
    return {
        "name": name,
        "labels": {"kubernetes.io/bootstrapping": "rbac-defaults"},
        "annotations": {AUTOUPDATE: "true"},
    }
