"""The verdicts of the last plan of each TenantGateway on the routes that refer to it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

from apiserver.meta.resource import Key
from controller.tenantgateway.hostname_validation import HostnameRejection
from controller.tenantgateway.model import RouteId
from controller.tenantgateway.route_index import EnqueueRoute


@dataclass(frozen=True, slots=True)
class GatewayVerdicts:
    """The routes that the last plan of a TenantGateway counted, and those of them that may not use all of their
    hostnames. With a `refusal`, all routes that refer to its Gateway are rejected so."""

    admitted: frozenset[RouteId] = frozenset()
    rejections: Mapping[RouteId, HostnameRejection] = field(default_factory=dict)
    refusal: HostnameRejection | None = None


class RouteVerdicts:
    """The verdicts by TenantGateway; each change enqueues the routes concerned, whose status shows them."""

    def __init__(self, *, concerned_with: Callable[[Key], Iterable[RouteId]], enqueue_route: EnqueueRoute) -> None:
        """`concerned_with` returns the routes that refer to a Gateway, or whose status has an entry of ours about
        it."""
        self._concerned_with = concerned_with
        self._enqueue_route = enqueue_route
        self._verdicts: dict[Key, GatewayVerdicts] = {}

    def get(self, gateway: Key) -> GatewayVerdicts | None:
        """None if the TenantGateway has not been planned yet, or is deleted."""
        return self._verdicts.get(gateway)

    def record(self, gateway: Key, verdicts: GatewayVerdicts) -> None:
        before = self._verdicts.get(gateway)
        self._verdicts[gateway] = verdicts
        if before is None or before.refusal != verdicts.refusal:
            self._enqueue_all(gateway)
            return
        for route in (before.admitted ^ verdicts.admitted) | before.rejections.keys() | verdicts.rejections.keys():
            if _verdict(before, route) != _verdict(verdicts, route):
                self._enqueue_route(route)

    def forget(self, gateway: Key) -> None:
        """The TenantGateway does not exist any more, is being deleted, or is not served any more."""
        self._verdicts.pop(gateway, None)
        self._enqueue_all(gateway)

    def clear(self) -> None:
        """At the start of a term as the leader: the plans of an earlier one may be hours old."""
        self._verdicts.clear()

    def _enqueue_all(self, gateway: Key) -> None:
        for route in self._concerned_with(gateway):
            self._enqueue_route(route)


def _verdict(verdicts: GatewayVerdicts, route: RouteId) -> tuple[bool, HostnameRejection | None]:
    return route in verdicts.admitted, verdicts.rejections.get(route)
