"""An in-memory cluster for tests."""

from __future__ import annotations

import asyncio
from bisect import bisect_right
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from operator import attrgetter
from typing import Any

import jsonpatch

from apiserver.encoding.offload import json_size
from apiserver.json.values import deep_copy
from apiserver.meta import errors
from apiserver.meta.errors import StatusError
from apiserver.meta.resource import GroupResource, Key, Object
from apiserver.patch.media_types import JSON_PATCH
from registry.cluster.interface import (
    NAMESPACES,
    ClusterResource,
    ClusterUnreachable,
    ServedResource,
    Visited,
    WatchEvent,
    do_nothing,
)
from registry.cluster.outage_log import OutageLog
from tests.fake_cluster_events import Change, event_of, matcher, objects_at

_EPOCH = "2026-01-01T00:00:00Z"
_PROPAGATION_FINALIZERS = {"Foreground": "foregroundDeletion", "Orphan": "orphan"}


@dataclass(frozen=True, slots=True)
class Write:
    """A write that the fake cluster accepted; `verb` is create, update, patch or delete."""

    verb: str
    resource: ClusterResource
    key: Key
    subresource: str = ""
    dry_run: bool = False
    field_manager: str = ""


CallHook = Callable[[str, ClusterResource, Key], Awaitable[None]]
ReviewHandler = Callable[[str, Object], Object]


# asyncio shows the result of a task in its representation, which would be that of thousands of objects
@dataclass(repr=False)
class FakeCluster:
    """A ClusterClient over dicts, with resourceVersions, conflicts, finalizers, generations, dry run and watches. As in
    a real cluster, nothing can be created in a terminating Namespace.

    `writes` records accepted writes. `unreachable` makes every call raise ClusterUnreachable and ends watches.
    `before` is awaited before every call; it may raise an error, or write to cause a race. Server-side apply only
    merges like a merge patch, without field ownership.
    """

    before: CallHook | None = None
    reviews: ReviewHandler | None = None
    writes: list[Write] = field(default_factory=list)
    outages: OutageLog = field(default_factory=OutageLog)
    _objects: dict[tuple[str, str, Key], Object] = field(default_factory=dict)
    _history: list[Change] = field(default_factory=list)
    _compacted: int = 0
    _rv: int = 100
    _unreachable: bool = False
    _changed: asyncio.Event = field(default_factory=asyncio.Event)

    @property
    def rv(self) -> int:
        """The resourceVersion of the last change."""
        return self._rv

    @property
    def unreachable(self) -> bool:
        return self._unreachable

    @unreachable.setter
    def unreachable(self, value: bool) -> None:
        self._unreachable = value
        self._wake()

    def add(self, res: ClusterResource, *objects: Object) -> None:
        """Stores objects as another client would, unrecorded, and sets the system fields that they lack."""
        for obj in objects:
            self._store(res, self._with_system_fields(res, deep_copy(obj)), "ADDED")

    def peek(self, res: ClusterResource, namespace: str, name: str) -> Object | None:
        """Returns the stored object, for assertions."""
        return deep_copy(self._objects.get(_address(res, Key(namespace if res.namespaced else "", name))))

    def peek_all(self, res: ClusterResource) -> list[Object]:
        """Returns all stored objects of a kind, for assertions."""
        return [deep_copy(obj) for obj in self._objects_of(res)]

    def clear_writes(self) -> None:
        self.writes.clear()

    def copy(self) -> FakeCluster:
        """Returns another cluster with these objects and no history."""
        copied = FakeCluster(_rv=self._rv, _compacted=self._rv)
        copied._objects |= {address: deep_copy(obj) for address, obj in self._objects.items()}
        return copied

    def compact(self) -> None:
        """Drops the history, so that watches from an earlier resourceVersion are Expired."""
        self._history.clear()
        self._compacted = self._rv

    async def get(self, res: ClusterResource, namespace: str, name: str) -> Object:
        await self._before_call("get", res, Key(namespace, name))
        return deep_copy(self._find(res, namespace, name))

    async def list(
        self,
        res: ClusterResource,
        namespace: str = "",
        *,
        label_selector: str = "",
        field_selector: str = "",
        resource_version: str = "",
        limit: int = 0,
        continue_token: str = "",
    ) -> Object:
        await self._before_call("list", res, Key(namespace, ""))
        matches = matcher(namespace, label_selector, field_selector)
        start, _, at = continue_token.partition("@")
        past = int(at or (resource_version if limit else "") or 0)
        version = past or self._rv
        if version < self._compacted:
            raise errors.Expired(f"too old resource version: {version} ({self._compacted})")
        found = objects_at(res, past, self._objects_of(res), self._history) if past else self._objects_of(res)
        found = sorted(found, key=lambda obj: _key(res, obj))
        items = [deep_copy(obj) for obj in found if matches(obj)][int(start or 0) :]
        metadata: Object = {"resourceVersion": str(version)}
        if limit and len(items) > limit:
            token = f"{int(start or 0) + limit}@{version}"
            metadata |= {"continue": token, "remainingItemCount": len(items) - limit}
            items = items[:limit]
        return {"apiVersion": res.api_version, "kind": f"{res.kind}List", "metadata": metadata, "items": items}

    async def each_list_item(
        self,
        res: ClusterResource,
        namespace: str = "",
        *,
        visit: Callable[[Object], None],
        resource_version: str = "",
        label_selector: str = "",
        field_selector: str = "",
    ) -> str:
        found = await self.list(res, namespace, label_selector=label_selector, field_selector=field_selector)
        for item in found["items"]:
            visit(item)
        version: str = found["metadata"]["resourceVersion"]
        return version

    async def visit_first(
        self, res: ClusterResource, namespace: str = "", *, visit: Callable[[Object], None], limit: int, max_bytes: int
    ) -> Visited:
        found = await self.list(res, namespace, limit=limit)
        count, size = 0, 0
        for item in found["items"]:
            size += json_size(item)
            if size > max_bytes:
                return Visited(count, size, truncated=True)
            visit(item)
            count += 1
        return Visited(count, size, truncated="continue" in found["metadata"])

    async def create(
        self, res: ClusterResource, obj: Object, *, namespace: str = "", dry_run: bool = False, field_manager: str = ""
    ) -> Object:
        new = self._with_system_fields(res, deep_copy(obj), namespace=namespace, is_new=True)
        key = _key(res, new)
        await self._before_call("create", res, key)
        if _address(res, key) in self._objects:
            raise errors.AlreadyExists(_group_resource(res), key.name)
        parent = self._objects.get(_address(NAMESPACES, Key("", key.namespace))) if res.namespaced else None
        if parent is not None and "deletionTimestamp" in parent["metadata"]:
            why = f"unable to create new content in namespace {key.namespace} because it is being terminated"
            raise errors.Forbidden(_group_resource(res), key.name, why)
        self.writes.append(Write("create", res, key, dry_run=dry_run, field_manager=field_manager))
        return new if dry_run else self._store(res, new, "ADDED", field_manager)

    async def update(
        self,
        res: ClusterResource,
        obj: Object,
        *,
        subresource: str = "",
        dry_run: bool = False,
        field_manager: str = "",
    ) -> Object:
        key = _key(res, obj)
        await self._before_call("update", res, key)
        return self._change("update", res, deep_copy(obj), subresource, dry_run, field_manager)

    async def patch(
        self,
        res: ClusterResource,
        namespace: str,
        name: str,
        body: Any,
        *,
        content_type: str,
        subresource: str = "",
        dry_run: bool = False,
        field_manager: str = "",
        force: bool = False,
    ) -> Object:
        key = Key(namespace if res.namespaced else "", name)
        await self._before_call("patch", res, key)
        if "apply" in content_type and _address(res, key) not in self._objects:
            return await self.create(res, body, namespace=namespace, dry_run=dry_run, field_manager=field_manager)
        current = deep_copy(self._find(res, namespace, name))
        changed = jsonpatch.apply_patch(current, body) if content_type == JSON_PATCH else _merge(current, body)
        return self._change("patch", res, changed, subresource, dry_run, field_manager)

    async def delete(
        self, res: ClusterResource, namespace: str, name: str, *, options: Mapping[str, Any] | None = None
    ) -> Object:
        key = Key(namespace if res.namespaced else "", name)
        await self._before_call("delete", res, key)
        current = deep_copy(self._find(res, namespace, name))
        _check_preconditions(res, current, (options or {}).get("preconditions") or {})
        dry_run = bool((options or {}).get("dryRun"))
        self.writes.append(Write("delete", res, key, dry_run=dry_run))
        metadata = current["metadata"]
        finalizer = _PROPAGATION_FINALIZERS.get((options or {}).get("propagationPolicy") or "")
        if finalizer and finalizer not in metadata.setdefault("finalizers", []):
            metadata["finalizers"].append(finalizer)
        if metadata.get("finalizers"):
            metadata.setdefault("deletionTimestamp", _EPOCH)
            metadata.setdefault("deletionGracePeriodSeconds", 0)
            return current if dry_run else self._store(res, current, "MODIFIED")
        if not dry_run:
            self._remove(res, current)
        return {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success"}

    async def watch(
        self,
        res: ClusterResource,
        namespace: str = "",
        *,
        resource_version: str,
        label_selector: str = "",
        field_selector: str = "",
        send_initial_events: bool = False,
        timeout_seconds: int = 300,
        on_open: Callable[[], object] = do_nothing,
    ) -> AsyncIterator[WatchEvent]:
        await self._before_call("watch", res, Key(namespace, ""))
        on_open()
        matches = matcher(namespace, label_selector, field_selector)
        seen = int(resource_version or 0)
        if send_initial_events:
            for event in self._initial(res, matches):
                yield event
            seen = self._rv
        elif seen < self._compacted:
            raise errors.Expired(f"too old resource version: {seen} ({self._compacted})")
        while not self._unreachable:
            changes = self._history[bisect_right(self._history, seen, key=attrgetter("rv")) :]
            seen = self._rv
            for change in changes:
                if change.resource == res and (change_event := event_of(change, matches)):
                    yield change_event
            if seen == self._rv and not self._unreachable:
                await self._changed.wait()

    async def served_resources(self) -> Collection[ServedResource] | None:
        """There is no aggregated discovery."""
        return None

    async def discover(self, api_version: str) -> Object:
        """Nothing is found by discovery."""
        raise StatusError(404, "NotFound", "the server could not find the requested resource")

    async def review(self, path: str, body: Object) -> Object:
        await self._before_call("review", ClusterResource("", "v1", path, ""), Key("", ""))
        if self.reviews is None:
            raise errors.UnknownPath()
        return self.reviews(path, body)

    async def _before_call(self, verb: str, res: ClusterResource, key: Key) -> None:
        if self.before is not None:
            await self.before(verb, res, key)
        if self._unreachable:
            raise ClusterUnreachable()

    def _objects_of(self, res: ClusterResource) -> Iterable[Object]:
        return [obj for (group, plural, _), obj in self._objects.items() if (group, plural) == (res.group, res.plural)]

    def _find(self, res: ClusterResource, namespace: str, name: str) -> Object:
        found = self._objects.get(_address(res, Key(namespace if res.namespaced else "", name)))
        if found is None:
            raise errors.NotFound(_group_resource(res), name)
        return found

    def _initial(self, res: ClusterResource, matches: Callable[[Object], bool]) -> Sequence[WatchEvent]:
        found = sorted(self._objects_of(res), key=lambda obj: _key(res, obj))
        events = [WatchEvent("ADDED", deep_copy(obj)) for obj in found if matches(obj)]
        metadata = {"resourceVersion": str(self._rv), "annotations": {"k8s.io/initial-events-end": "true"}}
        bookmark = {"apiVersion": res.api_version, "kind": res.kind, "metadata": metadata}
        return [*events, WatchEvent("BOOKMARK", bookmark)]

    def _with_system_fields(
        self, res: ClusterResource, obj: Object, *, namespace: str = "", is_new: bool = False
    ) -> Object:
        obj.setdefault("apiVersion", res.api_version)
        obj.setdefault("kind", res.kind)
        metadata = obj.setdefault("metadata", {})
        if res.namespaced and namespace:
            metadata.setdefault("namespace", namespace)
        if is_new:
            for name in ("uid", "creationTimestamp", "resourceVersion", "generation"):
                metadata.pop(name, None)
        metadata.setdefault("uid", f"00000000-0000-4000-8000-{self._rv + 1:012d}")
        metadata.setdefault("creationTimestamp", _EPOCH)
        metadata.setdefault("generation", 1)
        return obj

    def _change(
        self, verb: str, res: ClusterResource, new: Object, subresource: str, dry_run: bool, field_manager: str
    ) -> Object:
        key = _key(res, new)
        current = self._find(res, key.namespace, key.name)
        expected = new["metadata"].get("resourceVersion")
        if expected and expected != current["metadata"]["resourceVersion"]:
            raise errors.Conflict(_group_resource(res), key.name)
        if subresource == "status":
            new = {**deep_copy(current), "status": new.get("status")}
        for name in ("uid", "creationTimestamp", "generation", "resourceVersion", "deletionTimestamp"):
            if name in current["metadata"]:
                new["metadata"][name] = current["metadata"][name]
        if new.get("spec") != current.get("spec"):
            new["metadata"]["generation"] = current["metadata"]["generation"] + 1
        self.writes.append(Write(verb, res, key, subresource, dry_run, field_manager))
        if dry_run or new == current:
            return new
        if new["metadata"].get("deletionTimestamp") and not new["metadata"].get("finalizers"):
            return self._remove(res, new)
        return self._store(res, new, "MODIFIED", field_manager)

    def _store(self, res: ClusterResource, obj: Object, kind: str, manager: str = "") -> Object:
        address = _address(res, _key(res, obj))
        self._publish(res, obj, kind, self._objects.get(address), manager)
        self._objects[address] = obj
        return deep_copy(obj)

    def _remove(self, res: ClusterResource, obj: Object) -> Object:
        old = self._objects.pop(_address(res, _key(res, obj)))
        self._publish(res, obj, "DELETED", old)
        return deep_copy(obj)

    def _publish(self, res: ClusterResource, obj: Object, kind: str, old: Object | None, manager: str = "") -> None:
        self._rv += 1
        obj["metadata"]["resourceVersion"] = str(self._rv)
        # nothing changes it any more: it is replaced as a whole
        self._history.append(Change(self._rv, kind, res, obj, old, manager))
        self._wake()

    def _wake(self) -> None:
        self._changed.set()
        self._changed = asyncio.Event()


def _address(res: ClusterResource, key: Key) -> tuple[str, str, Key]:
    return res.group, res.plural, key


def _group_resource(res: ClusterResource) -> GroupResource:
    return GroupResource(res.group, res.plural)


def _key(res: ClusterResource, obj: Object) -> Key:
    metadata = obj["metadata"]
    return Key(metadata.get("namespace", "") if res.namespaced else "", metadata["name"])


def _check_preconditions(res: ClusterResource, current: Object, expected: Mapping[str, Any]) -> None:
    for name, value in expected.items():
        found = current["metadata"].get(name)
        if value and value != found:
            why = f"Precondition failed: {name} in precondition: {value}, {name} in object meta: {found}"
            raise errors.Conflict(_group_resource(res), current["metadata"]["name"], why)


def _merge(target: Any, patch: Any) -> Any:
    if not isinstance(patch, dict):
        return deep_copy(patch)
    merged = dict(target) if isinstance(target, dict) else {}
    for name, value in patch.items():
        if value is None:
            merged.pop(name, None)
        else:
            merged[name] = _merge(merged.get(name), value)
    return merged
