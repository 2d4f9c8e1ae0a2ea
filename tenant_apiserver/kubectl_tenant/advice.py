"""An output that is empty says why, and what this user may do about it. Pure, but for questions about rights."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Protocol

from apiserver.meta.resource import Key, Object
from registry.names import GROUP, KIND, ROOT_NAMESPACE, VERSION, is_root
from tenant_apiserver.kubectl_tenant.choice import ASK_FOR_A_ROLE, CHECK_OF_A_ROLE

_GATEWAY_API = "gateway.networking.k8s.io"
_RBAC = "rbac.authorization.k8s.io"


class Rights(Protocol):
    def may(self, verb: str, group: str, resource: str, namespace: str) -> bool:
        """False also where the cluster does not tell."""


def no_tenants(rights: Rights, tenants: Sequence[Object], namespace: str) -> str:
    """There is nothing to show of `tenants`, all that the user may see, or of those in `namespace` if that is given."""
    place = namespace or ROOT_NAMESPACE
    said = f"No tenant that you may see is in namespace {namespace}." if tenants else "No tenant that you may see."
    if rights.may("create", GROUP, "tenants", place):
        return f"{said} Create one:\n  {_creation(place)}\n"
    if tenants:
        return f"{said}\n"
    return f"{said} {ASK_FOR_A_ROLE[0].upper()}{ASK_FOR_A_ROLE[1:]}\n  {CHECK_OF_A_ROLE}\n"


def no_quotas(rights: Rights, tenants: Sequence[Object]) -> str:
    """None of `tenants`, of which there is at least one, declares a quota."""
    subject = _example(tenants)
    said = (
        "None of the tenants that you may see declares a quota."
        if len(tenants) > 1
        else f"{subject.namespace}/{subject.name} declares no quota."
    )
    return said + _change(rights, subject, "resourceQuotas", {"requests.cpu": "4"})


def no_hosts(rights: Rights, tenants: Sequence[Object]) -> str:
    """No route of `tenants`, of which there is at least one, has a hostname, as far as the user may see."""
    said = "No route with a hostname that you may see."
    served = [each for each in tenants if _gateway(each)]
    subject = _example(served or tenants)
    if not served:
        owner = f"{subject.namespace}/{subject.name}" if len(tenants) == 1 else "any of the tenants"
        return f"{said} No Gateway serves {owner}." + _change(rights, subject, "gateway", True)
    namespace = next(_namespace(each) for each in served if _key(each) == subject)
    if not rights.may("list", _GATEWAY_API, "httproutes", namespace):
        return (
            f"{said} You may not list httproutes in {namespace}: ask an administrator for a Role that has this right, "
            "such as cozy:tenant:view.\n"
        )
    if not rights.may("create", _GATEWAY_API, "httproutes", namespace):
        return f"{said} You may not create any in {namespace}: an administrator can allow that by cozy:tenant:routes.\n"
    return f"{said} Create an HTTPRoute in {namespace}, with a hostname of that tenant.\n"


def no_differences(tenant: Key) -> str:
    """A plan without a change; it is no advice, but a diff without a word looks like one that has not run."""
    return f"Nothing differs: the controllers would change nothing for tenant {tenant.namespace}/{tenant.name}.\n"


def no_readers(rights: Rights, tenant: Key) -> str:
    """No binding lets anybody get the tenant."""
    said = "No binding that you may see lets anybody get the tenant."
    if not rights.may("create", _RBAC, "rolebindings", tenant.namespace):
        return f"{said}\n"
    return (
        f"{said} Bind somebody with\n"
        f"  kubectl create rolebinding NAME -n {tenant.namespace} --clusterrole=cozy:tenant:view --group=GROUP\n"
    )


def _change(rights: Rights, tenant: Key, field: str, value: object) -> str:
    if not rights.may("patch", GROUP, "tenants", tenant.namespace):
        return f" An administrator of namespace {tenant.namespace} can set spec.{field}.\n"
    patch = json.dumps({"spec": {field: value}}, separators=(",", ":"))
    return (
        f" Set spec.{field}, such as\n"
        f"  kubectl patch tenant {tenant.name} -n {tenant.namespace} --type merge -p '{patch}'\n"
    )


def _creation(namespace: str) -> str:
    tenant = {"apiVersion": f"{GROUP}/{VERSION}", "kind": KIND, "metadata": {"name": "NAME", "namespace": namespace}}
    return f"echo '{json.dumps(tenant)}' | kubectl create -f -"


def _example(tenants: Sequence[Object]) -> Key:
    """The tenant that is nearest to the root and not the root itself, if there is one."""

    def distance(tenant: Key) -> tuple[bool, bool, int, Key]:
        depth = tenant.namespace.count("-")
        return is_root(*tenant), tenant.namespace != ROOT_NAMESPACE, depth, tenant

    return min(map(_key, tenants), key=distance)


def _key(tenant: Object) -> Key:
    return Key(tenant["metadata"]["namespace"], tenant["metadata"]["name"])


def _gateway(tenant: Object) -> str:
    """The namespace of the Gateway that serves the tenant; empty without one."""
    return str(((tenant.get("status") or {}).get("gateway") or {}).get("namespace") or "")


def _namespace(tenant: Object) -> str:
    return str((tenant.get("status") or {}).get("namespace") or "")
