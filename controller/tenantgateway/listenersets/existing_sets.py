"""The ListenerSets that a TenantGateway has, and where more of its listeners may go. Pure."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from apiserver.meta.resource import Object
from controller.runtime.conditions import find_condition
from controller.tenantgateway.parse import mapping, mappings, string

ListenerSetMode = Literal["auto", "always", "never"]
"""`auto` means where the GatewayClass supports them: a kind that is merely served may have no implementation."""

FEATURE = "ListenerSet"
"""The name of the feature in status.supportedFeatures of a GatewayClass."""


def _is_free(number: int) -> bool:
    return False


@dataclass(frozen=True, slots=True)
class ExistingSets:
    """The ListenerSets of a TenantGateway by their number. A set whose number `is_taken` belongs to another owner. Only
    if they `may_grow` do further hostnames go to them. They are `withheld` if only the settings forbid them."""

    owned: Mapping[int, Object] = field(default_factory=dict)
    is_taken: Callable[[int], bool] = _is_free
    may_grow: bool = False
    withheld: bool = False

    def homes(self) -> Mapping[str, int]:
        """The number of the set that serves a hostname."""
        return {
            string(listener, "hostname"): number
            for number in sorted(self.owned)
            for listener in self._listeners(number)
        }

    def served(self) -> frozenset[str]:
        """The hostnames of the sets that a controller has looked at."""
        return frozenset(hostname for hostname, number in self.homes().items() if self.is_attended(number))

    def is_attended(self, number: int) -> bool:
        """False for a set of whose acceptance nothing is said: a GatewayClass may name the feature though nothing
        implements it, as those of some versions of Cilium do (operator/pkg/gateway-api/gatewayclass_status.go)."""
        found = self.owned.get(number, {})
        accepted = find_condition(mapping(found.get("status")).get("conditions"), "Accepted") or {}
        return accepted.get("status") in ("True", "False")

    def by_name(self) -> Mapping[str, Object]:
        return {each["metadata"]["name"]: each for each in self.owned.values()}

    def _listeners(self, number: int) -> list[Mapping[str, Any]]:
        return [*mappings(mapping(self.owned[number].get("spec")).get("listeners"))]


NO_SETS = ExistingSets()


def remedy_for_truncation(*, withheld: bool) -> str:
    """How to get room for hostnames that do not fit on a Gateway."""
    sets = "set gateway.listenerSets of the settings to auto, " if withheld else ""
    return f"{sets}use certMode dns01, or give a tenant a gateway of its own"


def may_grow(mode: ListenerSetMode, gateway_class: Object | None) -> bool:
    """True if the Gateway's controller is said to implement ListenerSets."""
    if mode != "auto":
        return mode == "always"
    features = mapping((gateway_class or {}).get("status")).get("supportedFeatures")
    found = features if isinstance(features, list) else []
    # before v1.2 of Gateway API, a feature was a string
    return any((each if isinstance(each, str) else mapping(each).get("name")) == FEATURE for each in found)
