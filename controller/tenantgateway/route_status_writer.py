"""Writes into the status of routes which hostnames they may not have, and takes that away again."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from apiserver.meta.resource import Key, Object
from controller.runtime.apply import Apply
from controller.runtime.event_recorder import Occurrence, Recorder, Regarding
from controller.tenantgateway import parse as facts
from controller.tenantgateway.collected_errors import Faults
from controller.tenantgateway.hostname_validation import Fault
from controller.tenantgateway.index import Routes, TenantGateways
from controller.tenantgateway.model import RouteId, Verdict
from controller.tenantgateway.route_status import route_parents, verdict
from controller.tenantgateway.watched_kinds import Kind, Kinds


class Verdicts:
    """Reads what it writes from the host's last word, and writes for that only: others write there as well (R-203)."""

    def __init__(
        self,
        *,
        apply: Apply,
        kinds: Kinds,
        routes: Routes,
        tenantgateways: TenantGateways,
        recorder: Recorder,
        now: Callable[[], str],
    ) -> None:
        self._apply = apply
        self._kinds = kinds
        self._routes = routes
        self._tenantgateways = tenantgateways
        self._recorder = recorder
        self._now = now

    async def write(self, gateway: Key, found: Mapping[RouteId, Fault], faults: Faults) -> None:
        """On the routes that may not have what they claim, which are `found`, and on those that were told something."""
        for route in sorted({*found, *self._routes.judged(gateway)}):
            kind = self._kinds.httproutes if route.kind == "HTTPRoute" else self._kinds.tlsroutes
            obj = kind.get(Key(route.namespace, route.name))
            if obj is not None:
                with faults.collected(f"status of {route.kind.lower()} {route}"):
                    await self._write(kind, obj, gateway, found.get(route))

    async def withdraw(self, gateway: Key, faults: Faults) -> None:
        """Nobody speaks for the Gateway any more."""
        await self.write(gateway, {}, faults)

    async def _write(self, kind: Kind, obj: Object, gateway: Key, fault: Fault | None) -> None:
        namespace = obj["metadata"]["namespace"]
        attached: list[Verdict] = []
        if self._tenantgateways.serves(gateway):
            attached = [
                verdict(dict(parent), fault)
                for parent in facts.parent_refs(obj)
                if facts.gateway_of(parent, namespace) == gateway
            ]

        def known(parent: Object) -> bool:
            other = facts.gateway_of(parent, namespace)
            return other is not None and other != gateway and self._tenantgateways.serves(other)

        parents = route_parents(obj, attached, known=known, now=self._now())
        if parents is None:
            return
        written = await self._apply.write_status(kind.resource, obj, {"parents": parents})
        if written is not None:
            kind.wrote(written)
            self._tell(kind, obj, attached)

    def _tell(self, kind: Kind, obj: Object, attached: Sequence[Verdict]) -> None:
        regarding = Regarding.of(kind.resource, obj)
        for reason, message in dict.fromkeys((each.reason, each.message) for each in attached if not each.accepted):
            self._recorder.record(regarding, Occurrence("Warning", reason, "Judge", message))
