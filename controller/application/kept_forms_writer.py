"""Keeps the forms of kinds that are in force in a ConfigMap: every replica reads it, the leader writes it.

Replicas that see definitions change in different steps can decide differently. Those that do not lead take over what
the leader has decided.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from apiserver.meta.errors import StatusError
from apiserver.meta.resource import Key, Object
from controller.runtime.apply import ClusterWriter, create_merge_patch
from registry.application.definition import ApplicationDefinition
from registry.application.kept_forms import KEY, NAME, KeptForms, to_data
from registry.cluster.event_handlers import NoOpEventHandler
from registry.cluster.interface import CONFIGMAPS

_logger = logging.getLogger(__name__)
_FIRST_PAUSE, _LOGGED_PAUSE, _LONGEST_PAUSE = 0.25, 8.0, 256.0
_NAMED = 10
_CALM_SECONDS = 600.0
"""After so long without a write, the next one begins anew."""


class KeptFormsReader(NoOpEventHandler):
    """The event handler of the informer of the ConfigMap. `on_change` is called after each change."""

    def __init__(self) -> None:
        self.settled = asyncio.Event()
        """Set when the ConfigMap has been read, or cannot be read."""
        self.is_read = False
        self.observed: Object | None = None
        self.on_change: Callable[[], None] = _nothing
        self._new: Object | None = None

    def take(self) -> Object | None:
        """The ConfigMap, if it has changed since the last call."""
        new, self._new = self._new, None
        return new

    async def replace(self, items: Sequence[Object], rv: int) -> None:
        self._observe(next(iter(items), None))

    def apply(self, type: str, obj: Object, rv: int) -> None:
        self._observe(None if type == "DELETED" else obj)

    def set_cluster_error(self, error: StatusError | None) -> None:
        if error is not None and not self.settled.is_set():
            _logger.warning("ConfigMap %s cannot be read, so earlier forms of kinds are unknown: %s", NAME, error)
            self.settled.set()

    def _observe(self, configmap: Object | None) -> None:
        self.observed = self._new = configmap
        self.is_read = True
        self.settled.set()
        self.on_change()


class _Write(NamedTuple):
    """The last write, by the clock, and the seconds before the same forms may be written again."""

    data: Mapping[str, str]
    at: float
    pause: float


class KeptFormsReconciler:
    """The key is that of the ConfigMap. Writes nothing before the forms are known, and the ConfigMap has been read.

    Nothing to keep is no reason for a ConfigMap, either: Kubernetes records no field manager of an object that is
    created without fields, nor of any later update of it.

    Another writer, such as a replica of another version whose leader is another one, may store other forms, again and
    again. Each time that the same forms are to be written, the pause before it is twice as long.
    """

    def __init__(
        self,
        *,
        writer: ClusterWriter,
        reader: KeptFormsReader,
        forms: Callable[[], Mapping[str, ApplicationDefinition] | None],
        later: Callable[[float], None],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """`later` has the key reconciled again after so many seconds."""
        self._writer = writer
        self._reader = reader
        self._forms = forms
        self._later = later
        self._clock = clock
        self._kept: tuple[Mapping[str, ApplicationDefinition], KeptForms] | None = None
        self._last = _Write({}, float("-inf"), 0.0)

    async def reconcile(self, key: Key) -> None:
        forms = self._forms()
        if forms is None or not self._reader.is_read:
            return
        kept = await self._to_data(forms)
        observed = self._reader.observed
        if observed is None and not kept.data:
            return
        gone = dict.fromkeys(((observed or {}).get(KEY) or {}).keys() - kept.data.keys())
        changes = create_merge_patch(observed or {}, {KEY: {**gone, **kept.data}})
        if not changes or (pause := self._next_pause(kept.data)) is None:
            return
        if observed is None:
            metadata = {"namespace": key.namespace, "name": key.name}
            await self._writer.create(CONFIGMAPS, {"metadata": metadata, KEY: dict(kept.data)})
        else:
            await self._writer.patch(CONFIGMAPS, observed, changes)
        if pause == _LOGGED_PAUSE:
            _logger.warning("ConfigMap %s: another client undoes each write, so it is written more rarely", NAME)
        self._last = _Write(kept.data, self._clock(), pause)

    def _next_pause(self, data: Mapping[str, str]) -> float | None:
        """The pause after a write of these forms now; None, and `later` is called, if they were written last, and not
        long enough ago."""
        now, last = self._clock(), self._last
        if data != last.data or now >= last.at + _CALM_SECONDS:
            return 0.0
        if now < last.at + last.pause:
            self._later(last.at + last.pause - now)
            return None
        return min(_LONGEST_PAUSE, max(_FIRST_PAUSE, 2 * last.pause))

    async def _to_data(self, forms: Mapping[str, ApplicationDefinition]) -> KeptForms:
        if self._kept is not None and self._kept[0] is forms:
            return self._kept[1]
        kept = await asyncio.to_thread(to_data, forms)
        if kept.left_out and (self._kept is None or self._kept[1].left_out != kept.left_out):
            more = f", and {len(kept.left_out) - _NAMED} more" if len(kept.left_out) > _NAMED else ""
            _logger.warning(
                "ConfigMap %s has no room for these kinds, whose form in force a restart forgets: %s%s",
                NAME,
                ", ".join(kept.left_out[:_NAMED]),
                more,
            )
        self._kept = forms, kept
        return kept


def _nothing() -> None:
    pass
