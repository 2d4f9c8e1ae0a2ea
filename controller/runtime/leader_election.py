"""Leader election with a Lease, by the rules of k8s.io/client-go/tools/leaderelection.

Times written by other replicas are never compared with ours: a lease has expired if it has not changed for its
duration by our own clock. A replica that loses the lease, or cannot renew it in time, stops its work before another
replica may lead.
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
    """In seconds. Each wait between attempts to acquire the lease is extended by a random time of up to `jitter` retry
    periods."""

    duration: float = 15.0
    renew_deadline: float = 10.0
    retry_period: float = 2.0
    jitter: float = 1.2

    def __post_init__(self) -> None:
        if not self.duration > self.renew_deadline > self.retry_period * self.jitter > 0:
            raise ValueError(
                "the lease duration must exceed the renew deadline, which must exceed the retry period with jitter"
            )


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """A replica that takes part in the election, and its Lease. `identity` must be unique for each start of a
    replica."""

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
        self._failing = False

    @property
    def is_leader(self) -> bool:
        return self._gate.is_open

    @property
    def identity(self) -> str:
        return self._candidate.identity

    @property
    def leader(self) -> str:
        """The identity of the holder as last observed; empty if there is none."""
        return _holder(self._lease) if self._lease is not None else ""

    async def run(self, lead: Callable[[], Awaitable[Any]]) -> None:
        """Run `lead` whenever the lease is acquired, and cancel it when the lease is lost. Raises what `lead`
        raises."""
        try:
            while True:
                await self._acquire()
                _logger.info("%s is the leader by Lease %s", self._candidate.identity, self._candidate.name)
                await self._lead(lead)
        finally:
            self._gate.close()
            await self._release()

    async def _acquire(self) -> None:
        while True:
            if await self._try_acquire_or_renew(self._times.renew_deadline):
                return
            await asyncio.sleep(self._times.retry_period * (1 + self._times.jitter * self._jitter()))

    async def _lead(self, lead: Callable[[], Awaitable[Any]]) -> None:
        leading = asyncio.ensure_future(_call(lead))
        try:
            while self._clock() < self._deadline:
                # after a failure, less than a whole retry period may remain until the deadline
                wait = min(self._times.retry_period, max(0.0, self._deadline - self._clock()))
                await asyncio.wait([leading], timeout=wait)
                if leading.done():
                    break
                renewed = await self._try_acquire_or_renew(self._deadline - self._clock())
                if not renewed and self.leader != self._candidate.identity:
                    break
        finally:
            self._gate.close()
            leading.cancel()
            await asyncio.wait([leading])
        if not leading.cancelled():
            leading.result()
            raise RuntimeError("the task of the leader has ended by itself")
        _logger.warning("%s is no longer the leader by Lease %s", self._candidate.identity, self._candidate.name)

    @property
    def _deadline(self) -> float:
        return self._renewed + self._times.renew_deadline

    async def _try_acquire_or_renew(self, seconds: float) -> bool:
        """False if another replica holds the lease, or the cluster does not confirm the write within `seconds`."""
        if seconds <= 0:
            return False
        started = self._clock()
        try:
            async with asyncio.timeout(seconds):
                acquired = await self._acquire_or_renew()
        except (StatusError, TimeoutError) as e:
            self._log_failure(e)
            if isinstance(e, StatusError) and e.code in (404, 409):
                # the lease is not in the observed state: reading it restarts the expiry clock only if its spec changed
                await self._refresh(seconds - (self._clock() - started))
            return False
        self._failing = False
        if acquired:
            # counted from before the request: other replicas see the lease change when it is stored, or later
            self._renewed = started
            self._gate.open_until(self._deadline)
        return acquired

    async def _acquire_or_renew(self) -> bool:
        if self._lease is None or self.leader != self._candidate.identity:
            await self._read()
        if self._lease is None:
            self._lease = await self._cluster.create(LEASES, self._new_lease(), namespace=self._candidate.namespace)
            self._observed = self._clock()
            return True
        mine = self.leader == self._candidate.identity
        if self.leader and not mine and self._clock() < self._observed + _duration(self._lease, self._times.duration):
            return False
        self._lease = await self._cluster.update(LEASES, self._renewed_lease(self._lease, acquired=not mine))
        self._observed = self._clock()
        return True

    async def _refresh(self, seconds: float) -> None:
        try:
            async with asyncio.timeout(max(0.0, seconds)):
                await self._read()
        except (StatusError, TimeoutError) as e:
            self._log_failure(e)

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
        """Empty the holder, so that another replica can lead immediately. As in client-go, the Lease is read before:
        the answer to our last renewal may not have come."""
        try:
            async with asyncio.timeout(_RELEASE_SECONDS):
                await self._read()
                if self._lease is None or self.leader != self._candidate.identity:
                    return
                released = self._renewed_lease(self._lease, acquired=False)
                released["spec"] |= {"holderIdentity": "", "leaseDurationSeconds": 1}
                self._lease = await self._cluster.update(LEASES, released)
        except (StatusError, TimeoutError) as e:
            _logger.info("cannot release the lease, which will expire: %s", e)

    def _new_lease(self) -> Object:
        metadata = {"name": self._candidate.name, "namespace": self._candidate.namespace}
        empty: Object = {"apiVersion": LEASES.api_version, "kind": LEASES.kind, "metadata": metadata, "spec": {}}
        return self._renewed_lease(empty, acquired=True, transitions=0)

    def _renewed_lease(self, lease: Object, *, acquired: bool, transitions: int = 1) -> Object:
        """`lease` with us as its holder and a new renewTime; a lease that is `acquired` counts as a transition."""
        now = format_micro_time(self._now())
        spec = dict(lease.get("spec") or {})
        spec |= {
            "holderIdentity": self._candidate.identity,
            "leaseDurationSeconds": int(self._times.duration),
            "renewTime": now,
        }
        if acquired:
            spec |= {"acquireTime": now, "leaseTransitions": (spec.get("leaseTransitions") or 0) + transitions}
        return {**lease, "spec": spec}

    def _log_failure(self, error: Exception) -> None:
        """Only the first of a series of failures is logged."""
        if not self._failing:
            # a TimeoutError has no text
            _logger.warning(
                "cannot acquire or renew the lease: %s", str(error) or "the cluster does not answer in time"
            )
        self._failing = True


async def _call(lead: Callable[[], Awaitable[Any]]) -> Any:
    return await lead()


def _holder(lease: Object) -> str:
    return (lease.get("spec") or {}).get("holderIdentity") or ""


def _duration(lease: Object, default: float) -> float:
    seconds = (lease.get("spec") or {}).get("leaseDurationSeconds")
    return float(seconds) if isinstance(seconds, int) and seconds > 0 else default


def format_micro_time(time_: datetime) -> str:
    """The time as a metav1.MicroTime."""
    return time_.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
