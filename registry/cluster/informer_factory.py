"""The informers of the process: one of each kind and selection, whoever listens, and kinds that may come later."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence
from typing import Protocol

from apiserver.meta.errors import StatusError
from apiserver.meta.resource import Object
from registry.cluster.informer import Informer
from registry.cluster.interface import ClusterClient, ClusterResource, ClusterUnreachable, NotServed

_logger = logging.getLogger(__name__)
_LOOK_SECONDS = 10.0
# A host that could not be asked has said nothing: it is asked again soon.
_ASK_SECONDS = 1.0


class Availability(Protocol):
    """A kind that the host may come to serve."""

    @property
    def resource(self) -> ClusterResource | None:
        """The kind in the version that was found, None as long as it is not served."""
        ...

    @property
    def checked(self) -> asyncio.Event:
        """Set once the host has said whether it serves the kind."""
        ...

    def subscribe(
        self, callback: Callable[[ClusterResource], None], *, on_error: Callable[[StatusError], None] | None = None
    ) -> None:
        """Have `callback` called when the kind has been found, at once if it has been already; and again, should the
        host come to serve it in another version only. `refused` is told why the host could not be asked, each time."""
        ...


class InformerFactory:
    """To be asked for informers before they run, or while they do: those are started at once."""

    def __init__(self, cluster: ClusterClient, *, shared: Sequence[Informer] = ()) -> None:
        """`shared` are informers that somebody else runs; who asks for their kinds gets them."""
        self._cluster = cluster
        self._found: dict[tuple[ClusterResource, str, str], Informer] = {}
        self._shared = {informer.resource: informer for informer in shared}
        self._sought: dict[tuple[ClusterResource, ...], _Sought] = {}
        self._start: Callable[[Informer], None] | None = None
        self._running: dict[Informer, asyncio.Task[None]] = {}

    @property
    def all(self) -> Sequence[Informer]:
        """Those that `run` runs."""
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
        """The informer of a kind and selection; `keep` and `slim` are those of who asks first."""
        if not label_selector and not field_selector and resource in self._shared:
            return self._shared[resource]
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
            )
            if self._start is not None:
                self._start(informer)
        return informer

    def is_served(self, resource: ClusterResource) -> bool:
        """Whether the host serves the kind, as far as is known."""
        return any(
            each.synced.is_set() and each.reachable for each in self._found.values() if each.resource == resource
        )

    def watch_availability(self, group: str, kind: str, versions: Sequence[str]) -> Availability:
        """A kind in the first of these versions that the host serves. It is looked for while `run` runs.

        All who ask for the same are told at once, so that they can add handlers to one informer before it runs.
        """
        plural = f"{kind.lower()}s"
        candidates = tuple(ClusterResource(group, version, plural, kind) for version in versions)
        return self._sought.setdefault(candidates, _Sought(candidates))

    async def wait_until_checked(self) -> None:
        """Wait until of each kind that is looked for it is known whether the host serves it."""
        for sought in tuple(self._sought.values()):
            await sought.checked.wait()

    async def run(self) -> None:
        """Runs until it is cancelled."""
        async with asyncio.TaskGroup() as group:

            def start(informer: Informer) -> None:
                # after the caller is done: it has handlers to add
                name = f"informer-{informer.resource.plural}"
                self._running[informer] = group.create_task(informer.run(), name=name)

            self._start = start
            for informer in self.all:
                start(informer)
            for sought in self._sought.values():
                group.create_task(self._look_for(sought), name=f"look-for-{sought.name}")
            await asyncio.Event().wait()

    async def _look_for(self, sought: _Sought) -> None:
        """A kind that was there and is not, of no version, stays as it was seen: a host that starts may say so of kinds
        that it has, and whoever took it at its word would take down everything that hangs on them."""
        await sought.look(self._cluster)
        while True:
            await asyncio.sleep(_LOOK_SECONDS)
            unseen = [each for each in self.all if each.resource == sought.resource and not each.reachable]
            found = await sought.served(self._cluster) if unseen else None
            if found is not None and found != sought.resource:
                _logger.info("the host serves %s as %s from now on", sought.name, found.version)
                for informer in unseen:
                    self._stop(informer)
                sought.tell(found)

    def _stop(self, informer: Informer) -> None:
        self._found = {key: each for key, each in self._found.items() if each is not informer}
        if (task := self._running.pop(informer, None)) is not None:
            task.cancel()


class _Sought:
    def __init__(self, candidates: Sequence[ClusterResource]) -> None:
        self._candidates = tuple(candidates)
        self._callbacks: list[Callable[[ClusterResource], None]] = []
        self._refused: list[Callable[[StatusError], None]] = []
        self.resource: ClusterResource | None = None
        self.checked = asyncio.Event()
        self._told = False

    @property
    def name(self) -> str:
        first = self._candidates[0]
        return f"{first.plural}.{first.group}"

    def subscribe(
        self, callback: Callable[[ClusterResource], None], *, on_error: Callable[[StatusError], None] | None = None
    ) -> None:
        if on_error is not None:
            self._refused.append(on_error)
        self._callbacks.append(callback)
        if self.resource is not None:
            callback(self.resource)

    async def look(self, cluster: ClusterClient) -> None:
        found = await self.served(cluster)
        while found is None:
            await asyncio.sleep(_LOOK_SECONDS if self.checked.is_set() else _ASK_SECONDS)
            found = await self.served(cluster)
        self.tell(found)
        self.checked.set()

    def tell(self, found: ClusterResource) -> None:
        self.resource = found
        for callback in self._callbacks:
            callback(found)

    async def served(self, cluster: ClusterClient) -> ClusterResource | None:
        """None too if the host cannot be asked: then nothing is known."""
        for candidate in self._candidates:
            try:
                await cluster.list(candidate, limit=1)
            except StatusError as error:
                if error.code != 404 and not isinstance(error, NotServed):
                    self._tell(error)
                    for refused in self._refused:
                        refused(error)
                    return None
            else:
                return candidate
        if not self.checked.is_set():
            _logger.debug("the host does not serve %s: it is looked for until it does", self.name)
            self.checked.set()
        return None

    def _tell(self, error: StatusError) -> None:
        """Once, unless the host is only away: then others say so."""
        level = logging.DEBUG if self._told or isinstance(error, ClusterUnreachable) else logging.WARNING
        _logger.log(level, "whether the host serves %s is not known: %s", self.name, error)
        self._told = self._told or level == logging.WARNING
