"""metadata.managedFields: decoding, encoding, order and the limit of entries (WIRE-G1 to WIRE-G4, WIRE-G13)."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any, Literal, NamedTuple

from apiserver.fieldmanager.field_set import FieldSet
from apiserver.meta import field_path as fieldpath
from apiserver.meta.errors import ApplyConflict

ManagedFieldsOperation = Literal["Apply", "Update"]

MAX_UPDATE_MANAGERS = 10
_MAX_CONFLICTS_TEXT = 256 * 1024
_ANCIENT_CHANGES = "ancient-changes"


class FieldManagerIdentity(NamedTuple):
    """The key of a managedFields entry. Operation Apply has one entry for all versions: `api_version` is empty
    (WIRE-G2)."""

    name: str
    operation: ManagedFieldsOperation
    api_version: str = ""
    subresource: str = ""

    def __str__(self) -> str:
        """The manager as it is named in conflicts (WIRE-G21)."""
        text = json.dumps(self.name, ensure_ascii=False)
        if self.subresource:
            text += f" with subresource {json.dumps(self.subresource, ensure_ascii=False)}"
        return f"{text} using {self.api_version}" if self.operation == "Update" else text

    @property
    def sort_key(self) -> str:
        """The JSON text by which managers in a conflict, and update managers with the same time, are sorted."""
        values = (
            ("manager", self.name),
            ("operation", self.operation),
            ("apiVersion", self.api_version),
            ("subresource", self.subresource),
        )
        return json.dumps({key: value for key, value in values if value}, ensure_ascii=False, separators=(",", ":"))


@dataclass(frozen=True, slots=True)
class ManagedFieldsEntry:
    """The fields that one manager owns since `time` (RFC 3339, empty if unknown)."""

    fields: FieldSet
    api_version: str
    time: str = ""


ManagedFields = dict[FieldManagerIdentity, ManagedFieldsEntry]


def field_manager_identity(
    name: str, operation: ManagedFieldsOperation, api_version: str, subresource: str
) -> FieldManagerIdentity:
    return FieldManagerIdentity(name or "unknown", operation, api_version if operation == "Update" else "", subresource)


def decode(entries: Any) -> ManagedFields:
    """Decodes managedFields; of several entries with one identity the last wins. Raises ValueError if they are
    invalid."""
    if entries is None:
        return {}
    if not isinstance(entries, list):
        raise ValueError("managedFields must be a list")
    return dict(_decode_entry(entry, index) for index, entry in enumerate(entries))


def _decode_entry(entry: Any, index: int) -> tuple[FieldManagerIdentity, ManagedFieldsEntry]:
    if not isinstance(entry, dict):
        raise ValueError(f"managed fields entry {index} must be an object")
    text = {key: entry.get(key) or "" for key in ("manager", "operation", "apiVersion", "subresource", "time")}
    if not all(isinstance(value, str) for value in text.values()):
        raise ValueError(f"managed fields entry {index} has a field of a wrong type")
    api_version = text["apiVersion"]
    if text["operation"] not in ("Apply", "Update"):
        raise ValueError("operation must be `Apply` or `Update`")
    operation: ManagedFieldsOperation = "Apply" if text["operation"] == "Apply" else "Update"
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


def encode(managed: Mapping[FieldManagerIdentity, ManagedFieldsEntry]) -> list[dict[str, Any]]:
    """Encodes managedFields, sorted as in WIRE-G3."""
    return [_encode_entry(identity, entry) for identity, entry in sorted(managed.items(), key=_entry_order)]


def _entry_order(item: tuple[FieldManagerIdentity, ManagedFieldsEntry]) -> tuple[str, float, str, str, str]:
    identity, entry = item
    return identity.operation, unix_seconds(entry.time), identity.name, entry.api_version, identity.subresource


def _encode_entry(identity: FieldManagerIdentity, entry: ManagedFieldsEntry) -> dict[str, Any]:
    document: dict[str, Any] = {
        "manager": identity.name,
        "operation": identity.operation,
        "apiVersion": entry.api_version,
        "time": entry.time,
        "fieldsType": "FieldsV1",
        "fieldsV1": entry.fields.to_fields_v1(),
        "subresource": identity.subresource,
    }
    return {key: value for key, value in document.items() if value != ""}


def unix_seconds(time: str) -> float:
    """Converts an RFC 3339 time to whole seconds; 0 if it is empty or invalid."""
    try:
        moment = datetime.fromisoformat(time)
    except ValueError:
        return 0
    return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp() // 1


def cap_update_managers(managed: ManagedFields) -> ManagedFields:
    """Limits the entries of operation Update to MAX_UPDATE_MANAGERS: the oldest are merged, one entry per version
    (WIRE-G13)."""
    update_managers = [identity for identity in managed if identity.operation == "Update"]
    excess = len(update_managers) - MAX_UPDATE_MANAGERS
    if excess <= 0:
        return managed
    update_managers.sort(key=lambda identity: (unix_seconds(managed[identity].time), identity.sort_key))
    capped = dict(managed)
    oldest: dict[str, FieldManagerIdentity] = {}
    for identity in update_managers:
        if excess <= 0:
            break
        entry = capped[identity]
        bucket = FieldManagerIdentity(_ANCIENT_CHANGES, "Update", entry.api_version)
        first = oldest.setdefault(entry.api_version, identity)
        if identity in (first, bucket):
            continue
        if bucket not in capped:
            capped[bucket] = capped.pop(first)
        del capped[identity]
        capped[bucket] = replace(capped[bucket], fields=entry.fields | capped[bucket].fields, time=entry.time)
        excess -= 1
    return capped


def apply_conflict(conflicts: Mapping[FieldManagerIdentity, FieldSet]) -> ApplyConflict:
    """Returns the error of an apply that would change the fields `conflicts` of other managers (WIRE-G21, WIRE-G22). It
    only counts those beyond the first 256 KiB of paths (ATTACK-19)."""
    managers = sorted(conflicts, key=lambda identity: identity.sort_key)
    paths: dict[FieldManagerIdentity, list[str]] = {}
    size = omitted = 0
    for identity in managers:
        for path in conflicts[identity]:
            if size > _MAX_CONFLICTS_TEXT:
                omitted += 1
                continue
            text = fieldpath.format_path(path)
            paths.setdefault(identity, []).append(text)
            size += len(text)
    causes = [
        {"reason": "FieldManagerConflict", "message": f"conflict with {identity}", "field": path}
        for identity, named in paths.items()
        for path in named
    ]
    total = len(causes) + omitted
    if total == 1:
        message = f"Apply failed with 1 conflict: {causes[0]['message']}: {causes[0]['field']}"
    else:
        lines = []
        for identity, named in paths.items():
            lines.append(f"conflicts with {identity}:")
            lines += [f"- {path}" for path in named]
        if omitted:
            lines.append(f"and {omitted} more")
        message = f"Apply failed with {total} conflicts: {chr(10).join(lines)}"
    return ApplyConflict(message, causes)
