"""The places in which our ServiceAccount may write objects of a kind."""

from __future__ import annotations

from collections.abc import Sequence

from controller.publishing.routes.marks import PLATFORM_ROUTE_LABEL
from controller.publishing.services import PlatformService
from controller.tenantgateway.model import RouteKind
from registry.names import NAMESPACE_PREFIX
from tenant_apiserver.least_privilege.limits import has_tenantgateway_owner, is_flat_route
from tenant_apiserver.least_privilege.right import Place

_TENANTS = f"namespaces {NAMESPACE_PREFIX}*"


def in_tenants(condition: str = "", words: str = "") -> Place:
    """In namespaces of tenants, with a further condition."""
    expression = f"variables.namespaceName.startsWith('{NAMESPACE_PREFIX}')" + (f" && {condition}" if condition else "")
    return Place(expression=expression, words=f"{words} in {_TENANTS}".strip())


def named(*names: str) -> Place:
    if len(names) == 1:
        return in_tenants(f"variables.name == '{names[0]}'", names[0])
    return in_tenants(f"variables.name in {list(names)}", " or ".join(names))


def at_home(*names: str) -> Place:
    is_named = f"== '{names[0]}'" if len(names) == 1 else f"in {list(names)}"
    return Place(
        expression=f"variables.namespaceName == variables.home && variables.name {is_named}",
        words=f"{' or '.join(names)} in the account's own namespace",
    )


def platform_routes(services: Sequence[PlatformService]) -> Place:
    names = [f"{each.namespace}/{each.route}" for each in services]
    return Place(
        expression=f"(variables.namespaceName + '/' + variables.name) in {names} && "
        f"'{PLATFORM_ROUTE_LABEL}' in variables.target.metadata.?labels.orValue({{}})",
        words=f"{', '.join(names)}, with the label {PLATFORM_ROUTE_LABEL}",
    )


OWNED_BY_TENANTGATEWAY = Place(
    expression=has_tenantgateway_owner("variables.target"), words="objects that a TenantGateway owns"
)


def flat_routes(kind: RouteKind) -> Place:
    return Place(expression=is_flat_route("variables.target", kind), words="flat routes, which their root owns")
