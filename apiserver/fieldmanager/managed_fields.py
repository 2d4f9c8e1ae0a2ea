"""metadata.managedFields: who manages which fields, read, written, sorted and bounded (WIRE-G1 to WIRE-G4,
WIRE-G13)."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any, Literal, NamedTuple

from apiserver.fieldmanager.field_set import FieldSet
from apiserver.meta import field_path as fieldpath
from apiserver.meta.errors import ApplyConflict

Operation = Literal["Apply", "Update"]

MAX_UPDATERS = 10
_ANCIENT = "ancient-changes"


class FieldManagerIdentity(NamedTuple):
    """The identity of an entry; the entries of one applier are one whatever their version (WIRE-G2)."""

    name: str
    operation: Operation
    api_version: str = ""
    subresource: str = ""

    def __str__(self) -> str:
        """As conflicts name a manager (WIRE-G21)."""
        text = json.dumps(self.name, ensure_ascii=False)
        if self.subresource:
            text += f" with subresource {json.dumps(self.subresource, ensure_ascii=False)}"
        return f"{text} using {self.api_version}" if self.operation == "Update" else text

    @property
    def identifier(self) -> str:
        """What managers of one conflict, and updaters of one time, are sorted by."""
        named = (
            ("manager", self.name),
            ("operation", self.operation),
            ("apiVersion", self.api_version),
            ("subresource", self.subresource),
        )
        return json.dumps({key: value for key, value in named if value}, ensure_ascii=False, separators=(",", ":"))


@dataclass(frozen=True, slots=True)
class ManagedFieldsEntry:
    """What one manager manages, since `time` (RFC 3339, empty if unknown)."""

    fields: FieldSet
    api_version: str
    time: str = ""


ManagedFields = dict[FieldManagerIdentity, ManagedFieldsEntry]


def field_manager_identity(name: str, operation: Operation, api_version: str, subresource: str) -> FieldManagerIdentity:
    return FieldManagerIdentity(name or "unknown", operation, api_version if operation == "Update" else "", subresource)


def decode(entries: Any) -> ManagedFields:
    """Managers by identity; of two entries of one identity the last counts. Raises ValueError for a broken list."""
    if entries is None:
        return {}
    if not isinstance(entries, list):
        raise ValueError("managedFields must be a list")
    found: ManagedFields = {}
    for index, entry in enumerate(entries):
        identity, managed = _decode_entry(entry, index)
        found[identity] = managed
    return found


def _decode_entry(entry: Any, index: int) -> tuple[FieldManagerIdentity, ManagedFieldsEntry]:
    if not isinstance(entry, dict):
        raise ValueError(f"managed fields entry {index} must be an object")
    text = {key: entry.get(key) or "" for key in ("manager", "operation", "apiVersion", "subresource", "time")}
    if not all(isinstance(value, str) for value in text.values()):
        raise ValueError(f"managed fields entry {index} has a field of a wrong type")
    api_version = text["apiVersion"]
    if text["operation"] not in ("Apply", "Update"):
        raise ValueError("operation must be `Apply` or `Update`")
    operation: Operation = "Apply" if text["operation"] == "Apply" else "Update"
    if not api_version:
        raise ValueError("apiVersion must not be empty")
    if entry.get("fieldsType") != "FieldsV1":
        raise ValueError(f"invalid fieldsType in managed fields entry {index}")
    fields = entry.get("fieldsV1")
    identity = FieldManagerIdentity(
        text["manager"], operation, api_version if operation == "Update" else "", text["subresource"]
    )
    return identity, ManagedFieldsEntry(
        FieldSet.from_fields_v1({} if fields is None else fields), api_version, text["time"]
    )


def encode(managers: Mapping[FieldManagerIdentity, ManagedFieldsEntry]) -> list[dict[str, Any]]:
    """The entries in the order of WIRE-G3."""
    return [_encode_entry(identity, managed) for identity, managed in sorted(managers.items(), key=_position)]


def _position(item: tuple[FieldManagerIdentity, ManagedFieldsEntry]) -> tuple[str, float, str, str, str]:
    identity, managed = item
    return identity.operation, unix_seconds(managed.time), identity.name, managed.api_version, identity.subresource


def _encode_entry(identity: FieldManagerIdentity, managed: ManagedFieldsEntry) -> dict[str, Any]:
    entry: dict[str, Any] = {
        "manager": identity.name,
        "operation": identity.operation,
        "apiVersion": managed.api_version,
        "time": managed.time,
        "fieldsType": "FieldsV1",
        "fieldsV1": managed.fields.to_fields_v1(),
        "subresource": identity.subresource,
    }
    return {key: value for key, value in entry.items() if value != ""}


def unix_seconds(time: str) -> float:
    """Whole seconds of an RFC 3339 time; 0 for none and for what is no time."""
    try:
        moment = datetime.fromisoformat(time)
    except ValueError:
        return 0
    return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp() // 1


def cap_update_managers(managers: ManagedFields) -> ManagedFields:
    """At most MAX_UPDATERS entries of operation Update: the oldest are merged into one a version (WIRE-G13)."""
    updaters = [identity for identity in managers if identity.operation == "Update"]
    excess = len(updaters) - MAX_UPDATERS
    if excess <= 0:
        return managers
    updaters.sort(key=lambda identity: (unix_seconds(managers[identity].time), identity.identifier))
    capped = dict(managers)
    first_of: dict[str, FieldManagerIdentity] = {}
    for identity in updaters:
        if excess <= 0:
            break
        managed = capped[identity]
        bucket = FieldManagerIdentity(_ANCIENT, "Update", managed.api_version)
        first = first_of.setdefault(managed.api_version, identity)
        if identity in (first, bucket):
            continue
        if bucket not in capped:
            capped[bucket] = capped.pop(first)
        del capped[identity]
        capped[bucket] = replace(capped[bucket], fields=managed.fields | capped[bucket].fields, time=managed.time)
        excess -= 1
    return capped


def apply_conflict(conflicts: Mapping[FieldManagerIdentity, FieldSet]) -> ApplyConflict:
    """The answer to an apply that would take `conflicts` from their managers (WIRE-G21, WIRE-G22)."""
    managers = sorted(conflicts, key=lambda identity: identity.identifier)
    paths = {identity: [fieldpath.format_path(path) for path in conflicts[identity]] for identity in managers}
    causes = [
        {"reason": "FieldManagerConflict", "message": f"conflict with {identity}", "field": path}
        for identity in managers
        for path in paths[identity]
    ]
    if len(causes) == 1:
        message = f"Apply failed with 1 conflict: {causes[0]['message']}: {causes[0]['field']}"
    else:
        lines = []
        for identity in managers:
            lines.append(f"conflicts with {identity}:")
            lines += [f"- {path}" for path in paths[identity]]
        message = f"Apply failed with {len(causes)} conflicts: {chr(10).join(lines)}"
    return ApplyConflict(message, causes)
