"""The two fakes of the tests: an in-memory cluster, and a clock that tests advance."""

from __future__ import annotations

import asyncio
import copy
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import jsonpatch

from apiserver.meta import errors
from apiserver.meta.errors import StatusError
from apiserver.meta.resource import GroupResource, Key, Object
from apiserver.meta.selectors import parse_field_selector, parse_label_selector
from registry.cluster.interface import JSON_PATCH, NAMESPACES, ClusterResource, ClusterUnreachable, WatchEvent

_EPOCH = "2026-01-01T00:00:00Z"
_PROPAGATION_FINALIZERS = {"Foreground": "foregroundDeletion", "Orphan": "orphan"}


class FakeClock:
    """A clock that only `advance` and `sleep` move. `sleep` returns at once and is recorded."""

    def __init__(self, now: float = 1_767_225_600.0) -> None:
        self.now = now
        self.slept: list[float] = []

    def __call__(self) -> float:
        return self.now

    def advance(self, seconds: float) -> None:
        self.now += seconds

    async def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.now += seconds
        await asyncio.sleep(0)


@dataclass(frozen=True, slots=True)
class Write:
    """A write that the fake cluster accepted; `verb` is create, update, patch or delete."""

    verb: str
    resource: ClusterResource
    key: Key
    subresource: str = ""
    dry_run: bool = False
    field_manager: str = ""


@dataclass(slots=True)
class _Change:
    rv: int
    type: str
    resource: ClusterResource
    object: Object
    old: Object | None


CallHook = Callable[[str, ClusterResource, Key], Awaitable[None]]
ReviewHandler = Callable[[str, Object], Object]


@dataclass
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
    _objects: dict[tuple[str, str, Key], Object] = field(default_factory=dict)
    _history: list[_Change] = field(default_factory=list)
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
            self._store(res, self._with_system_fields(res, copy.deepcopy(obj)), "ADDED")

    def peek(self, res: ClusterResource, namespace: str, name: str) -> Object | None:
        """Returns the stored object, for assertions."""
        return copy.deepcopy(self._objects.get(_address(res, Key(namespace if res.namespaced else "", name))))

    def peek_all(self, res: ClusterResource) -> list[Object]:
        """Returns all stored objects of a kind, for assertions."""
        return [copy.deepcopy(obj) for obj in self._objects_of(res)]

    def clear_writes(self) -> None:
        self.writes.clear()

    def compact(self) -> None:
        """Drops the history, so that watches from an earlier resourceVersion are Expired."""
        self._history.clear()
        self._compacted = self._rv

    async def get(self, res: ClusterResource, namespace: str, name: str) -> Object:
        await self._before_call("get", res, Key(namespace, name))
        return copy.deepcopy(self._find(res, namespace, name))

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
        matches = _matcher(namespace, label_selector, field_selector)
        found = sorted(self._objects_of(res), key=lambda obj: _key(res, obj))
        start = int(continue_token or 0)
        items = [copy.deepcopy(obj) for obj in found if matches(obj)][start:]
        metadata: Object = {"resourceVersion": str(self._rv)}
        if limit and len(items) > limit:
            metadata |= {"continue": str(start + limit), "remainingItemCount": len(items) - limit}
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

    async def create(
        self, res: ClusterResource, obj: Object, *, namespace: str = "", dry_run: bool = False, field_manager: str = ""
    ) -> Object:
        new = self._with_system_fields(res, copy.deepcopy(obj), namespace=namespace, is_new=True)
        key = _key(res, new)
        await self._before_call("create", res, key)
        if _address(res, key) in self._objects:
            raise errors.AlreadyExists(_group_resource(res), key.name)
        parent = self._objects.get(_address(NAMESPACES, Key("", key.namespace))) if res.namespaced else None
        if parent is not None and "deletionTimestamp" in parent["metadata"]:
            why = f"unable to create new content in namespace {key.namespace} because it is being terminated"
            raise errors.Forbidden(_group_resource(res), key.name, why)
        self.writes.append(Write("create", res, key, dry_run=dry_run, field_manager=field_manager))
        return new if dry_run else self._store(res, new, "ADDED")

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
        return self._change("update", res, copy.deepcopy(obj), subresource, dry_run, field_manager)

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
        current = copy.deepcopy(self._find(res, namespace, name))
        changed = jsonpatch.apply_patch(current, body) if content_type == JSON_PATCH else _merge(current, body)
        return self._change("patch", res, changed, subresource, dry_run, field_manager)

    async def delete(
        self, res: ClusterResource, namespace: str, name: str, *, options: Mapping[str, Any] | None = None
    ) -> Object:
        key = Key(namespace if res.namespaced else "", name)
        await self._before_call("delete", res, key)
        current = copy.deepcopy(self._find(res, namespace, name))
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
    ) -> AsyncIterator[WatchEvent]:
        await self._before_call("watch", res, Key(namespace, ""))
        matches = _matcher(namespace, label_selector, field_selector)
        seen = int(resource_version or 0)
        if send_initial_events:
            for event in self._initial(res, matches):
                yield event
            seen = self._rv
        elif seen < self._compacted:
            raise errors.Expired(f"too old resource version: {seen} ({self._compacted})")
        while not self._unreachable:
            changes = [change for change in self._history if change.rv > seen]
            seen = self._rv
            for change in changes:
                if change.resource == res and (change_event := _event(change, matches)):
                    yield change_event
            if seen == self._rv and not self._unreachable:
                await self._changed.wait()

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
        events = [WatchEvent("ADDED", copy.deepcopy(obj)) for obj in found if matches(obj)]
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
            new = {**copy.deepcopy(current), "status": new.get("status")}
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
        return self._store(res, new, "MODIFIED")

    def _store(self, res: ClusterResource, obj: Object, kind: str) -> Object:
        address = _address(res, _key(res, obj))
        self._publish(res, obj, kind, self._objects.get(address))
        self._objects[address] = obj
        return copy.deepcopy(obj)

    def _remove(self, res: ClusterResource, obj: Object) -> Object:
        old = self._objects.pop(_address(res, _key(res, obj)))
        self._publish(res, obj, "DELETED", old)
        return copy.deepcopy(obj)

    def _publish(self, res: ClusterResource, obj: Object, kind: str, old: Object | None) -> None:
        self._rv += 1
        obj["metadata"]["resourceVersion"] = str(self._rv)
        self._history.append(_Change(self._rv, kind, res, copy.deepcopy(obj), old))
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


def _matcher(namespace: str, label_selector: str, field_selector: str) -> Callable[[Object], bool]:
    labels = parse_label_selector(label_selector)
    fields = parse_field_selector(field_selector)

    def matches(obj: Object) -> bool:
        metadata = obj["metadata"]
        values = {"metadata.name": metadata["name"], "metadata.namespace": metadata.get("namespace", "")}
        in_namespace = not namespace or values["metadata.namespace"] == namespace
        return in_namespace and labels.matches(metadata.get("labels") or {}) and fields.matches(values)

    return matches


def _event(change: _Change, matches: Callable[[Object], bool]) -> WatchEvent | None:
    """Returns the event for a watcher with a selector: ADDED if the object starts to match, DELETED if it no longer
    does."""
    before = change.old is not None and matches(change.old)
    after = change.type != "DELETED" and matches(change.object)
    if not before and not after:
        return None
    type_ = "MODIFIED" if before and after else "ADDED" if after else "DELETED"
    return WatchEvent(type_, copy.deepcopy(change.object))


def _check_preconditions(res: ClusterResource, current: Object, expected: Mapping[str, Any]) -> None:
    for name, value in expected.items():
        found = current["metadata"].get(name)
        if value and value != found:
            why = f"Precondition failed: {name} in precondition: {value}, {name} in object meta: {found}"
            raise errors.Conflict(_group_resource(res), current["metadata"]["name"], why)


def _merge(target: Any, patch: Any) -> Any:
    if not isinstance(patch, dict):
        return copy.deepcopy(patch)
    merged = dict(target) if isinstance(target, dict) else {}
    for name, value in patch.items():
        if value is None:
            merged.pop(name, None)
        else:
            merged[name] = _merge(merged.get(name), value)
    return merged
