"""The objects that each step of an installation applies. A test compares them with what kustomize builds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import Enum
from typing import Final

from registry.cluster.interface import CONFIGMAPS
from registry.tenant.cluster_roles import TENANT_ROLES, TENANTS_VISIBLE
from tenant_apiserver.least_privilege.policies import policies
from tenant_apiserver.least_privilege.projection_rights import TENANTSECRETS_ROLE
from tenant_apiserver.least_privilege.proxy_rights import PROXY_ROLE, PROXY_ROLES
from tenant_apiserver.least_privilege.rights import INSTALLATION, OWN_ROLES, RIGHTS
from tenant_apiserver.lifecycle.kinds import PROXY, TargetObject, target
from tenant_apiserver.serve import API_SERVICES

NAMESPACE = "cozy-system"
SERVER = "tenant-apiserver"
SHADOW = "tenant-apiserver-shadow"
_AUTHENTICATION_NAMESPACE = "kube-system"
_FIVE_LAYERS = (
    "gateway-hostname-policy",
    "listenerset-hostname-policy",
    "namespace-host-label-policy",
    "route-hostname-policy",
    "route-hostname-policy-grpc",
    "route-hostname-policy-tls",
    "tenant-host-policy",
)


class OperatorStep(Enum):
    """A step that an operator is about to take."""

    SHADOW = "shadow"
    """Run a server that only reads beside the one that serves the group."""
    REPLACE = "replace"
    """Install the server on a live Cozystack, and move the APIServices of cozystack-api to it."""
    REGISTER = "register"
    """Install the server on a cluster where nobody serves the group, and create the APIServices."""
    PROXY = "proxy"
    """Run the proxy of native lists, which needs none of the others."""


def applied(step: OperatorStep) -> Sequence[TargetObject]:
    """Everything that is applied for the step, in the order of the pages."""
    return _APPLIED[step]


def _account(name: str, suffixes: Sequence[str]) -> Sequence[TargetObject]:
    return [
        target("ServiceAccount", name, NAMESPACE),
        target("RoleBinding", f"{name}:auth-reader", _AUTHENTICATION_NAMESPACE),
        *(target("ClusterRoleBinding", f"{name}{suffix}") for suffix in suffixes),
    ]


def _shadow() -> Sequence[TargetObject]:
    return [
        *_account(SHADOW, ("", ":auth-delegator")),
        target("ClusterRole", SHADOW),
        target("Deployment", SHADOW, NAMESPACE),
    ]


def _server() -> Sequence[TargetObject]:
    cluster_roles = [each for each in OWN_ROLES if not each.namespace]
    roles = [each for each in OWN_ROLES if each.namespace]
    suffixes = [each.name.removeprefix(SERVER) for each in cluster_roles]
    return [
        *_account(SERVER, (*suffixes, ":auth-delegator")),
        *(target("ClusterRole", each.name) for each in cluster_roles),
        *(target(kind, each.name, each.namespace) for kind in ("Role", "RoleBinding") for each in roles),
        target("Service", SERVER, NAMESPACE),
        target("Deployment", SERVER, NAMESPACE),
        target("PodDisruptionBudget", SERVER, NAMESPACE),
        *_policies(policies(RIGHTS, INSTALLATION)),
    ]


def _policies(names: Mapping[str, object] | Sequence[str]) -> Sequence[TargetObject]:
    kinds = ("ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding")
    return [target(kind, name) for name in names for kind in kinds]


def tenants_visible() -> Sequence[TargetObject]:
    """By these, all users may list Tenants. Only our server shows each of them no more than RBAC lets them get."""
    return [target(kind, TENANTS_VISIBLE) for kind in ("ClusterRole", "ClusterRoleBinding")]


def tenantsecrets_readable() -> Sequence[TargetObject]:
    """By these, which no step applies, our server may read Secrets."""
    return [target(kind, TENANTSECRETS_ROLE.name) for kind in ("ClusterRole", "ClusterRoleBinding")]


PROXY_SETTINGS: Final = TargetObject(CONFIGMAPS, PROXY, f"{PROXY}-<hash>")
"""The ConfigMap of the settings, whose name ends with a hash of them: kustomize's, so that no name stands for it."""


def _proxy() -> Sequence[TargetObject]:
    """Without PROXY_SETTINGS."""
    return [
        target("Namespace", PROXY),
        target("ServiceAccount", PROXY, PROXY),
        target("RoleBinding", f"{PROXY}-auth-reader", _AUTHENTICATION_NAMESPACE),
        target("ClusterRole", PROXY_ROLE.name),
        target("ClusterRoleBinding", PROXY_ROLE.name),
        target("ClusterRole", f"{SERVER}:namespace-view"),
        *(target(kind, PROXY, PROXY) for kind in ("Deployment", "PodDisruptionBudget", "Service", "NetworkPolicy")),
    ]


def proxy_objects() -> Sequence[TargetObject]:
    """Those of the overlay of the proxy, and of the overlays with more rights for it."""
    more = [each.name for each in PROXY_ROLES if each != PROXY_ROLE]
    return [*_proxy(), *(target(kind, name) for name in more for kind in ("ClusterRole", "ClusterRoleBinding"))]


def registered() -> Sequence[TargetObject]:
    return [target("APIService", each) for each in API_SERVICES]


_APPLIED: Mapping[OperatorStep, Sequence[TargetObject]] = {
    OperatorStep.SHADOW: _shadow(),
    OperatorStep.REPLACE: [*_server(), *registered()],
    OperatorStep.REGISTER: [
        target("Namespace", NAMESPACE),
        target("CustomResourceDefinition", "tenantgateways.gateway.cozystack.io"),
        *_server(),
        *tenants_visible(),
        *_policies([f"cozystack-{each}" for each in _FIVE_LAYERS]),
        *(target("ClusterRole", each) for each in TENANT_ROLES),
        *registered(),
    ],
    OperatorStep.PROXY: [*_proxy(), PROXY_SETTINGS],
}
