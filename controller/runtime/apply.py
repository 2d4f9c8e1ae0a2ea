"""The writes of all controllers: each passes the write gate, is counted, and sends only the fields that differ.

A desired object is a JSON merge patch: None means that a field must be absent, and fields that it does not contain
remain unchanged.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from apiserver.meta.errors import StatusError
from apiserver.meta.resource import Object
from apiserver.patch.media_types import MERGE_PATCH
from controller.runtime.freshness import Freshness, ObjectCache
from controller.runtime.write_gate import WriteGate
from registry.cluster.interface import ClusterClient, ClusterResource
from registry.cluster.object_store import key_of

FIELD_MANAGER = "tenant-controller"

Renderer = Callable[[Object | None], Object]
"""Returns the desired object. The argument is the current object, None if there is none. Pure."""


class ForeignObject(Exception):
    """An existing object of the desired name has another owner. The message names the object and the remedy."""


class Owner(Protocol):
    """Decides whether an existing object may be written to."""

    def refusal(self, current: Object) -> str:
        """The reason why `current` must not be written to, and the remedy; empty if it belongs to the owner."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class ControllerOwner:
    """An owner whose objects carry a controller ownerReference with its uid."""

    api_version: str
    kind: str
    name: str
    uid: str

    def reference(self) -> Object:
        return {
            "apiVersion": self.api_version,
            "kind": self.kind,
            "name": self.name,
            "uid": self.uid,
            "controller": True,
            "blockOwnerDeletion": True,
        }

    def refusal(self, current: Object) -> str:
        metadata = current["metadata"]
        if any(ref.get("uid") == self.uid and ref.get("controller") for ref in metadata.get("ownerReferences") or ()):
            return ""
        return (
            f"{current.get('kind', 'the object')} {metadata['name']} exists and is not owned by {self.kind} "
            f"{self.name}; rename or delete it"
        )


class ClusterWriter:
    """Every method raises the cluster's StatusError, and NotLeading if the gate is closed.

    `writes` counts the requests that were sent. `caches` are those that objects of a kind are observed in.
    """

    def __init__(
        self, *, cluster: ClusterClient, gate: WriteGate, caches: Mapping[ClusterResource, ObjectCache] | None = None
    ) -> None:
        self._cluster = cluster
        self._gate = gate
        self._freshness = Freshness(caches)
        self.writes = 0

    async def ensure(
        self,
        res: ClusterResource,
        render: Renderer,
        *,
        observed: Object | None,
        owner: Owner,
        is_busy: bool = False,
    ) -> Object:
        """Create the object or patch it from the `observed` state, and return it as it is stored afterwards.

        Nothing is written if nothing differs. Raises ForeignObject, and Conflict if the object has changed since. One
        that `is_busy` may have changed in fields that are not rendered.
        """
        if observed is None:
            desired = render(None)
            key = key_of(desired)
            self._freshness.require_absent(res, key)
            try:
                return await self.create(res, desired)
            except StatusError as e:
                if e.reason != "AlreadyExists":
                    raise
                observed = await self._cluster.get(res, key.namespace, key.name)
        if reason := owner.refusal(observed):
            raise ForeignObject(reason)
        changes = create_merge_patch(observed, render(observed))
        return await self.patch(res, observed, changes, is_busy=is_busy) if changes else observed

    async def create(self, res: ClusterResource, desired: Object) -> Object:
        async with self._gate.writing():
            self.writes += 1
            created = await self._cluster.create(
                res,
                drop_nulls({"apiVersion": res.api_version, "kind": res.kind, **desired}),
                namespace=desired["metadata"].get("namespace", ""),
                field_manager=FIELD_MANAGER,
            )
        self._freshness.record(res, created)
        return created

    async def patch(
        self,
        res: ClusterResource,
        observed: Object,
        changes: Object,
        *,
        subresource: str = "",
        is_busy: bool = False,
    ) -> Object:
        """Send a merge patch that the cluster rejects with Conflict if the object is no longer the observed one; one
        that `is_busy` may have changed. If that is known beforehand, the Conflict is a StaleObservation, and nothing is
        sent."""
        metadata = observed["metadata"]
        if not is_busy:
            self._freshness.require_current(res, observed)
        version = {} if is_busy else {"resourceVersion": metadata["resourceVersion"]}
        body = {**changes, "metadata": {**changes.get("metadata", {}), **version}}
        async with self._gate.writing():
            self.writes += 1
            patched = await self._cluster.patch(
                res,
                metadata.get("namespace", ""),
                metadata["name"],
                body,
                content_type=MERGE_PATCH,
                subresource=subresource,
                field_manager=FIELD_MANAGER,
            )
        self._freshness.record(res, patched)
        return patched

    async def write_status(self, res: ClusterResource, observed: Object, status: Object) -> Object | None:
        """Patch fields of the status, with the same precondition as `patch`; None if the object does not exist."""
        try:
            return await self.patch(res, observed, {"status": status}, subresource="status")
        except StatusError as e:
            if e.code != 404:
                raise
            return None

    async def delete(self, res: ClusterResource, observed: Object, *, propagation: str = "Background") -> None:
        """Delete the object if it is still in the observed state; an object that does not exist is no error."""
        self._freshness.require_current(res, observed)
        metadata = observed["metadata"]
        preconditions = {"uid": metadata["uid"], "resourceVersion": metadata["resourceVersion"]}
        async with self._gate.writing():
            self.writes += 1
            try:
                deleted = await self._cluster.delete(
                    res,
                    metadata.get("namespace", ""),
                    metadata["name"],
                    options={"preconditions": preconditions, "propagationPolicy": propagation},
                )
            except StatusError as e:
                if e.code != 404:
                    raise
                return
        if deleted["kind"] == res.kind:
            # finalizers block its removal
            self._freshness.record(res, deleted)


def create_merge_patch(current: Object, desired: Object) -> Object:
    """The smallest merge patch that brings `current` to `desired`; empty if nothing differs."""
    desired_object = dict(desired)
    references = (desired.get("metadata") or {}).get("ownerReferences")
    if references:
        present = (current.get("metadata") or {}).get("ownerReferences") or []
        merged = merge_owner_references(present, references)
        desired_object["metadata"] = {**desired["metadata"], "ownerReferences": merged}
    return _merge_patch(current, desired_object)


def _merge_patch(current: Mapping[str, Any], desired: Mapping[str, Any]) -> Object:
    changes: Object = {}
    for field, value in desired.items():
        present = current.get(field)
        if value is None:
            if field in current:
                changes[field] = None
        elif isinstance(value, dict) and isinstance(present, dict):
            if inner := _merge_patch(present, value):
                changes[field] = inner
        elif not covers(present, value) and not (present is None and _only_removes(value)):
            changes[field] = drop_nulls(value)
    return changes


def _only_removes(desired: Any) -> bool:
    """True if `desired` is a map of nulls: it names fields that must be absent and nothing else."""
    return isinstance(desired, dict) and bool(desired) and not drop_nulls(desired)


def covers(current: Any, desired: Any) -> bool:
    """True if `current` has everything of `desired`. It may have more: kube-apiserver fills in defaults, in list items
    too."""
    if desired is None:
        return current is None
    if isinstance(desired, dict):
        return isinstance(current, dict) and all(covers(current.get(key), value) for key, value in desired.items())
    if isinstance(desired, list):
        return (
            isinstance(current, list)
            and len(current) == len(desired)
            and all(covers(present, value) for present, value in zip(current, desired, strict=True))
        )
    return type(current) is type(desired) and bool(current == desired)


def merge_owner_references(present: list[Object], desired: list[Object]) -> list[Object]:
    """The union of both lists, with the fields of the desired references.

    A present reference is dropped if a desired one has its name but another uid. An object has at most one controller:
    if another owner is it, the desired ones are not.
    """
    wanted = {reference["uid"]: reference for reference in desired}
    names = {_owner_name(reference) for reference in desired}
    others = [each for each in present if each.get("uid") not in wanted]
    if any(each.get("controller") and _owner_name(each) not in names for each in others):
        wanted = {uid: {**reference, "controller": False} for uid, reference in wanted.items()}
    merged = [
        {**each, **wanted.pop(str(each["uid"]))} if each.get("uid") in wanted else each
        for each in present
        if each.get("uid") in wanted or _owner_name(each) not in names
    ]
    return [*merged, *wanted.values()]


def _owner_name(reference: Object) -> tuple[object, ...]:
    return reference.get("apiVersion"), reference.get("kind"), reference.get("name")


def missing_fields(desired: Object, current: Object) -> Object:
    """The fields of `desired` that `current` lacks, as a merge patch: for objects that we do not manage."""
    added: Object = {}
    for field, value in desired.items():
        present = current.get(field)
        if isinstance(value, dict) and isinstance(present, dict):
            if inner := missing_fields(value, present):
                added[field] = inner
        elif value is not None and present in (None, [], {}):
            # an empty string counts as a value
            added[field] = value
    return added


def drop_nulls(desired: Any) -> Any:
    """A copy of `desired` without its nulls: the object to create."""
    if isinstance(desired, dict):
        return {
            field: drop_nulls(value) if isinstance(value, (dict, list)) else value
            for field, value in desired.items()
            if value is not None
        }
    return [drop_nulls(each) for each in desired] if isinstance(desired, list) else desired
