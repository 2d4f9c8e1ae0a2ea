"""Shares informers by resource and selector, and finds resources that the cluster may serve only later."""

from __future__ import annotations

import asyncio
import logging
import math
from collections.abc import Callable, Sequence
from typing import Protocol

from apiserver.meta.errors import StatusError
from apiserver.meta.resource import GroupResource, Object
from registry.cluster.failure_log import LASTING_SECONDS
from registry.cluster.informer import Informer
from registry.cluster.interface import ClusterClient, ClusterResource, ClusterUnreachable, NotServed

_logger = logging.getLogger(__name__)
_CHECK_SECONDS = 10.0
# The interval until the first successful check.
_FIRST_CHECK_SECONDS = 1.0


class Availability(Protocol):
    """A resource that the cluster may serve now, later, or in several versions."""

    @property
    def resource(self) -> ClusterResource | None:
        """The resource in the version that was found, None as long as it is not served."""
        ...

    @property
    def checked(self) -> asyncio.Event:
        """Set once it is known whether the resource is served."""
        ...

    def subscribe(
        self,
        callback: Callable[[ClusterResource], None],
        *,
        on_error: Callable[[StatusError | None], None] | None = None,
    ) -> None:
        """Calls `callback` when the resource has been found, immediately if it has been already, and again if it is
        later served in another version only. Calls `on_error` for each check that fails, and with None when a later
        check finds that the resource is not served."""
        ...


class InformerFactory:
    """Creates and runs informers, and looks for kinds. Those that are requested while it runs are started
    immediately."""

    def __init__(
        self,
        cluster: ClusterClient,
        *,
        shared: Sequence[Informer] = (),
        minimum_version: Callable[[], int] = lambda: 0,
    ) -> None:
        """`shared` are informers that run elsewhere, and that `get` returns for their resources and field selectors,
        whatever labels they select. The others have the `minimum_version`."""
        self._cluster = cluster
        self._minimum_version = minimum_version
        self._found: dict[tuple[ClusterResource, str, str], Informer] = {}
        self._shared = {(informer.resource, informer.field_selector): informer for informer in shared}
        self._availabilities: dict[tuple[tuple[ClusterResource, ...], str], _WatchedAvailability] = {}
        self._start: Callable[[Informer], None] | None = None
        self._look_for: Callable[[_WatchedAvailability], None] | None = None
        self._running: dict[Informer, asyncio.Task[None]] = {}

    @property
    def all(self) -> Sequence[Informer]:
        """The informers that `run` runs."""
        return tuple(self._found.values())

    def get(
        self,
        resource: ClusterResource,
        *,
        label_selector: str = "",
        field_selector: str = "",
        store_objects: bool = True,
        transform: Callable[[Object], Object] = lambda obj: obj,
    ) -> Informer:
        """The informer of a resource and selectors. Its first caller determines `store_objects` and `transform`."""
        if not label_selector and (shared := self._shared.get((resource, field_selector))) is not None:
            return shared
        key = resource, label_selector, field_selector
        informer = self._found.get(key)
        if informer is None:
            informer = self._found[key] = Informer(
                self._cluster,
                resource,
                label_selector=label_selector,
                field_selector=field_selector,
                store_objects=store_objects,
                transform=transform,
                minimum_version=self._minimum_version,
            )
            if self._start is not None:
                self._start(informer)
        return informer

    def is_served(self, resource: ClusterResource) -> bool:
        """True if an informer of the resource has synced and its last call succeeded."""
        return any(
            each.synced.is_set() and each.reachable for each in self._found.values() if each.resource == resource
        )

    def watch_availability(
        self,
        group: str,
        kind: str,
        versions: Sequence[str],
        *,
        plural: str = "",
        namespaced: bool = True,
        field_selector: str = "",
    ) -> Availability:
        """Looks for a kind, while `run` runs, in the first of these versions that is served. Its `plural` is the kind
        with an s by default. With a `field_selector`, only the right to list such objects is needed.

        All subscribers of one kind are called together, so that they can add handlers to one informer before it runs.
        """
        plural = plural or f"{kind.lower()}s"
        candidates = tuple(ClusterResource(group, version, plural, kind, namespaced) for version in versions)
        key = candidates, field_selector
        availability = self._availabilities.get(key)
        if availability is None:
            availability = self._availabilities[key] = _WatchedAvailability(candidates, field_selector)
            if self._look_for is not None:
                self._look_for(availability)
        return availability

    @property
    def missing(self) -> Sequence[str]:
        """Kinds that were looked for and are not served, such as certificates.cert-manager.io."""
        kinds = self._availabilities.values()
        return [each.name for each in kinds if each.checked.is_set() and each.resource is None]

    async def wait_until_checked(self) -> None:
        """Waits until it is known of each watched kind whether it is served."""
        for availability in tuple(self._availabilities.values()):
            await availability.checked.wait()

    async def run(self) -> None:
        """Runs until it is cancelled."""
        async with asyncio.TaskGroup() as group:

            def start(informer: Informer) -> None:
                # the task first runs after the caller has added its handlers
                name = f"informer-{informer.resource.plural}"
                self._running[informer] = group.create_task(informer.run(), name=name)

            def look_for(availability: _WatchedAvailability) -> None:
                group.create_task(self._watch_availability(availability), name=f"look-for-{availability.name}")

            self._start, self._look_for = start, look_for
            for informer in self.all:
                start(informer)
            for availability in tuple(self._availabilities.values()):
                look_for(availability)
            await asyncio.Event().wait()

    async def _watch_availability(self, availability: _WatchedAvailability) -> None:
        """Waits until the kind is served, and later switches to another version if only that is still served.

        A kind that is no longer served in any version counts as unchanged: a starting kube-apiserver may omit CRDs for
        a moment, and treating them as removed would delete everything that depends on them."""
        await availability.wait_until_served(self._cluster)
        while True:
            await asyncio.sleep(_CHECK_SECONDS)
            unreachable = [each for each in self.all if not each.reachable and each.resource == availability.resource]
            found = await availability.find_served_version(self._cluster) if unreachable else None
            if found is not None and found != availability.resource:
                _logger.info("kube-apiserver now serves %s in version %s", availability.name, found.version)
                for informer in unreachable:
                    self._stop(informer)
                availability.notify(found)

    def _stop(self, informer: Informer) -> None:
        self._found = {key: each for key, each in self._found.items() if each is not informer}
        if (task := self._running.pop(informer, None)) is not None:
            task.cancel()


async def _lacks(cluster: ClusterClient, candidates: Sequence[ClusterResource]) -> bool:
    """True if the cluster serves none of them; False if it may serve one. A client answers all lookups that begin
    together by one discovery: a request for each would keep one more idle connection open, because aiohttp reuses the
    one that has been idle for longest."""
    try:
        served = await cluster.served_resources()
    except StatusError:
        # the lookup of a kind reports what is wrong
        return False
    return served is not None and not any((each.group, each.version, each.plural) in served for each in candidates)


def _until_tick(seconds: float) -> float:
    """The time until the next multiple of `seconds` on the event loop's clock: all lookups begin together."""
    left = seconds - asyncio.get_running_loop().time() % seconds
    # a timer may fire a little early
    return left if left > seconds / 10 else left + seconds


class _WatchedAvailability:
    def __init__(self, candidates: Sequence[ClusterResource], field_selector: str) -> None:
        self._candidates = tuple(candidates)
        self._field_selector = field_selector
        self._callbacks: list[Callable[[ClusterResource], None]] = []
        self._error_callbacks: list[Callable[[StatusError | None], None]] = []
        self._has_failed = False
        self.resource: ClusterResource | None = None
        self.checked = asyncio.Event()
        self._code, self._warn_at = 0, math.inf

    @property
    def name(self) -> str:
        first = self._candidates[0]
        return str(GroupResource(first.group, first.plural))

    def subscribe(
        self,
        callback: Callable[[ClusterResource], None],
        *,
        on_error: Callable[[StatusError | None], None] | None = None,
    ) -> None:
        if on_error is not None:
            self._error_callbacks.append(on_error)
        self._callbacks.append(callback)
        if self.resource is not None:
            callback(self.resource)

    async def wait_until_served(self, cluster: ClusterClient) -> None:
        found = await self.find_served_version(cluster)
        while found is None:
            is_known = self.checked.is_set()
            await asyncio.sleep(_until_tick(_CHECK_SECONDS if is_known else _FIRST_CHECK_SECONDS))
            # discovery may lag behind: the first answer does not depend on it
            if is_known and await _lacks(cluster, self._candidates):
                self._report(None)
            else:
                found = await self.find_served_version(cluster)
        self.notify(found)
        self.checked.set()

    def notify(self, found: ClusterResource) -> None:
        self.resource = found
        for callback in self._callbacks:
            callback(found)

    async def find_served_version(self, cluster: ClusterClient) -> ClusterResource | None:
        """The first candidate that is served, None if there is none or the check fails."""
        for candidate in self._candidates:
            try:
                await cluster.list(candidate, limit=1, field_selector=self._field_selector)
            except StatusError as error:
                if error.code != 404 and not isinstance(error, NotServed):
                    self._log_error(error)
                    self._report(error)
                    return None
            else:
                return candidate
        if not self.checked.is_set():
            _logger.debug("kube-apiserver does not serve %s yet", self.name)
            self.checked.set()
        if self.resource is None:
            self._report(None)
        return None

    def _report(self, error: StatusError | None) -> None:
        """Reports an error, or that there is none any more."""
        if error is None and not self._has_failed:
            return
        self._has_failed = error is not None
        if error is None:
            self._code = 0
        for on_error in self._error_callbacks:
            on_error(error)

    def _log_error(self, error: StatusError) -> None:
        """Logs an error once it has lasted. An unreachable cluster is logged by the informers already."""
        now = asyncio.get_running_loop().time()
        if isinstance(error, ClusterUnreachable) or error.code != self._code:
            self._code, self._warn_at = error.code, now + LASTING_SECONDS
        level = logging.WARNING if now >= self._warn_at else logging.DEBUG
        _logger.log(level, "cannot check whether kube-apiserver serves %s: %s", self.name, error)
        if level == logging.WARNING:
            self._warn_at = math.inf
