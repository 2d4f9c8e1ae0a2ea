"""Brings the host to what a TenantGateway asks for: observe, judge and plan, make, tell the routes, tell the status."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from apiserver.meta.resource import Key, Object
from controller.tenantgateway.attachment_reconciler import AttachmentReconciler
from controller.tenantgateway.collected_errors import Faults
from controller.tenantgateway.ensure import Maker
from controller.tenantgateway.index import Namespaces, Routes, TenantGateways
from controller.tenantgateway.model import Judgement, Plan
from controller.tenantgateway.parse import Asked
from controller.tenantgateway.plan import plan
from controller.tenantgateway.route_status import faults as refused
from controller.tenantgateway.route_status_writer import Verdicts
from controller.tenantgateway.status import Found
from controller.tenantgateway.status_writer import StatusWriter
from controller.tenantgateway.watched_kinds import Kind, Kinds

NO_PLAN = Plan(listeners=(), certificates=(), judgement=Judgement())


@dataclass(frozen=True, slots=True, kw_only=True)
class Known:
    """Where what is observed comes from."""

    tenantgateways: TenantGateways
    routes: Routes
    namespaces: Namespaces
    kinds: Kinds
    attachments: AttachmentReconciler


class TenantGatewayReconciler:
    """The keys are those of TenantGateways, and of Gateways that routes say were judged for one that is gone."""

    def __init__(self, *, known: Known, maker: Maker, verdicts: Verdicts, status: StatusWriter) -> None:
        self._known = known
        self._maker = maker
        self._verdicts = verdicts
        self._status = status

    def everything(self) -> Iterable[Key]:
        """The keys to begin with."""
        return dict.fromkeys((*self._known.tenantgateways, *self._known.routes.judged_for()))

    async def reconcile(self, key: Key) -> None:
        """Raises one of the host's refusals, once everything else is done."""
        faults = Faults()
        obj, asked = self._known.tenantgateways.get(key), self._known.tenantgateways.asked(key)
        if obj is None or asked is None or asked.facts.terminating:
            # what was made from it is the garbage collector's
            await self._verdicts.withdraw(key, faults)
        elif not self._is_catching_up():
            await self._serve(obj, asked, faults)
        faults.raise_one()

    def _is_catching_up(self) -> bool:
        """Whether a kind has just come whose objects are not all known: without them listeners would be taken away.
        Once they are, every TenantGateway is looked at again."""
        return any(not kind.seen and not kind.lack for kind in self._known.kinds.all)

    def _needed(self) -> Iterable[Kind]:
        """A TLSRoute may own a hostname that an HTTPRoute asks for: without them nobody knows whose it is. A host that
        has no such kind has no such routes."""
        kinds = self._known.kinds
        return (kinds.gateways, kinds.httproutes, *(() if kinds.tlsroutes.missing else (kinds.tlsroutes,)))

    async def _serve(self, obj: Object, asked: Asked, faults: Faults) -> None:
        gateway, known = asked.facts, self._known
        lacking = [each.lack for each in self._needed() if not each.seen]
        planned = NO_PLAN
        if asked.problem:
            faults.add(asked.problem)
        elif lacking:
            for sentence in lacking:
                faults.add(sentence)
        else:
            planned = plan(
                gateway,
                known.namespaces.heirs(gateway.key.namespace),
                known.routes.of(gateway.key),
                current=self._maker.current(gateway),
            )
            await self._maker.make(gateway, planned, faults)
            await self._verdicts.write(gateway.key, refused(planned), faults)
        if not faults.passing:
            # otherwise what is there is not yet what was just decided, and the next try is soon
            await self._status.write(obj, self._found(asked, planned, faults.sentences, obj))

    def _found(self, asked: Asked, planned: Plan, sentences: Sequence[str], obj: Object) -> Found:
        gateway, attachments = asked.facts, self._known.attachments
        return Found(
            gateway=gateway,
            plan=planned,
            current=self._maker.current(gateway),
            certificates=self._maker.certificates(gateway, planned),
            errors=(*sentences, *attachments.refused(gateway.key, gateway.attached)),
            lost=attachments.lost(gateway.key, gateway.attached),
            previous=obj.get("status"),
        )
