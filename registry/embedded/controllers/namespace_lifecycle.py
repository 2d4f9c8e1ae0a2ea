"""Deletes the contents of terminating Namespaces and then the Namespaces themselves."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from apiserver.meta import object_meta as meta
from apiserver.meta.resource import Key, Object
from apiserver.request.options import DeleteOptions
from registry.embedded.kinds.core_validation import NAMESPACE_FINALIZER
from registry.embedded.worker import Worker
from registry.sqlite.backend import NAMESPACES, SqliteBackend
from registry.sqlite.database import Change, Database


class NamespaceController:
    """One pass finds all contents of a terminating Namespace: the database rejects further creates in it."""

    def __init__(self, *, database: Database, backends: Mapping[str, SqliteBackend]) -> None:
        self._database = database
        self._namespaces = backends[NAMESPACES]
        self._backends = backends
        self._terminating: set[str] = set()
        self._worker: Worker[str] = Worker("namespace deletion", self._process)

    def load(self) -> None:
        """Resumes deletions that were interrupted and subscribes to changes."""
        for cached in self._namespaces.cache:
            self._enqueue_if_terminating(cached.key.name, cached.object())
        self._database.subscribe(self._on_change)

    async def run(self) -> None:
        await self._worker.run()

    def _on_change(self, change: Change) -> None:
        key = change.target.key
        if change.target.resource == NAMESPACES:
            if change.type == "DELETED":
                self._terminating.discard(key.name)
            else:
                self._enqueue_if_terminating(key.name, change.object)
        elif key.namespace in self._terminating:
            self._worker.add(key.namespace)

    def _enqueue_if_terminating(self, name: str, namespace: Object) -> None:
        if namespace["metadata"].get("deletionTimestamp"):
            self._terminating.add(name)
            self._worker.add(name)

    async def _process(self, name: str) -> None:
        if name not in self._terminating:
            return
        contents = [backend for backend in self._backends.values() if backend.resource.namespaced]
        for backend in contents:
            for cached in list(backend.cache.items(name)):
                obj = cached.object()
                if "deletionTimestamp" not in obj["metadata"]:
                    await backend.delete(cached.key, obj, DeleteOptions(propagation_policy="Background"))
        remaining = {backend: [cached.object() for cached in backend.cache.items(name)] for backend in contents}
        await self._update_namespace(name, {backend: objects for backend, objects in remaining.items() if objects})

    async def _update_namespace(self, name: str, remaining: Mapping[SqliteBackend, list[Object]]) -> None:
        current = await self._namespaces.read(Key("", name), live=True)
        if current is None:
            return
        new = dict(current)
        if remaining:
            new["status"] = _with_conditions(current.get("status") or {}, remaining)
        else:
            spec = current.get("spec") or {}
            finalizers = [each for each in spec.get("finalizers") or () if each != NAMESPACE_FINALIZER]
            new["spec"] = {**spec, "finalizers": finalizers}
        if new != current:
            await self._namespaces.update(Key("", name), new, current, dry_run=False)


def _with_conditions(status: Object, remaining: Mapping[SqliteBackend, list[Object]]) -> Object:
    """Returns the status with conditions for the remaining contents. An unchanged condition keeps its
    lastTransitionTime."""
    # kube-controller-manager writes the dot even if the group is empty
    counts = {
        f"{backend.resource.plural}.{backend.resource.group}": len(objects) for backend, objects in remaining.items()
    }
    finalizers = Counter(
        finalizer
        for objects in remaining.values()
        for obj in objects
        for finalizer in obj["metadata"].get("finalizers") or ()
    )
    kinds = ", ".join(f"{resource} has {count} resource instances" for resource, count in sorted(counts.items()))
    names = ", ".join(f"{finalizer} in {count} resource instances" for finalizer, count in sorted(finalizers.items()))
    conditions = [
        _condition("NamespaceContentRemaining", "SomeResourcesRemain", f"Some resources are remaining: {kinds}"),
        _condition(
            "NamespaceFinalizersRemaining",
            "SomeFinalizersRemain",
            f"Some content in the namespace has finalizers remaining: {names}",
        ),
    ]
    current = {condition.get("type"): condition for condition in status.get("conditions") or ()}
    return {**status, "conditions": [_keep_transition_time(current.get(each["type"]), each) for each in conditions]}


def _condition(type_: str, reason: str, message: str) -> Object:
    return {"type": type_, "status": "True", "reason": reason, "message": message}


def _keep_transition_time(current: Object | None, wanted: Object) -> Object:
    if current is not None and all(current.get(name) == value for name, value in wanted.items()):
        return current
    return {**wanted, "lastTransitionTime": meta.now_rfc3339()}
