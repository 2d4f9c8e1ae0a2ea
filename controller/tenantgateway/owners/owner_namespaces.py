"""Decides in which namespaces TenantGateways are served. Pure.

In tenants' namespaces, policies bind Gateways and routes to the host of the namespace (layers 2 and 5). Elsewhere
nothing does, so that whoever may write a TenantGateway there could serve any domain: the operator has to name these
namespaces.
"""

from __future__ import annotations

from collections.abc import Collection

from controller.tenantgateway.hostname_validation import ORPHANED, HostnameRejection
from controller.tenantgateway.model import TenantGateway
from registry.names import NAMESPACE_PREFIX

OWNERS_SETTING = "gateway.ownerNamespaces"


def may_own_gateways(namespace: str, listed: Collection[str]) -> bool:
    """True for namespaces of tenants, and for those that the setting lists."""
    return namespace.startswith(NAMESPACE_PREFIX) or namespace in listed


def describe_refusal(gateway: TenantGateway, *, exists: bool) -> str:
    """The reason why a TenantGateway is not served. `exists` says that it has a Gateway from earlier."""
    namespace = gateway.key.namespace
    why = (
        f"TenantGateways of namespace {namespace} are not served, because it is no tenant's namespace: "
        f"add it to {OWNERS_SETTING} of the settings, or delete the TenantGateway"
    )
    return f"{why}; until then, what was created before stays as it is" if exists else why


def reject_routes(gateway: TenantGateway) -> HostnameRejection:
    """The verdict on every route that refers to the Gateway which a refused TenantGateway does not have."""
    key = gateway.key
    return HostnameRejection(
        ORPHANED, f"there is no Gateway {key.namespace}/{key.name}, because its namespace may own none"
    )
