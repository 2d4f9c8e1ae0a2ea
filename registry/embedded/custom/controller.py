"""Accepts the names of CustomResourceDefinitions, serves their kinds, and deletes their objects with them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from apiserver.encoding.encoded_object import CachedObject
from apiserver.meta.resource import GroupKind, GroupResource, Key, Object
from apiserver.request.options import DeleteOptions
from registry.embedded.custom.conditions import is_true, with_condition
from registry.embedded.custom.definition_kind import CLEANUP_FINALIZER, DEFINITIONS
from registry.embedded.custom.kinds import CustomKinds
from registry.embedded.custom.names import NO_NAMES, BuiltInNames, taken_names, with_accepted_names
from registry.embedded.worker import Worker
from registry.sqlite.backend import SqliteBackend
from registry.sqlite.database import Change, Database


class DefinitionController:
    def __init__(self, *, database: Database, definitions: SqliteBackend, kinds: CustomKinds) -> None:
        self._database = database
        self._definitions = definitions
        self._kinds = kinds
        self._built_in = NO_NAMES
        self._worker: Worker[str] = Worker("custom resource definitions", self._process)
        self._taken: Sequence[Object] = ()
        # by the name of a definition, with its resourceVersion
        self._names: dict[str, tuple[int, Object]] = {}
        # definitions whose objects are being deleted, by the storage of these
        self._emptied: dict[str, str] = {}
        self.on_change: Callable[[], None] = _nothing
        """Called after the kinds that are served have changed, before a definition is Established."""

    async def serve_established(self) -> None:
        """Serves the kinds of the stored definitions. Called once, before anything else."""
        for cached in self._definitions.cache:
            crd = cached.object()
            # an earlier release may have accepted the name of a built-in kind
            if is_true(crd, "Established") and not self._built_in.exclude(crd):
                await self._kinds.serve(crd)

    def load(self) -> None:
        """Resumes what was interrupted and subscribes to changes."""
        self._add_all()
        self._database.subscribe(self._on_change)

    def reserve(self, names: BuiltInNames) -> None:
        """From now on no definition gets these names. A kind that has one of them is not served any more."""
        self._built_in = names
        for cached in self._definitions.cache:
            if self._kinds.get(cached.key.name) is not None and names.exclude(cached.object()):
                self._kinds.remove(cached.key.name)
        self._add_all()

    def take_names(self, kinds: Iterable[tuple[GroupResource, GroupKind]]) -> None:
        """From now on these kinds, and no others, are served by something else as if they had definitions: no other
        definition gets their names, and one that has them keeps them."""
        taken = [taken_names(resource, kind) for resource, kind in kinds]
        if taken != self._taken:
            self._taken = taken
            self._add_all()

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
        self._names.pop(name, None)
        self._emptied = {storage: each for storage, each in self._emptied.items() if each != name}
        if self._kinds.remove(name):
            self.on_change()
        # its names are free now
        self._add_all()

    def _add_all(self) -> None:
        for cached in self._definitions.cache:
            self._worker.add(cached.key.name)

    async def _accept(self, crd: Object) -> None:
        name = crd["metadata"]["name"]
        others = [self._names_of(cached) for cached in self._definitions.cache if cached.key.name != name]
        accepted = with_accepted_names(crd, (*others, *self._taken), self._built_in)
        if is_true(accepted, "Established") and await self._kinds.serve(accepted):
            self.on_change()
        if accepted["status"] != crd.get("status"):
            await self._definitions.update(Key("", name), accepted, crd, dry_run=False)

    def _names_of(self, cached: CachedObject) -> Object:
        """The group and the accepted names of a definition, in its form. To parse all definitions for each that
        changes would take long."""
        version, names = self._names.get(cached.key.name, (-1, {}))
        if version != cached.rv:
            crd = cached.object()
            accepted = (crd.get("status") or {}).get("acceptedNames")
            names = {"spec": {"group": crd["spec"]["group"]}, "status": {"acceptedNames": accepted}}
            self._names[cached.key.name] = cached.rv, names
        return names

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
