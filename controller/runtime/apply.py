"""The only code by which controllers write to the host: through the gate, counted, and only what differs.

A desired object is a merge patch: it names what it wants, and what must not be there, as None; all else stays.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from apiserver.meta.errors import StatusError
from apiserver.meta.resource import Object
from controller.runtime.write_gate import WriteGate
from registry.cluster.interface import MERGE_PATCH, ClusterClient, ClusterResource

FIELD_MANAGER = "tenant-controller"


Renderer = Callable[[Object | None], Object]
"""What is desired, given what is there; pure."""


class ForeignObject(Exception):
    """An object of the wanted name is somebody else's. The text says so, and what to do about it."""


class Owner(Protocol):
    """For whom an object is made."""

    def refusal(self, current: Object) -> str:
        """Why `current` may not be written to, and the remedy; empty if it is the owner's."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class ControllerOwner:
    """An owner that its objects name by uid in a controller ownerReference."""

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
    """Every method raises the host's StatusError, and NotLeading when the gate is closed.

    `writes` counts the requests that were made.
    """

    def __init__(self, *, cluster: ClusterClient, gate: WriteGate) -> None:
        self._cluster = cluster
        self._gate = gate
        self.writes = 0

    async def ensure(self, res: ClusterResource, desire: Renderer, *, observed: Object | None, owner: Owner) -> Object:
        """Make what is desired true, from the state that was `observed`, and give the object as it then is.

        Nothing is written if nothing differs. Raises ForeignObject, Conflict if the object changed since.
        """
        if observed is None:
            desired = desire(None)
            try:
                return await self.create(res, desired)
            except StatusError as e:
                if e.reason != "AlreadyExists":
                    raise
                metadata = desired["metadata"]
                observed = await self._cluster.get(res, metadata.get("namespace", ""), metadata["name"])
        if why := owner.refusal(observed):
            raise ForeignObject(why)
        changes = merge_patch(observed, desire(observed))
        return await self.patch(res, observed, changes) if changes else observed

    async def create(self, res: ClusterResource, desired: Object) -> Object:
        async with self._gate.writing():
            self.writes += 1
            return await self._cluster.create(
                res,
                drop_nulls({"apiVersion": res.api_version, "kind": res.kind, **desired}),
                namespace=desired["metadata"].get("namespace", ""),
                field_manager=FIELD_MANAGER,
            )

    async def patch(self, res: ClusterResource, observed: Object, changes: Object, *, subresource: str = "") -> Object:
        """A merge patch that holds for the observed state only."""
        metadata = observed["metadata"]
        version = {"resourceVersion": metadata["resourceVersion"]}
        body = {**changes, "metadata": {**changes.get("metadata", {}), **version}}
        async with self._gate.writing():
            self.writes += 1
            return await self._cluster.patch(
                res,
                metadata.get("namespace", ""),
                metadata["name"],
                body,
                content_type=MERGE_PATCH,
                subresource=subresource,
                field_manager=FIELD_MANAGER,
            )

    async def write_status(self, res: ClusterResource, observed: Object, status: Object) -> Object | None:
        """Replace fields of the status, for the observed state only; None if the object is gone."""
        try:
            return await self.patch(res, observed, {"status": status}, subresource="status")
        except StatusError as e:
            if e.code != 404:
                raise
            return None

    async def delete(self, res: ClusterResource, observed: Object, *, propagation: str = "Background") -> None:
        """Delete the object, if it still is the observed one in the observed state; gone is as good."""
        metadata = observed["metadata"]
        preconditions = {"uid": metadata["uid"], "resourceVersion": metadata["resourceVersion"]}
        async with self._gate.writing():
            self.writes += 1
            try:
                await self._cluster.delete(
                    res,
                    metadata.get("namespace", ""),
                    metadata["name"],
                    options={"preconditions": preconditions, "propagationPolicy": propagation},
                )
            except StatusError as e:
                if e.code != 404:
                    raise


def merge_patch(current: Object, desired: Object) -> Object:
    """The smallest merge patch that makes `desired` true of `current`; empty if it is."""
    wanted = dict(desired)
    references = (desired.get("metadata") or {}).get("ownerReferences")
    if references:
        held = (current.get("metadata") or {}).get("ownerReferences") or []
        wanted["metadata"] = {**desired["metadata"], "ownerReferences": merge_owner_references(held, references)}
    return _patch(current, wanted)


def _patch(current: Mapping[str, Any], desired: Mapping[str, Any]) -> Object:
    changes: Object = {}
    for field, wanted in desired.items():
        held = current.get(field)
        if wanted is None:
            if field in current:
                changes[field] = None
        elif isinstance(wanted, dict) and isinstance(held, dict):
            if inner := _patch(held, wanted):
                changes[field] = inner
        elif not covers(held, wanted) and not (held is None and _is_without(wanted)):
            changes[field] = drop_nulls(wanted)
    return changes


def _is_without(desired: Any) -> bool:
    """Whether all that is desired of an object is what must not be in it."""
    return isinstance(desired, dict) and bool(desired) and not drop_nulls(desired)


def covers(current: Any, desired: Any) -> bool:
    """Whether `current` has all that is desired. The host may have added defaults, in items of lists too."""
    if desired is None:
        return current is None
    if isinstance(desired, dict):
        return isinstance(current, dict) and all(covers(current.get(key), value) for key, value in desired.items())
    if isinstance(desired, list):
        return (
            isinstance(current, list)
            and len(current) == len(desired)
            and all(covers(held, wanted) for held, wanted in zip(current, desired, strict=True))
        )
    return type(current) is type(desired) and bool(current == desired)


def merge_owner_references(held: list[Object], wanted: list[Object]) -> list[Object]:
    """`held` with `wanted`: foreign ones stay, a former owner of a wanted one's name goes."""
    names = {_owner_name(reference) for reference in wanted}
    uids = {reference["uid"] for reference in wanted}
    kept = [each for each in held if each.get("uid") in uids or _owner_name(each) not in names]
    present = {each.get("uid") for each in kept}
    return [*kept, *(reference for reference in wanted if reference["uid"] not in present)]


def _owner_name(reference: Object) -> tuple[object, ...]:
    return reference.get("apiVersion"), reference.get("kind"), reference.get("name")


def missing_fields(desired: Object, current: Object) -> Object:
    """What of `desired` names something that `current` lacks: for an object that somebody else manages."""
    added: Object = {}
    for field, wanted in desired.items():
        held = current.get(field)
        if isinstance(wanted, dict) and isinstance(held, dict):
            if inner := missing_fields(wanted, held):
                added[field] = inner
        elif wanted is not None and held in (None, [], {}):
            # an empty text is a value that was given
            added[field] = wanted
    return added


def drop_nulls(desired: Any) -> Any:
    """`desired` as a new object has it."""
    if isinstance(desired, dict):
        return {field: drop_nulls(value) for field, value in desired.items() if value is not None}
    if isinstance(desired, list):
        return [drop_nulls(each) for each in desired]
    return copy.deepcopy(desired)
