"""Index of the places of listeners as they are now: on the Gateway itself, or on one of its ListenerSets."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import NamedTuple

from apiserver.meta.resource import Key, Object
from controller.tenantgateway.index import TenantGatewayIndex
from controller.tenantgateway.listeners import HTTPS_PORT
from controller.tenantgateway.listenersets.place_of_hostname import GATEWAY_ITSELF, place_of
from controller.tenantgateway.names import split_listener_set
from controller.tenantgateway.parse import mapping, mappings, string
from registry.cluster.event_handlers import ProjectionStore
from registry.cluster.interface import is_terminating

PlaceListener = Callable[[Key, frozenset[str]], None]
"""Called with a Gateway and the hostnames whose listeners came to, or went from, it or one of its ListenerSets."""


class _Listeners(NamedTuple):
    """The hostnames of the listeners on port 443 of an object, and the uids of its owners."""

    hostnames: frozenset[str]
    owners: frozenset[str]


class ListenerPlaces:
    """The places of all hostnames, by Gateway. A ListenerSet counts if the TenantGateway owns it."""

    def __init__(self, *, tenantgateways: TenantGatewayIndex, on_change: PlaceListener) -> None:
        self._tenantgateways = tenantgateways
        self._on_change = on_change
        self._sets: dict[Key, dict[str, _Listeners]] = {}
        # by Gateway, with the owner that the sets were merged for
        self._merged: dict[Key, tuple[str, Mapping[str, str]]] = {}
        self.gateways = ProjectionStore[_Listeners](project=_listeners, on_change=self._on_gateway)
        self.listener_sets = ProjectionStore[_Listeners](project=_listeners, on_change=self._on_set)

    def of(self, gateway: Key, hostnames: Iterable[str]) -> tuple[str, ...]:
        """The objects that listeners of the hostnames are on, each once: names of ListenerSets, and GATEWAY_ITSELF,
        which comes first. It is the only one if there are none."""
        if gateway not in self._sets:
            return (GATEWAY_ITSELF,)
        parsed = self._tenantgateways.parsed(gateway)
        owner = parsed.gateway.uid if parsed is not None else ""
        merged_for, places = self._merged.get(gateway, ("", {}))
        if not places or merged_for != owner:
            places = self._merge(gateway, owner)
            self._merged[gateway] = owner, places
        found = {place for each in hostnames if (place := place_of(each, places)) is not None}
        return tuple(sorted(found, key=_order)) or (GATEWAY_ITSELF,)

    def _merge(self, gateway: Key, owner: str) -> Mapping[str, str]:
        own = self.gateways.get(gateway)
        of_sets = {
            hostname: name
            for name, each in sorted(self._sets[gateway].items())
            if owner in each.owners
            for hostname in each.hostnames
        }
        return of_sets | dict.fromkeys(own.hostnames if own is not None else (), GATEWAY_ITSELF)

    def _on_gateway(self, key: Key, before: _Listeners | None, now: _Listeners | None) -> None:
        if key in self._sets:
            self._notify(key, before, now)

    def _on_set(self, key: Key, before: _Listeners | None, now: _Listeners | None) -> None:
        split = split_listener_set(key.name)
        if split is None:
            return
        gateway = Key(key.namespace, split[0])
        sets = self._sets.setdefault(gateway, {})
        if now is not None:
            sets[key.name] = now
        else:
            sets.pop(key.name, None)
        if not sets:
            del self._sets[gateway]
        self._notify(gateway, before, now)

    def _notify(self, gateway: Key, before: _Listeners | None, now: _Listeners | None) -> None:
        self._merged.pop(gateway, None)
        old, new = (each.hostnames if each is not None else frozenset() for each in (before, now))
        changed = old ^ new if before is None or now is None or before.owners == now.owners else old | new
        if changed:
            self._on_change(gateway, changed)


def _listeners(obj: Object) -> _Listeners | None:
    if is_terminating(obj):
        return None
    listeners = mappings(mapping(obj.get("spec")).get("listeners"))
    hostnames = (string(each, "hostname") for each in listeners if each.get("port") == HTTPS_PORT)
    owners = mappings(obj["metadata"].get("ownerReferences"))
    return _Listeners(frozenset(filter(None, hostnames)), frozenset(string(each, "uid") for each in owners))


def _order(place: str) -> tuple[int, str]:
    """The Gateway, and then its sets by number."""
    _, number = split_listener_set(place) or ("", 0)
    return number, place
