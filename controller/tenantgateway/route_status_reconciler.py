"""Reconciles our entries in the status of a route: one for each parentRef that we reject, or rejected before, for those
of a route with references that nobody consented to, and for those that delegate.

This is the only writer of these entries; the verdicts are those of gateway_judge.py and delegation/judge.py.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from apiserver.meta.errors import StatusError
from apiserver.meta.resource import Key, Object
from controller.runtime.apply import ClusterWriter
from controller.runtime.conditions import Finding
from controller.runtime.event_recorder import Event, Recorder, Regarding
from controller.runtime.workqueue import Enqueue
from controller.tenantgateway import parse
from controller.tenantgateway.collected_errors import is_transient
from controller.tenantgateway.consent.resolved_refs import ReferenceJudge
from controller.tenantgateway.delegation.judge import DelegationJudge
from controller.tenantgateway.hostname_ownership import describe_route, may_be_named
from controller.tenantgateway.judging.gateway_judge import GatewayJudge
from controller.tenantgateway.model import ParentRefVerdict, RouteId
from controller.tenantgateway.route_status import orphan, route_parents
from controller.tenantgateway.watched_kinds import WatchedKind, WatchedKinds


class RouteStatusReconciler:
    """Reconciles by route. Writes are conditional on the observed resourceVersion, because other controllers write to
    the same list (R-203)."""

    def __init__(
        self,
        *,
        writer: ClusterWriter,
        kinds: WatchedKinds,
        initial_keys: Callable[[], Iterable[RouteId]],
        gateways: GatewayJudge,
        delegations: DelegationJudge,
        references: ReferenceJudge,
        enqueue: Enqueue,
        recorder: Recorder,
        now: Callable[[], str],
    ) -> None:
        """`initial_keys` returns the keys to reconcile at the start: all routes that somebody judges. `enqueue` is
        called for the TenantGateways whose `errors` change."""
        self._writer = writer
        self._kinds = kinds
        self.initial_keys = initial_keys
        self._gateways = gateways
        self._delegations = delegations
        self._references = references
        self._enqueue = enqueue
        self._recorder = recorder
        self._now = now
        self._errors: dict[Key, dict[RouteId, str]] = {}

    def errors(self, gateway: Key) -> list[str]:
        """One message for each route that refers to the Gateway and whose status the cluster refused to change."""
        return [message for _, message in sorted(self._errors.get(gateway, {}).items())]

    async def reconcile(self, key: RouteId) -> None:
        kind = self._kinds.of_routes[key.kind]
        obj = kind.get(Key(key.namespace, key.name)) if kind.synced else None
        if obj is None:
            self._record_error(key, (), None)
            return
        gateways = set(parse.gateways_in_status(obj))
        gateways.update(filter(None, (parse.parent_gateway(each, key.namespace) for each in parse.parent_refs(obj))))
        error: StatusError | None = None
        try:
            await self._write(kind, key, obj)
        except StatusError as e:
            error = None if is_transient(e) else e
            raise
        finally:
            self._record_error(key, gateways, error)

    async def _write(self, kind: WatchedKind, route: RouteId, obj: Object) -> None:
        resolved = self._references.judge(route, obj)
        verdicts = self._judge(route, obj, resolved)

        def is_undecided(parent: Object) -> bool:
            return self._gateways.is_undecided(route, parent) or self._delegations.is_undecided(route, parent)

        parents = route_parents(obj, verdicts, is_undecided=is_undecided, now=self._now())
        if parents is None:
            return
        written = await self._writer.write_status(kind.resource, obj, {"parents": parents})
        if written is not None:
            kind.record_write(written)
            self._record_events(kind, obj, verdicts)

    def _judge(self, route: RouteId, obj: Object, resolved: Finding | None) -> Sequence[ParentRefVerdict]:
        """The verdicts on the parentRefs of a route, without those that are undecided or not ours. `resolved` is the
        condition ResolvedRefs of those that count."""
        parents, hostnames = [*parse.parent_refs(obj)], parse.hostnames(obj)
        verdicts: list[ParentRefVerdict | None] = []
        if not parents:
            # the last parents of a route that names none any more stay known
            return [orphan(each["parentRef"], route.namespace, detached=True) for each in parse.own_status_entries(obj)]
        for parent in parents:
            verdicts.append(self._gateways.judge(route, parent, hostnames, resolved))
            verdicts.append(self._delegations.judge(route, parent))
        return [each for each in verdicts if each is not None]

    def _record_error(self, route: RouteId, gateways: Iterable[Key], error: StatusError | None) -> None:
        """Sets the messages of the TenantGateways that the route refers to, or removes them."""
        messages = {each: _error_message(route, each, error) for each in gateways} if error is not None else {}
        for gateway in {*messages, *(each for each, found in self._errors.items() if route in found)}:
            found = self._errors.setdefault(gateway, {})
            before = found.pop(route, None)
            if gateway in messages:
                found[route] = messages[gateway]
            if not found:
                del self._errors[gateway]
            if before != messages.get(gateway):
                self._enqueue(gateway)

    def _record_events(self, kind: WatchedKind, obj: Object, verdicts: Sequence[ParentRefVerdict]) -> None:
        regarding = Regarding.of(kind.resource, obj)
        problems = [(each.reason, each.message) for each in verdicts if not each.accepted]
        refused = (each.references for each in verdicts if each.references is not None)
        problems += [(each.reason, each.message) for each in refused if each.status == "False"]
        for reason, message in dict.fromkeys(problems):
            self._recorder.record(regarding, Event("Warning", reason, "Judge", message))


def _error_message(route: RouteId, gateway: Key, error: StatusError) -> str:
    """The error, as a condition of a TenantGateway may tell it: the text may name an object that readers must not
    see."""
    text = error.message if may_be_named(route, gateway.namespace) else error.reason
    return f"status of {describe_route(route, gateway.namespace)}: {text}"
