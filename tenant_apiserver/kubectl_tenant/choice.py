"""Chooses the Tenant that a question is asked of. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from apiserver.meta.resource import Key, Object

ASK_FOR_A_ROLE = (
    "ask an administrator for a Role such as cozy:tenant:view in the namespace of the tenant's parent, and check with"
)
CHECK_OF_A_ROLE = "kubectl auth can-i get tenants/NAME -n NAMESPACE"
_NO_TENANT = f"no tenant that you may see; {ASK_FOR_A_ROLE} {CHECK_OF_A_ROLE}"


class NoTenant(Exception):
    """No tenant that the user may see fits; the text says what to do."""


def tenant_named(tenants: Sequence[Object], name: str, namespace: str = "", *, preferred: str = "") -> Key:
    """The Tenant of this name in the `namespace`; without one in any, or of several that in the `preferred` namespace.
    Raises NoTenant."""
    check_name(tenants, name, namespace)
    found = [_key(each) for each in tenants if each["metadata"]["name"] == name]
    wanted = namespace or (preferred if len(found) > 1 else found[0].namespace)
    chosen = [each for each in found if each.namespace == wanted]
    if not chosen:
        places = ", ".join(sorted(each.namespace for each in found))
        raise NoTenant(f"there are several tenants {name}; choose one with -n: {places}")
    return chosen[0]


def check_name(tenants: Sequence[Object], name: str, namespace: str = "") -> None:
    """Raises NoTenant if a `name` is given that no Tenant has, in `namespace` if that is given."""
    named = [each["metadata"]["namespace"] for each in tenants if each["metadata"]["name"] == name]
    if name and (not named or namespace not in ("", *named)):
        if not tenants:
            raise NoTenant(_NO_TENANT)
        place = f" in namespace {namespace}" if namespace else ""
        raise NoTenant(f"no tenant {name} that you may see{place}; kubectl tenant tree -A shows them")


def check_namespace(tenants: Sequence[Object], namespace: str) -> None:
    """Raises NoTenant if a `namespace` is given that is not that of any Tenant, and that no Tenant is stored in."""
    known = {namespace for each in tenants for namespace in _namespaces(each)}
    if namespace and not tenants:
        raise NoTenant(_NO_TENANT)
    if namespace and namespace not in known:
        raise NoTenant(
            f"namespace {namespace} is of no tenant that you may see; kubectl tenant tree -A -o wide shows theirs"
        )


def _namespaces(tenant: Object) -> tuple[str, str]:
    """The namespace that it is stored in, and its own."""
    return tenant["metadata"]["namespace"], str((tenant.get("status") or {}).get("namespace") or "")


def tenant_of_namespace(tenants: Sequence[Object], namespace: str) -> Key:
    """The Tenant with this workload namespace, or else the top one of those in it, or of all. Raises NoTenant."""
    for each in tenants:
        if (each.get("status") or {}).get("namespace") == namespace:
            return _key(each)
    inside = [each for each in tenants if each["metadata"]["namespace"] == namespace]
    return _top(inside or tenants)


def tenant_of_host(tenants: Sequence[Object], host: str, namespace: str) -> Key:
    """The Tenant with the longest domain around the host, or else that of `namespace`: it says what is wrong. Raises
    NoTenant."""
    host = host.lower().removesuffix(".").removeprefix("*.")
    domains = [(str(((each.get("status") or {}).get("host") or {}).get("value") or ""), each) for each in tenants]
    around = [(domain, each) for domain, each in domains if domain and f".{host}".endswith(f".{domain}")]
    if around:
        return _key(max(around, key=lambda pair: len(pair[0]))[1])
    return tenant_of_namespace(tenants, namespace)


def _top(tenants: Sequence[Object]) -> Key:
    """The root, or else the first of those whose parent is not among them. Raises NoTenant."""
    if not tenants:
        raise NoTenant(_NO_TENANT)
    places = [_namespaces(each) for each in tenants]
    workloads = {workload for _, workload in places}
    roots = [each for each, (stored, workload) in zip(tenants, places, strict=True) if stored == workload]
    tops = [each for each, (stored, _) in zip(tenants, places, strict=True) if stored not in workloads]
    return min(map(_key, roots or tops or tenants))


def _key(tenant: Object) -> Key:
    return Key(tenant["metadata"]["namespace"], tenant["metadata"]["name"])
