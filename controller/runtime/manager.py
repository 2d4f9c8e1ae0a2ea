"""Controllers, each a queue of keys with a reconciler and workers, and the manager that runs them on the leader."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Hashable, Iterable, Sequence
from typing import Any, Generic, Protocol, TypeVar

from apiserver.cooperative import Turns
from apiserver.meta.errors import StatusError
from controller.runtime.apply import ForeignObject
from controller.runtime.error_log import ErrorLog
from controller.runtime.workqueue import WorkQueue
from controller.runtime.write_gate import NotLeading
from registry.cluster.interface import is_namespace_terminating_error

_logger = logging.getLogger(__name__)

# Conflicts in a row that are other writers' changes; after more, which take a third of a second, something is wrong.
_RACES = 6

K = TypeVar("K", bound=Hashable)
K_contra = TypeVar("K_contra", bound=Hashable, contravariant=True)


class Reconciler(Protocol[K_contra]):
    async def reconcile(self, key: K_contra) -> None:
        """Bring the objects that belong to `key` to the desired state.

        If it raises, the key is retried with backoff, unless the error says that the namespace is being terminated: no
        retry can succeed before the namespace is deleted, and that event enqueues the key again."""
        ...


class Controller(Generic[K]):
    """`initial_keys` returns all existing keys: a new leader does not know which of them its predecessor reconciled."""

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
        self._initial_keys = initial_keys
        self._workers = workers
        self._turns = Turns()
        self._errors = ErrorLog[K](_logger)

    async def run(self) -> None:
        """Run the workers until cancelled."""
        for key in self._initial_keys():
            self._queue.add(key)
        async with asyncio.TaskGroup() as group:
            for number in range(self._workers):
                group.create_task(self._work(), name=f"{self.name}-{number}")

    async def _work(self) -> None:
        while True:
            key = await self._queue.get()
            try:
                # a long queue of keys that need no call must not delay requests
                await self._turns.wait(self.name)
                await self._reconcile(key)
            except asyncio.CancelledError:
                self._queue.add(key)
                raise
            finally:
                self._queue.done(key)

    async def _reconcile(self, key: K) -> None:
        try:
            await self._reconciler.reconcile(key)
        except NotLeading:
            _logger.debug("%s %s: not leading", self.name, key)
        except StatusError as e:
            if is_namespace_terminating_error(e):
                _logger.debug("%s %s: %s", self.name, key, e.message)
                self._succeeded(key)
                return
            # the object has changed meanwhile, or the cluster is unreachable: a retry resolves it
            is_race = e.code == 409 and self._queue.failures(key) < _RACES
            level = logging.DEBUG if is_race else logging.WARNING
            self._errors.failed(key, level, f"{self.name} {key}: {e.code} {e.message}")
        except ForeignObject as e:
            self._errors.failed(key, logging.WARNING, f"{self.name} {key}: {e}")
        except Exception as e:
            self._errors.failed(key, logging.ERROR, f"{self.name} {key}: cannot be reconciled: {e!r}", traceback=True)
        else:
            self._succeeded(key)
            return
        self._queue.add_rate_limited(key)

    def _succeeded(self, key: K) -> None:
        self._queue.forget(key)
        self._errors.succeeded(key)


class Runnable(Protocol):
    @property
    def name(self) -> str: ...

    async def run(self) -> None: ...


class Elector(Protocol):
    async def run(self, lead: Callable[[], Awaitable[Any]]) -> None:
        """Run `lead` whenever this replica becomes the leader, and cancel it when it no longer is."""
        ...


class ControllerManager:
    """Runs all controllers in one TaskGroup: the first one that fails ends the process with its error."""

    def __init__(self, *, controllers: Sequence[Runnable], elector: Elector | None = None) -> None:
        """Without an elector, the controllers run immediately: this is the only replica."""
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
