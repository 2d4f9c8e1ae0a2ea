"""A Backend of Tenants that keeps hosts, quotas and parents exact across replicas, around the Backend that writes them.

It judges last, after policies and webhooks, directly before the write.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Protocol

from admission.chain import ValidatingPlugin
from admission.tenant.claims.claim import ProposedWrite
from admission.tenant.claims.claim_register import ClaimRegister
from admission.tenant.claims.judge import Held
from admission.tenant.claims.known_claims import OwnClaim
from admission.tenant.claims.own_events import Observed, OwnEvents, Verdict
from admission.tenant.claims.parent_locks import ParentLocks
from admission.tenant.claims.tenant_deleter import TenantDeleter
from admission.tenant.claims.unconfirmed_writes import UnconfirmedWrites
from admission.tenant.claims.withdrawal import Withdrawal
from apiserver import rest
from apiserver.admission import Attributes, Operation
from apiserver.meta import errors
from apiserver.meta.errors import StatusError
from apiserver.meta.resource import Key, Object, Resource
from apiserver.request.context import RequestContext
from apiserver.request.options import DeleteOptions
from apiserver.storage.watch_cache import WatchCache
from registry.application.release_backend import ReleaseBackend
from registry.generic.run_to_end import run_to_end
from registry.tenant.spec import with_spec_defaults
from registry.tenant.summary import summarize

_logger = logging.getLogger(__name__)
_EVENT_SECONDS = 10.0
_UNCONFIRMED = "the tenant was stored, but it is not known yet whether it will be withdrawn in favour of another one"


class Send(Protocol):
    """Sends a write, with the id of its claim if it is `unconfirmed` when it is stored."""

    async def __call__(self, *, unconfirmed: str = "") -> Object: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class ClaimingParts:
    """The parts of a ClaimingBackend. `verdict` judges a stored write by the present tree, and `plugins` are those
    that judge Tenants by the tree."""

    register: ClaimRegister
    events: OwnEvents
    verdict: Callable[[ProposedWrite], Verdict]
    deleter: TenantDeleter
    withdrawal: Withdrawal
    unconfirmed: UnconfirmedWrites
    locks: ParentLocks
    plugins: Sequence[ValidatingPlugin]
    resource: Resource


class ClaimingBackend:
    def __init__(self, backend: ReleaseBackend, parts: ClaimingParts) -> None:
        self._backend = backend
        self._parts = parts
        self._settling: set[asyncio.Task[Object]] = set()

    @property
    def cache(self) -> WatchCache:
        return self._backend.cache

    @property
    def is_only_writer(self) -> bool:
        return self._backend.is_only_writer

    def before_read(self, context: RequestContext) -> None:
        self._backend.before_read(context)

    async def read(self, key: Key, *, live: bool) -> Object | None:
        return await self._backend.read(key, live=live)

    async def confirm_absent(self, key: Key) -> bool:
        return await self._backend.confirm_absent(key)

    async def create(self, obj: Object, *, dry_run: bool, context: RequestContext) -> Object:
        write = ProposedWrite(summarize(with_spec_defaults(obj)), None)
        send = partial(self._backend.create, obj, dry_run=dry_run)
        attributes = self._attributes("CREATE", obj, None, dry_run, context)
        async with self._parts.locks.creating(write.key.namespace):
            await self._parts.deleter.require_unmarked(write.key.namespace)
            return await self._write(write, send, attributes)

    async def update(self, key: Key, new: Object, current: Object, *, dry_run: bool, context: RequestContext) -> Object:
        write = ProposedWrite(summarize(with_spec_defaults(new), key), summarize(current, key))
        send = partial(self._backend.update, key, new, current, dry_run=dry_run)
        if not write.needs_record:
            return await send()
        if write.sets_host and self._parts.unconfirmed.may_be_withdrawn(key):
            # the mark of this write would replace the other one
            raise Held
        return await self._write(write, send, self._attributes("UPDATE", new, current, dry_run, context))

    async def delete(
        self, key: Key, current: Object, options: DeleteOptions, *, context: RequestContext
    ) -> rest.DeletionResult:
        tenant = summarize(current, key)
        attributes = self._attributes("DELETE", None, current, options.dry_run, context)
        policy = {"propagationPolicy": options.propagation_policy, "orphanDependents": options.orphan_dependents}
        attributes = replace(attributes, options=policy)
        deleter = self._parts.deleter
        async with self._parts.locks.deleting(tenant.namespace):
            try:
                version = await deleter.prepare(tenant, attributes, partial(self._refuse, attributes))
                if version != tenant.rv:
                    current = current | {"metadata": current["metadata"] | {"resourceVersion": str(version)}}
                return await self._backend.delete(key, current, options, context=context)
            except BaseException:
                deleter.clean_up(tenant)
                raise

    async def _write(self, write: ProposedWrite, send: Send, attributes: Attributes) -> Object:
        refuse = partial(self._refuse, attributes)
        if attributes.dry_run:
            await self._parts.register.check(write, refuse)
            return await send()
        own = await self._parts.register.admit(write, refuse)
        return await run_to_end(self._send(own, send, attributes))

    async def _send(self, own: OwnClaim, send: Send, attributes: Attributes) -> Object:
        """Sends an admitted write, and returns its result when its own event has confirmed it."""
        register = self._parts.register
        if not register.may_be_sent(own):
            register.end(own)
            raise Held
        events = self._parts.events
        observed = events.observe(own.write.key, partial(self._parts.verdict, own.write))
        try:
            stored = await send(unconfirmed=own.claim.id if own.write.is_judged_again else "")
        except BaseException as e:
            events.forget(observed)
            await self._end_failed(own, e)
            raise
        if not (own.write.is_judged_again or register.is_late(own)):
            events.forget(observed)
            register.end(own, _version(stored))
            return stored
        verdict = await events.result(observed, _version(stored), seconds=_EVENT_SECONDS)
        settling = self._settle(own, observed, verdict, stored, attributes)
        if verdict is not None:
            return await settling
        task = asyncio.ensure_future(settling)
        self._settling.add(task)
        task.add_done_callback(self._forget_settled)
        raise errors.Timeout(_UNCONFIRMED)

    async def _end_failed(self, own: OwnClaim, error: BaseException) -> None:
        """Ends the claim of a write that was refused; without a definite answer it stays."""
        register = self._parts.register
        if not isinstance(error, StatusError) or error.code >= 500:
            register.leave(own)
        elif isinstance(error, errors.Conflict) and not own.write.creates:
            # a PUT may have been stored and sent again, when its connection was lost: then this is its conflict
            try:
                found = await self._backend.read(own.write.key, live=True)
            except BaseException:
                register.leave(own)
                raise
            register.end(own, _version(found) if found is not None else 0)
        else:
            register.end(own)

    async def _settle(
        self,
        own: OwnClaim,
        observed: Observed[Verdict],
        verdict: Verdict | None,
        stored: Object,
        attributes: Attributes,
    ) -> Object:
        """Ends the claim of a stored write, which is withdrawn if another one excludes it: then its error is raised."""
        version = _version(stored)
        try:
            while verdict is None:
                verdict = await self._parts.events.result(observed, version, seconds=_EVENT_SECONDS)
        finally:
            self._parts.events.forget(observed)
        if verdict is Verdict.ADMITTED:
            self._parts.register.end(own, version)
            return stored
        try:
            error = await self._refusal(verdict, attributes)
            version = await self._parts.withdrawal.undo(own.write, stored)
        except BaseException:
            self._parts.register.leave(own)
            raise
        self._parts.register.end(own, version)
        raise error

    async def _refusal(self, verdict: Verdict, attributes: Attributes) -> StatusError:
        if verdict is Verdict.REJECTED:
            try:
                await self._refuse(attributes)
            except StatusError as e:
                return e
        return Held()

    def _forget_settled(self, task: asyncio.Task[Object]) -> None:
        self._settling.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            _logger.info("a write was withdrawn after its request had ended: %s", error)

    async def _refuse(self, attributes: Attributes) -> None:
        """Raises the error of the first plugin that rejects the request now."""
        for plugin in self._parts.plugins:
            if plugin.handles(attributes):
                await plugin.validate(attributes)

    def _attributes(
        self, operation: Operation, new: Object | None, old: Object | None, dry_run: bool, context: RequestContext
    ) -> Attributes:
        subject = new if new is not None else old
        assert subject is not None
        return Attributes(
            operation=operation,
            resource=self._parts.resource,
            namespace=subject["metadata"]["namespace"],
            name=subject["metadata"]["name"],
            object=new,
            old_object=old,
            user=context.user,
            dry_run=dry_run,
            context=context,
        )


def _version(stored: Object) -> int:
    return int(stored["metadata"]["resourceVersion"])
