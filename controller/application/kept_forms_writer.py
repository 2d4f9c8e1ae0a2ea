"""Keeps the forms of kinds that are in force in a ConfigMap: every replica reads it, the leader writes it.

Replicas that see definitions change in different steps can decide differently. Those that do not lead take over what
the leader has decided.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping, Sequence

from apiserver.meta.errors import StatusError
from apiserver.meta.resource import Key, Object
from controller.runtime.apply import ClusterWriter, create_merge_patch
from registry.application.definition import ApplicationDefinition
from registry.application.kept_forms import KEY, NAME, KeptForms, sources_of, to_data
from registry.cluster.event_handlers import NoOpEventHandler
from registry.cluster.interface import CONFIGMAPS

_logger = logging.getLogger(__name__)


class KeptFormsReader(NoOpEventHandler):
    """The event handler of the informer of the ConfigMap. `on_change` is called after each change."""

    def __init__(self) -> None:
        self.settled = asyncio.Event()
        """Set when the ConfigMap has been read, or cannot be read."""
        self.is_read = False
        self.observed: Object | None = None
        self.on_change: Callable[[], None] = _nothing
        self._new: Object | None = None

    def take(self) -> Mapping[str, Object]:
        """The sources of the stored forms, if these have changed since the last call."""
        new, self._new = self._new, None
        return sources_of(new) if new is not None else {}

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


class KeptFormsReconciler:
    """The key is that of the ConfigMap. Writes nothing before the forms are known, and the ConfigMap has been read.

    Nothing to keep is no reason for a ConfigMap, either: Kubernetes records no field manager of an object that is
    created without fields, nor of any later update of it.
    """

    def __init__(
        self,
        *,
        writer: ClusterWriter,
        reader: KeptFormsReader,
        forms: Callable[[], Mapping[str, ApplicationDefinition] | None],
    ) -> None:
        self._writer = writer
        self._reader = reader
        self._forms = forms
        self._kept: tuple[Mapping[str, ApplicationDefinition], KeptForms] | None = None

    async def reconcile(self, key: Key) -> None:
        forms = self._forms()
        if forms is None or not self._reader.is_read:
            return
        kept = await self._to_data(forms)
        observed = self._reader.observed
        if observed is None and not kept.data:
            return
        if observed is None:
            metadata = {"namespace": key.namespace, "name": key.name}
            await self._writer.create(CONFIGMAPS, {"metadata": metadata, KEY: dict(kept.data)})
            return
        gone = dict.fromkeys((observed.get(KEY) or {}).keys() - kept.data.keys())
        if changes := create_merge_patch(observed, {KEY: {**gone, **kept.data}}):
            await self._writer.patch(CONFIGMAPS, observed, changes)

    async def _to_data(self, forms: Mapping[str, ApplicationDefinition]) -> KeptForms:
        if self._kept is not None and self._kept[0] is forms:
            return self._kept[1]
        kept = await asyncio.to_thread(to_data, forms)
        if kept.left_out and (self._kept is None or self._kept[1].left_out != kept.left_out):
            _logger.warning(
                "ConfigMap %s has no room for these kinds, whose form in force a restart forgets: %s",
                NAME,
                ", ".join(kept.left_out),
            )
        self._kept = forms, kept
        return kept


def _nothing() -> None:
    pass
