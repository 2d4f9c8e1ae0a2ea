"""The command `diff`: what the controllers would change for a tenant, as it is or as a file would make it."""

from __future__ import annotations

from collections.abc import Sequence

from apiserver.meta.resource import Key, Object
from registry.names import GROUP, KIND, VERSION
from tenant_apiserver.kubectl_tenant.choice import NoTenant
from tenant_apiserver.kubectl_tenant.differences import as_sent, as_stored_before
from tenant_apiserver.kubectl_tenant.requests import Kubectl, RequestFailed, tenant_path


def planned_by_file(kubectl: Kubectl, file: str, name: str, namespace: str) -> tuple[Key, Object]:
    """The Tenant `name` that is meant, and the answer of `tenants/diff` for it as the file would make it. The server's
    dry run of `kubectl apply` comes first, so that what it refuses is told as by kubectl. Raises RequestFailed, and
    NoTenant."""
    tenant = _tenant_in(kubectl.applied(file, namespace), file, name)
    place = tenant["metadata"]["namespace"]
    stored = _stored(kubectl, place, name)
    body = {
        "apiVersion": f"{GROUP}/{VERSION}",
        "kind": "TenantDiff",
        "metadata": {"name": name, "namespace": place},
        "spec": {"tenant": as_sent(tenant) if stored is None else as_stored_before(tenant, stored)},
    }
    return Key(place, name), kubectl.post(tenant_path(place, name, "diff"), body)


def _stored(kubectl: Kubectl, namespace: str, name: str) -> Object | None:
    try:
        return kubectl.get(tenant_path(namespace, name))
    except RequestFailed as failure:
        if failure.is_missing:
            return None
        raise


def _tenant_in(applied: Object, file: str, name: str) -> Object:
    items: Sequence[Object] = applied.get("items") or [applied]
    found = [each for each in items if each.get("kind") == KIND and str(each.get("apiVersion")).startswith(f"{GROUP}/")]
    for each in found:
        if each["metadata"]["name"] == name:
            return each
    others = ", ".join(sorted(each["metadata"]["name"] for each in found)) or "none"
    raise NoTenant(f"{file} has no tenant {name}; the tenants in it: {others}")
