"""Finds the bindings that let their subjects get a Tenant, from the RBAC objects of the cluster."""

from __future__ import annotations

from apiserver.authorization.authorizer import AccessAttributes
from apiserver.meta.resource import Object
from apiserver.request.context import User
from registry.cluster.interface import CLUSTERROLEBINDINGS, CLUSTERROLES, ROLEBINDINGS, ROLES, ClusterClient
from registry.explain.known import KnownReaders, KnownTenant, Reader, ReaderSubject
from registry.names import GROUP
from registry.rbac.role_index import (
    RbacBinding,
    RoleKey,
    make_role_key,
    parse_binding,
    parse_rules,
    split_key,
    split_subject,
)

_ANYBODY = User(name="")


async def read_readers(cluster: ClusterClient, tenant: KnownTenant, *, cluster_wide: bool) -> KnownReaders:
    """Those of the Tenant's parent namespace, and with `cluster_wide` those of the cluster. The lists are streamed, so
    that no more than the matching objects is kept."""
    key, roles = tenant.key, set[RoleKey]()
    access = AccessAttributes(
        user=_ANYBODY, verb="get", group=GROUP, resource="tenants", namespace=key.namespace, name=key.name
    )

    def visit_role(obj: Object) -> None:
        metadata = obj["metadata"]
        if any(rule.allows(access) for rule in parse_rules(obj.get("rules"))):
            roles.add(make_role_key(metadata.get("namespace") or "", metadata["name"]))

    found: list[Reader] = []

    def visit_binding(obj: Object) -> None:
        binding = parse_binding(obj)
        if binding is not None and binding.role in roles and binding.subjects:
            found.append(_reader(binding))

    await cluster.each_list_item(CLUSTERROLES, visit=visit_role)
    await cluster.each_list_item(ROLES, key.namespace, visit=visit_role)
    await cluster.each_list_item(ROLEBINDINGS, key.namespace, visit=visit_binding)
    if cluster_wide:
        await cluster.each_list_item(CLUSTERROLEBINDINGS, visit=visit_binding)
    ordered = sorted(found, key=lambda each: each.binding)
    return KnownReaders(tenant=tenant, readers=ordered, cluster_wide=cluster_wide)


def _reader(binding: RbacBinding) -> Reader:
    role = split_key(binding.role)
    kind = "Role" if role.namespace else "ClusterRole"
    subjects = [
        ReaderSubject("Group" if subject_kind == "Group" else "User", name)
        for subject_kind, name in map(split_subject, binding.subjects)
    ]
    return Reader(split_key(binding.key), f"{kind} {role.name}", subjects)
