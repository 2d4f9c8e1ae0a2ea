"""Writes rejected hostnames to the status of routes, and removes entries that no longer apply."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from apiserver.meta.resource import Key, Object
from controller.runtime.apply import ClusterWriter
from controller.runtime.event_recorder import Event, Recorder, Regarding
from controller.tenantgateway import parse
from controller.tenantgateway.collected_errors import CollectedErrors
from controller.tenantgateway.hostname_ownership import describe_route, may_be_named
from controller.tenantgateway.hostname_validation import HostnameRejection
from controller.tenantgateway.index import RouteIndex, TenantGatewayIndex
from controller.tenantgateway.model import ParentRefVerdict, RouteId
from controller.tenantgateway.route_status import evaluate_parent_ref, route_parents
from controller.tenantgateway.watched_kinds import WatchedKind, WatchedKinds


class RouteStatusWriter:
    """Writes status.parents of routes, conditional on the observed resourceVersion, because other controllers write
    there too (R-203)."""

    def __init__(
        self,
        *,
        writer: ClusterWriter,
        kinds: WatchedKinds,
        routes: RouteIndex,
        tenantgateways: TenantGatewayIndex,
        recorder: Recorder,
        now: Callable[[], str],
    ) -> None:
        self._writer = writer
        self._kinds = kinds
        self._routes = routes
        self._tenantgateways = tenantgateways
        self._recorder = recorder
        self._now = now

    async def write(
        self, gateway: Key, rejections: Mapping[RouteId, HostnameRejection], errors: CollectedErrors
    ) -> None:
        """Updates the routes in `rejections`, and those that have an entry about this Gateway already."""
        for route in sorted({*rejections, *self._routes.with_status_of(gateway)}):
            kind = self._kinds.httproutes if route.kind == "HTTPRoute" else self._kinds.tlsroutes
            obj = kind.get(Key(route.namespace, route.name))
            if obj is not None:
                subject = f"status of {describe_route(route, gateway.namespace)}"
                with errors.collecting(subject, brief=not may_be_named(route, gateway.namespace)):
                    await self._write(kind, obj, gateway, rejections.get(route))

    async def withdraw(self, gateway: Key, errors: CollectedErrors) -> None:
        """Removes our entries about a Gateway whose TenantGateway is deleted."""
        await self.write(gateway, {}, errors)

    async def _write(self, kind: WatchedKind, obj: Object, gateway: Key, rejection: HostnameRejection | None) -> None:
        namespace = obj["metadata"]["namespace"]
        attached: list[ParentRefVerdict] = []
        if self._tenantgateways.is_active(gateway):
            attached = [
                evaluate_parent_ref(dict(parent), rejection)
                for parent in parse.parent_refs(obj)
                if parse.parent_gateway(parent, namespace) == gateway
            ]

        def served_by_other(parent: Object) -> bool:
            other = parse.parent_gateway(parent, namespace)
            return other is not None and other != gateway and self._tenantgateways.is_active(other)

        parents = route_parents(obj, attached, served_by_other=served_by_other, now=self._now())
        if parents is None:
            return
        written = await self._writer.write_status(kind.resource, obj, {"parents": parents})
        if written is not None:
            kind.record_write(written)
            self._record_events(kind, obj, attached)

    def _record_events(self, kind: WatchedKind, obj: Object, attached: Sequence[ParentRefVerdict]) -> None:
        regarding = Regarding.of(kind.resource, obj)
        for reason, message in dict.fromkeys((each.reason, each.message) for each in attached if not each.accepted):
            self._recorder.record(regarding, Event("Warning", reason, "Judge", message))
