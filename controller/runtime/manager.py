"""Controllers: a queue of keys, a reconciler, and workers; they run on the replica that leads."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Hashable, Iterable, Sequence
from typing import Any, Generic, Protocol, TypeVar

from apiserver.meta.errors import StatusError
from controller.runtime.apply import ForeignObject
from controller.runtime.workqueue import WorkQueue
from controller.runtime.write_gate import NotLeading
from registry.cluster.interface import is_namespace_terminating_error

_logger = logging.getLogger(__name__)

K = TypeVar("K", bound=Hashable)
K_contra = TypeVar("K_contra", bound=Hashable, contravariant=True)


class Reconciler(Protocol[K_contra]):
    async def reconcile(self, key: K_contra) -> None:
        """Bring what belongs to `key` to what was asked. Whatever it raises, the key is tried again, ever later; except
        when the host says that the namespace ends, for then no try will help, and its end is an event."""
        ...


class Controller(Generic[K]):
    """`seed` gives every key there is: whoever comes to lead does not know what its predecessor left undone."""

    def __init__(
        self,
        *,
        name: str,
        queue: WorkQueue[K],
        reconciler: Reconciler[K],
        initial_keys: Callable[[], Iterable[K]],
        workers: int = 8,
    ) -> None:
        self.name = name
        self._queue = queue
        self._reconciler = reconciler
        self._seed = initial_keys
        self._workers = workers

    async def run(self) -> None:
        """Works until it is cancelled."""
        for key in self._seed():
            self._queue.add(key)
        async with asyncio.TaskGroup() as group:
            for number in range(self._workers):
                group.create_task(self._work(), name=f"{self.name}-{number}")

    async def _work(self) -> None:
        while True:
            key = await self._queue.get()
            try:
                await self._reconcile(key)
            except asyncio.CancelledError:
                self._queue.add(key)
                raise
            finally:
                self._queue.done(key)
            # a full queue of keys with nothing to do must not keep requests waiting
            await asyncio.sleep(0)

    async def _reconcile(self, key: K) -> None:
        try:
            await self._reconciler.reconcile(key)
        except NotLeading:
            _logger.debug("%s %s: not leading", self.name, key)
        except StatusError as e:
            if is_namespace_terminating_error(e):
                _logger.debug("%s %s: %s", self.name, key, e.message)
                self._queue.forget(key)
                return
            # what changed under our hands, or a host that is away: the next try will do
            level = logging.DEBUG if e.code == 409 else logging.WARNING
            _logger.log(level, "%s %s: %d %s", self.name, key, e.code, e.message)
        except ForeignObject as e:
            _logger.warning("%s %s: %s", self.name, key, e)
        except Exception:
            _logger.exception("%s %s: cannot be reconciled", self.name, key)
        else:
            self._queue.forget(key)
            return
        self._queue.add_rate_limited(key)


class Runnable(Protocol):
    @property
    def name(self) -> str: ...

    async def run(self) -> None: ...


class Elector(Protocol):
    async def run(self, lead: Callable[[], Awaitable[Any]]) -> None:
        """Call `lead` whenever this replica comes to lead, and cancel it when it no longer does."""
        ...


class ControllerManager:
    """All controllers in one TaskGroup: the first one to fail ends the process, loudly."""

    def __init__(self, *, controllers: Sequence[Runnable], elector: Elector | None = None) -> None:
        """Without an elector, this process is alone."""
        self._controllers = tuple(controllers)
        self._elector = elector

    async def run(self) -> None:
        if self._elector is None:
            await self._lead()
        else:
            await self._elector.run(self._lead)

    async def _lead(self) -> None:
        async with asyncio.TaskGroup() as group:
            for controller in self._controllers:
                group.create_task(controller.run(), name=controller.name)
