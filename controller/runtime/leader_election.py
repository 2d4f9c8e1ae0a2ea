"""Leader election by a Lease, by the rules of k8s.io/client-go/tools/leaderelection.

Times of other replicas are never compared with ours: a lease has run out if it did not change for its duration by
our own clock. Losing it, or failing to renew it in time, ends the leading task before another replica may lead.
"""

from __future__ import annotations

import asyncio
import logging
import random
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from apiserver.meta.errors import StatusError
from apiserver.meta.resource import Object
from controller.runtime.write_gate import LeaseGate
from registry.cluster.interface import LEASES, ClusterClient

_logger = logging.getLogger(__name__)
_RELEASE_SECONDS = 2.0


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaseTimes:
    """In seconds. Waits between tries to acquire are up to `jitter` times longer, by chance."""

    duration: float = 15.0
    renew_deadline: float = 10.0
    retry_period: float = 2.0
    jitter: float = 1.2

    def __post_init__(self) -> None:
        if not self.duration > self.renew_deadline > self.retry_period * self.jitter > 0:
            raise ValueError("lease duration, renew deadline and retry period must be in this order, each shorter")


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """Who wants to lead, and by which Lease. `identity` must differ between replicas and restarts."""

    identity: str
    namespace: str
    name: str


class LeaderElector:
    def __init__(
        self,
        *,
        cluster: ClusterClient,
        gate: LeaseGate,
        candidate: Candidate,
        times: LeaseTimes | None = None,
        clock: Callable[[], float] = time.monotonic,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
        jitter: Callable[[], float] = random.random,
    ) -> None:
        """`clock` must be the one of `gate`."""
        self._cluster = cluster
        self._gate = gate
        self._candidate = candidate
        self._times = times if times is not None else LeaseTimes()
        self._clock = clock
        self._now = now
        self._jitter = jitter
        self._lease: Object | None = None
        self._observed = 0.0
        self._renewed = 0.0
        self._refused = False

    @property
    def is_leader(self) -> bool:
        return self._gate.is_open

    @property
    def leader(self) -> str:
        """The identity of the holder, as last seen; empty if there is none."""
        return _holder(self._lease) if self._lease is not None else ""

    async def run(self, lead: Callable[[], Awaitable[Any]]) -> None:
        """Call `lead` each time that the lease is won, and cancel it when it is lost. Raises what `lead` raises."""
        try:
            while True:
                await self._acquire()
                _logger.info("%s leads", self._candidate.identity)
                await self._lead(lead)
        finally:
            self._gate.close()
            await self._release()

    async def _acquire(self) -> None:
        while True:
            if await self._attempt(self._times.renew_deadline):
                return
            await asyncio.sleep(self._times.retry_period * (1 + self._times.jitter * self._jitter()))

    async def _lead(self, lead: Callable[[], Awaitable[Any]]) -> None:
        leading = asyncio.ensure_future(_call(lead))
        try:
            while self._clock() < self._deadline:
                # a try that failed is repeated sooner than a whole period before the deadline
                wait = min(self._times.retry_period, max(0.0, self._deadline - self._clock()))
                await asyncio.wait([leading], timeout=wait)
                if leading.done():
                    break
                if not await self._attempt(self._deadline - self._clock()) and self.leader != self._candidate.identity:
                    break
        finally:
            self._gate.close()
            leading.cancel()
            await asyncio.wait([leading])
        if not leading.cancelled():
            leading.result()
            raise RuntimeError("the leading task ended by itself")
        _logger.warning("%s no longer leads", self._candidate.identity)

    @property
    def _deadline(self) -> float:
        return self._renewed + self._times.renew_deadline

    async def _attempt(self, seconds: float) -> bool:
        """Take or renew the lease; False if it is another's, or if the host does not let us within `seconds`."""
        if seconds <= 0:
            return False
        started = self._clock()
        try:
            async with asyncio.timeout(seconds):
                held = await self._take()
        except (StatusError, TimeoutError) as e:
            self._tell_refusal(e)
            if isinstance(e, StatusError) and e.code in (404, 409):
                # the lease is not as we saw it; what we know of its time stays, so that a change restarts it
                await self._look(seconds - (self._clock() - started))
            return False
        self._refused = False
        if held:
            # from before the request: the others' clocks run from when the host stored it, or later
            self._renewed = started
            self._gate.open_until(self._deadline)
        return held

    async def _take(self) -> bool:
        if self._lease is None or self.leader != self._candidate.identity:
            await self._read()
        if self._lease is None:
            self._lease = await self._cluster.create(LEASES, self._new(), namespace=self._candidate.namespace)
            self._observed = self._clock()
            return True
        mine = self.leader == self._candidate.identity
        if self.leader and not mine and self._clock() < self._observed + _duration(self._lease, self._times.duration):
            return False
        self._lease = await self._cluster.update(LEASES, self._with(self._lease, taken=not mine))
        self._observed = self._clock()
        return True

    async def _look(self, seconds: float) -> None:
        try:
            async with asyncio.timeout(max(0.0, seconds)):
                await self._read()
        except (StatusError, TimeoutError) as e:
            self._tell_refusal(e)

    async def _read(self) -> None:
        try:
            lease = await self._cluster.get(LEASES, self._candidate.namespace, self._candidate.name)
        except StatusError as e:
            if e.code != 404 or e.reason != "NotFound":
                raise
            self._lease = None
            return
        if self._lease is None or lease.get("spec") != self._lease.get("spec"):
            self._observed = self._clock()
        self._lease = lease

    async def _release(self) -> None:
        """Let another one lead at once."""
        if self._lease is None or self.leader != self._candidate.identity:
            return
        released = self._with(self._lease, taken=False)
        released["spec"] |= {"holderIdentity": "", "leaseDurationSeconds": 1}
        try:
            async with asyncio.timeout(_RELEASE_SECONDS):
                self._lease = await self._cluster.update(LEASES, released)
        except (StatusError, TimeoutError) as e:
            _logger.info("the lease was not released, and will run out: %s", e)

    def _new(self) -> Object:
        metadata = {"name": self._candidate.name, "namespace": self._candidate.namespace}
        empty: Object = {"apiVersion": LEASES.api_version, "kind": LEASES.kind, "metadata": metadata, "spec": {}}
        return self._with(empty, taken=True, transitions=0)

    def _with(self, lease: Object, *, taken: bool, transitions: int = 1) -> Object:
        """`lease` as we renew it; `taken` from somebody else, or from nobody, that is a transition."""
        now = format_micro_time(self._now())
        spec = dict(lease.get("spec") or {})
        spec |= {
            "holderIdentity": self._candidate.identity,
            "leaseDurationSeconds": int(self._times.duration),
            "renewTime": now,
        }
        if taken:
            spec |= {"acquireTime": now, "leaseTransitions": (spec.get("leaseTransitions") or 0) + transitions}
        return {**lease, "spec": spec}

    def _tell_refusal(self, error: Exception) -> None:
        if not self._refused:
            _logger.warning("the lease cannot be had or renewed: %s", str(error) or type(error).__name__)
        self._refused = True


async def _call(lead: Callable[[], Awaitable[Any]]) -> Any:
    return await lead()


def _holder(lease: Object) -> str:
    return (lease.get("spec") or {}).get("holderIdentity") or ""


def _duration(lease: Object, default: float) -> float:
    seconds = (lease.get("spec") or {}).get("leaseDurationSeconds")
    return float(seconds) if isinstance(seconds, int) and seconds > 0 else default


def format_micro_time(time_: datetime) -> str:
    """A metav1.MicroTime."""
    return time_.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
