"""Accepts the names of CustomResourceDefinitions, serves their kinds, and deletes their objects with them."""

from __future__ import annotations

from collections.abc import Callable

from apiserver.meta.resource import Key, Object
from apiserver.request.options import DeleteOptions
from registry.embedded.custom.conditions import is_true, with_condition
from registry.embedded.custom.definition_kind import CLEANUP_FINALIZER, DEFINITIONS
from registry.embedded.custom.kinds import CustomKinds
from registry.embedded.custom.names import with_accepted_names
from registry.embedded.worker import Worker
from registry.sqlite.backend import SqliteBackend
from registry.sqlite.database import Change, Database


class DefinitionController:
    def __init__(self, *, database: Database, definitions: SqliteBackend, kinds: CustomKinds) -> None:
        self._database = database
        self._definitions = definitions
        self._kinds = kinds
        self._worker: Worker[str] = Worker("custom resource definitions", self._process)
        # definitions whose objects are being deleted, by the storage of these
        self._emptied: dict[str, str] = {}
        self.on_change: Callable[[], None] = _nothing
        """Called after the kinds that are served have changed, before a definition is Established."""

    async def serve_established(self) -> None:
        """Serves the kinds of the stored definitions. Called once, before anything else."""
        for cached in self._definitions.cache:
            crd = cached.object()
            if is_true(crd, "Established"):
                await self._kinds.serve(crd)

    def load(self) -> None:
        """Resumes what was interrupted and subscribes to changes."""
        for cached in self._definitions.cache:
            self._worker.add(cached.key.name)
        self._database.subscribe(self._on_change)

    async def run(self) -> None:
        await self._worker.run()

    def _on_change(self, change: Change) -> None:
        storage = change.target.resource
        if storage == DEFINITIONS:
            if change.object["metadata"].get("deletionTimestamp"):
                # from here on nothing is created that would have to be deleted
                self._kinds.terminating.add(change.target.key.name)
            self._worker.add(change.target.key.name)
        elif storage in self._emptied:
            self._worker.add(self._emptied[storage])

    async def _process(self, name: str) -> None:
        crd = await self._definitions.read(Key("", name), live=True)
        if crd is None:
            self._forget(name)
        elif crd["metadata"].get("deletionTimestamp"):
            self._kinds.terminating.add(name)
            await self._delete_objects(crd)
        else:
            await self._accept(crd)

    def _forget(self, name: str) -> None:
        self._kinds.terminating.discard(name)
        self._emptied = {storage: each for storage, each in self._emptied.items() if each != name}
        if self._kinds.remove(name):
            self.on_change()
        # its names are free now
        for cached in self._definitions.cache:
            self._worker.add(cached.key.name)

    async def _accept(self, crd: Object) -> None:
        name = crd["metadata"]["name"]
        others = [cached.object() for cached in self._definitions.cache if cached.key.name != name]
        accepted = with_accepted_names(crd, others)
        if is_true(accepted, "Established") and await self._kinds.serve(accepted):
            self.on_change()
        if accepted["status"] != crd.get("status"):
            await self._definitions.update(Key("", name), accepted, crd, dry_run=False)

    async def _delete_objects(self, crd: Object) -> None:
        name = crd["metadata"]["name"]
        if CLEANUP_FINALIZER not in (crd["metadata"].get("finalizers") or ()):
            return
        kind = self._kinds.get(name)
        if kind is None:
            await self._finish(crd, "NeverEstablished", "resource was never established")
            return
        self._emptied[kind.primary.storage] = name
        for cached in list(kind.primary.cache):
            obj = cached.object()
            if "deletionTimestamp" not in obj["metadata"]:
                await kind.primary.delete(cached.key, obj, DeleteOptions(propagation_policy="Background"))
        if not len(kind.primary.cache):
            await self._finish(crd, "InstanceDeletionCompleted", "removed all instances")
            return
        message = "CustomResource deletion is in progress"
        new = with_condition(crd, "Terminating", "True", "InstanceDeletionInProgress", message)
        if new["status"] != crd.get("status"):
            await self._definitions.update(Key("", name), new, crd, dry_run=False)

    async def _finish(self, crd: Object, reason: str, message: str) -> None:
        new = with_condition(crd, "Terminating", "False", reason, message)
        finalizers = [each for each in crd["metadata"]["finalizers"] if each != CLEANUP_FINALIZER]
        new["metadata"] = {**crd["metadata"], "finalizers": finalizers}
        await self._definitions.update(Key("", crd["metadata"]["name"]), new, crd, dry_run=False)


def _nothing() -> None:
    pass
