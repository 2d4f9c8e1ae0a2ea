"""The garbage collector: deletes objects that have lost all their owners, in the order that the propagation policy
requires (WIRE-J44 to WIRE-J47)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from apiserver.meta.resource import GroupKind, Object
from apiserver.request.options import DeleteOptions
from registry.embedded.controllers.ownership_graph import (
    Action,
    DeleteDependents,
    DeleteObject,
    Node,
    OrphanDependents,
    OwnerKind,
    OwnershipGraph,
    RemoveFinalizer,
    RemoveOwnerReferences,
    node_of,
)
from registry.embedded.worker import Worker
from registry.sqlite.backend import SqliteBackend
from registry.sqlite.database import Change, Database
from registry.sqlite.statements import StorageKey

# The graph has an object a moment after it is stored, but not one of a kind that was not served at the start.
_GRAPH_SECONDS = 0.2


class GarbageCollector:
    """`backends` has one backend for each storage; `kinds` are all kinds that an ownerReference may name."""

    def __init__(
        self,
        *,
        database: Database,
        backends: Mapping[str, SqliteBackend],
        kinds: Mapping[GroupKind, OwnerKind],
    ) -> None:
        self._database = database
        self._backends = backends
        self._graph = OwnershipGraph(kinds)
        self._worker: Worker[str] = Worker("garbage collection", self._process)

    def load(self) -> None:
        """Builds the graph from the stored objects and subscribes to changes. The backends must be loaded."""
        for storage, backend in self._backends.items():
            for cached in backend.cache:
                self._graph.put(node_of(StorageKey(storage, cached.key), cached.object()))
        for backend in self._backends.values():
            for cached in backend.cache:
                self._worker.add(cached.uid)
        self._database.subscribe(self._on_change)

    async def run(self) -> None:
        await self._worker.run()

    async def join(self) -> None:
        """Waits until every queued object has been processed."""
        await self._worker.join()

    def _on_change(self, change: Change) -> None:
        node = node_of(change.target, change.object)
        before = self._graph.node(node.uid)
        # an owner that waits for its dependents is processed again whenever one of them changes
        owners = {reference.uid for each in (before, node) if each is not None for reference in each.owners}
        if change.type == "DELETED":
            self._graph.drop(node.uid)
        else:
            self._graph.put(node)
            if node.owners or node.deleting:
                self._worker.add(node.uid)
        if change.type == "DELETED" or node.waits_for_dependents:
            self._enqueue(self._graph.dependents(node.uid))
        for uid in owners:
            owner = self._graph.node(uid)
            if owner is not None and owner.deleting:
                self._worker.add(uid)

    def _enqueue(self, nodes: Sequence[Node]) -> None:
        for node in nodes:
            self._worker.add(node.uid)

    async def _process(self, uid: str) -> None:
        action = self._graph.next_action(uid)
        node = self._graph.node(uid)
        if action is not None and node is not None:
            await self._act(node, action)

    async def _act(self, node: Node, action: Action) -> None:
        match action:
            case DeleteDependents(dependents):
                self._enqueue([each for each in dependents if not each.deleting])
            case OrphanDependents(dependents):
                for dependent in dependents:
                    await self._remove_owner_references(dependent, (node.uid,))
            case RemoveOwnerReferences(uids):
                await self._remove_owner_references(node, uids)
            case RemoveFinalizer(finalizer):
                await self._remove_finalizer(node, finalizer)
            case DeleteObject():
                await self._delete(node, action)

    async def _delete(self, node: Node, action: DeleteObject) -> None:
        for uid in action.absent_owners:
            # the graph is updated only after an object is stored, so it may lack the owner
            if await self._database.contains_uid(uid):
                self._worker.add_after(node.uid, _GRAPH_SECONDS)
                return
        backend, current = await self._current(node)
        if current is None:
            return
        if action.unblock_owners:
            references = current["metadata"].get("ownerReferences") or ()
            unblocked = [{**reference, "blockOwnerDeletion": False} for reference in references]
            current = await self._update(backend, node, current, {"ownerReferences": unblocked})
        await backend.delete(node.storage_key.key, current, DeleteOptions(propagation_policy=action.policy))

    async def _remove_owner_references(self, node: Node, uids: Sequence[str]) -> None:
        backend, current = await self._current(node)
        if current is not None:
            references = current["metadata"].get("ownerReferences") or ()
            remaining = [reference for reference in references if reference.get("uid") not in uids]
            await self._update(backend, node, current, {"ownerReferences": remaining})

    async def _remove_finalizer(self, node: Node, finalizer: str) -> None:
        backend, current = await self._current(node)
        if current is not None:
            remaining = [each for each in current["metadata"].get("finalizers") or () if each != finalizer]
            await self._update(backend, node, current, {"finalizers": remaining})

    async def _current(self, node: Node) -> tuple[SqliteBackend, Object | None]:
        """Returns the stored object, None if it is deleted or replaced by another object of the same name."""
        backend = self._backends[node.storage_key.resource]
        current = await backend.read(node.storage_key.key, live=True)
        if current is not None and current["metadata"]["uid"] != node.uid:
            current = None
        return backend, current

    async def _update(
        self, backend: SqliteBackend, node: Node, current: Object, fields: Mapping[str, list[Any]]
    ) -> Object:
        metadata = {**current["metadata"], **fields}
        new = {**current, "metadata": {name: value for name, value in metadata.items() if value != []}}
        return await backend.update(node.storage_key.key, new, current, dry_run=False)
