"""Field ownership and server-side apply, as structured-merge-diff does them for kube-apiserver.

Called by the write handlers. All functions are pure: arguments are never modified. The results of create and update
share their unchanged parts with `new`; those of apply share nothing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any

from apiserver.fieldmanager import managed_fields as managedfields
from apiserver.fieldmanager.field_set import EMPTY, FieldSet
from apiserver.fieldmanager.last_applied import last_applied_fields, refresh_last_applied
from apiserver.fieldmanager.managed_fields import FieldManagerIdentity, ManagedFields, ManagedFieldsEntry
from apiserver.fieldmanager.typed.compare import compare
from apiserver.fieldmanager.typed.field_set import (
    ensure_named_fields_are_members,
    reconcile_with_schema,
    remove_items,
    to_field_set,
)
from apiserver.fieldmanager.typed.merge import merge
from apiserver.fieldmanager.typed.types import Atom, atom_from_schema
from apiserver.fieldmanager.typed.validate import validate
from apiserver.json.values import MAX_OBJECT_NESTING, deep_copy, equal, nests_deeper_than
from apiserver.meta import field_path as fieldpath
from apiserver.meta.errors import BadRequest
from apiserver.meta.resource import Object, Resource
from apiserver.schema.pruning_and_defaulting import object_schema, prune

_BEFORE_FIRST_APPLY_MANAGER = "before-first-apply"

# Fields that no manager owns (WIRE-G6), the stripFields of kube-apiserver.
_STRIPPED_FIELDS = FieldSet.of(
    [
        *(fieldpath.make_path(name) for name in ("apiVersion", "kind", "metadata")),
        *(
            fieldpath.make_path("metadata", name)
            for name in (
                "name",
                "namespace",
                "creationTimestamp",
                "selfLink",
                "uid",
                "clusterName",
                "generation",
                "managedFields",
                "resourceVersion",
            )
        ),
    ]
)


class FieldManager:
    """Tracks the field ownership of one resource.

    `reset_fields` are dotted paths that writes through this endpoint cannot change, so no manager owns them (WIRE-G14).
    """

    def __init__(self, resource: Resource, *, reset_fields: Sequence[str] = ()) -> None:
        self._resource = resource
        self._schema = object_schema(resource)
        self._reset = FieldSet.of(fieldpath.make_path(*path.split(".")) for path in reset_fields)

    @cached_property
    def _atom(self) -> Atom:
        # made on first use, because most kinds of a cluster are only read
        return atom_from_schema(self._schema)

    def create(self, new: Object, *, manager: str, now: str, subresource: str = "") -> Object:
        """Returns `new` with managedFields in which `manager` owns all fields since `now` (RFC 3339)."""
        return self._track(self._empty_object(), new, self._update_identity(manager, subresource), now)

    def update(self, live: Object, new: Object, *, manager: str, now: str, subresource: str = "") -> Object:
        """Returns `new` with managedFields in which `manager` alone owns every field that differs from `live`
        (WIRE-G9).

        The update starts from the managedFields in the request if they are valid; `[]` and `[{}]` turn tracking off
        (WIRE-G11). An object without managedFields stays untracked (WIRE-G10).
        """
        return self._track(live, new, self._update_identity(manager, subresource), now)

    def apply(
        self, live: Object | None, patch: Object, *, manager: str, force: bool, now: str, subresource: str = ""
    ) -> Object:
        """Merges the configuration `patch` into `live` and removes fields that the manager no longer applies (WIRE-G19,
        WIRE-G25). Without a live object, returns a new one.

        Raises ApplyConflict if a field of another manager would change, unless `force`; BadRequest for a configuration
        that does not match the schema (WIRE-G17, WIRE-G24).
        """
        self._check_config(patch)
        current = _without_managed_fields(live or self._empty_object())
        if problem := self._validate(current):
            raise BadRequest(f"failed to create typed live object ({self._identify(current)}): {problem}")
        managed = _stored_managed_fields(live)
        if not managed:
            # fields from before the first apply get a manager of their own (WIRE-G28)
            before = self._update_identity(_BEFORE_FIRST_APPLY_MANAGER, subresource)
            managed = self._managed_after_update(self._empty_object(), current, managed, before, now)
            managed = managedfields.cap_update_managers(managed)
        identity = managedfields.field_manager_identity(manager, "Apply", self._resource.api_version, subresource)
        try:
            applied, managed_after = self._merge_config(current, patch, managed, identity, force=force)
        except _Conflicts as conflicts:
            remaining = conflicts.fields
            if manager == "kubectl":
                remaining = conflicts.without(last_applied_fields(self._atom, current))
            if remaining:
                raise managedfields.apply_conflict(remaining) from None
            applied, managed_after = self._merge_config(current, patch, managed, identity, force=True)
        if identity in managed_after and not equal(applied, current):
            managed_after[identity] = replace(managed_after[identity], time=now)
        if manager == "kubectl":
            applied = refresh_last_applied(applied, patch)
        pruned: Object = prune(self._schema, applied)
        return _with_managed_fields(pruned, managed_after)

    def _track(self, live: Object, new: Object, identity: FieldManagerIdentity, now: str) -> Object:
        managed = _stored_managed_fields(live) if identity.subresource else _requested_managed_fields(live, new)
        old, new = _without_managed_fields(live), _without_managed_fields(new)
        if not managed and old["metadata"].get("uid"):
            return new
        if self._validate(old) or self._validate(new):
            # the fields of an object that does not match the schema cannot be identified; validation rejects it later
            return _with_entries(new, deep_copy(live.get("metadata", {}).get("managedFields")))
        managed = self._managed_after_update(old, new, managed, identity, now)
        return _with_managed_fields(new, managedfields.cap_update_managers(managed))

    def _managed_after_update(
        self, live: Object, new: Object, managed: ManagedFields, identity: FieldManagerIdentity, now: str
    ) -> ManagedFields:
        """Moves the ownership of every changed field from all other managers to `identity` (WIRE-G9)."""
        comparison = compare(self._atom, live, new).exclude_fields(self._reset)
        after = {
            each: replace(entry, fields=entry.fields - comparison.modified_or_added - comparison.removed)
            for each, entry in self._reconcile_with_schema(managed).items()
        }
        gained = comparison.modified_or_added - _STRIPPED_FIELDS
        if gained:
            own = after[identity].fields if identity in after else EMPTY
            after[identity] = ManagedFieldsEntry(own | gained, self._resource.api_version, now)
        return {each: entry for each, entry in after.items() if entry.fields}

    def _merge_config(
        self, live: Object, config: Object, managed: ManagedFields, identity: FieldManagerIdentity, *, force: bool
    ) -> tuple[Object, ManagedFields]:
        """Returns the object and its managed fields after an apply of `config`. Raises _Conflicts."""
        others = self._reconcile_with_schema(managed)
        last = others.pop(identity, ManagedFieldsEntry(EMPTY, self._resource.api_version))
        own = replace(last, fields=to_field_set(self._atom, config).recursive_difference(self._reset))
        merged = merge(self._atom, live, config)
        owned = own.fields
        for entry in others.values():
            owned |= entry.fields
        applied = self._prune_unowned(merged, owned, last.fields)
        comparison = compare(self._atom, live, applied).exclude_fields(self._reset)
        conflicts = {each: entry.fields & comparison.modified_or_added for each, entry in others.items()}
        conflicts = {each: fields for each, fields in conflicts.items() if fields}
        if conflicts and not force:
            raise _Conflicts(conflicts)
        after = {
            each: replace(entry, fields=entry.fields - conflicts.get(each, EMPTY) - comparison.removed)
            for each, entry in others.items()
        }
        after[identity] = replace(own, fields=own.fields - _STRIPPED_FIELDS)
        return applied, {each: entry for each, entry in after.items() if entry.fields}

    def _prune_unowned(self, merged: Object, owned: FieldSet, last: FieldSet) -> Object:
        """Removes the fields that the manager applied last time (`last`) and that no manager owns now (WIRE-G25)."""
        if not last:
            return merged
        root = self._atom
        last = ensure_named_fields_are_members(root, last)
        everything = self._named_fields(merged)
        # owned fields that were removed together with their container are restored
        retained = self._named_fields(remove_items(root, merged, last)) | ensure_named_fields_are_members(root, owned)
        pruned = self._named_fields(remove_items(root, merged, everything - retained))
        # and so are fields of the container that the manager never applied
        result: Object = remove_items(root, merged, (everything - pruned) & last)
        return result

    def _named_fields(self, value: Object) -> FieldSet:
        return ensure_named_fields_are_members(self._atom, to_field_set(self._atom, value))

    def _reconcile_with_schema(self, managed: ManagedFields) -> ManagedFields:
        """Adapts the entries to the current schema and drops those of versions that are not served."""
        return {
            identity: replace(entry, fields=reconcile_with_schema(self._atom, entry.fields))
            for identity, entry in managed.items()
            if entry.api_version == self._resource.api_version
        }

    def _check_config(self, config: Any) -> None:
        if not isinstance(config, dict):
            raise BadRequest("error decoding patch: an applied configuration must be an object")
        api_version, kind = config.get("apiVersion"), config.get("kind")
        if (api_version, kind) != (self._resource.api_version, self._resource.kind):
            raise BadRequest(f"invalid object type: {_group_version_kind(api_version, kind)}")
        metadata = config.get("metadata")
        if isinstance(metadata, dict) and metadata.get("managedFields") is not None:
            raise BadRequest("metadata.managedFields must be nil")
        if nests_deeper_than(config, MAX_OBJECT_NESTING):
            raise BadRequest(f"the object is nested too deeply: more than {MAX_OBJECT_NESTING} levels")
        if problem := validate(self._atom, config):
            raise BadRequest(f"failed to create typed patch object ({self._identify(config)}): {problem}")

    def _validate(self, obj: Object) -> str:
        return validate(self._atom, obj, allow_duplicates=True)

    def _identify(self, obj: Object) -> str:
        metadata = obj.get("metadata")
        names = metadata if isinstance(metadata, dict) else {}
        kind = _group_version_kind(self._resource.api_version, self._resource.kind)
        return f"{names.get('namespace') or ''}/{names.get('name') or ''}; {kind}"

    def _update_identity(self, name: str, subresource: str) -> FieldManagerIdentity:
        return managedfields.field_manager_identity(name, "Update", self._resource.api_version, subresource)

    def _empty_object(self) -> Object:
        return {"apiVersion": self._resource.api_version, "kind": self._resource.kind}


class _Conflicts(Exception):
    """An apply would change these fields of other managers."""

    def __init__(self, fields: Mapping[FieldManagerIdentity, FieldSet]) -> None:
        super().__init__()
        self.fields = fields

    def without(self, allowed: FieldSet) -> dict[FieldManagerIdentity, FieldSet]:
        remaining = {identity: fields - allowed for identity, fields in self.fields.items()}
        return {identity: fields for identity, fields in remaining.items() if fields}


def same_content(left: Object, right: Object) -> bool:
    """True if two objects differ at most in resourceVersion and the times in managedFields (WIRE-G12, WIRE-D51)."""
    (left_content, left_entries), (right_content, right_entries) = (
        _split_managed_fields(left),
        _split_managed_fields(right),
    )
    # managedFields are compared last, because decoding them is slow and most differences are elsewhere
    return equal(left_content, right_content) and (
        left_entries == right_entries or equal(_without_times(left_entries), _without_times(right_entries))
    )


def managed_fields_error(obj: Object) -> str:
    """Returns an error message for invalid managedFields, which admission may have left behind; else "" (WIRE-G42)."""
    try:
        managedfields.decode((obj.get("metadata") or {}).get("managedFields"))
    except ValueError as error:
        return str(error)
    return ""


def _split_managed_fields(obj: Object) -> tuple[Object, Any]:
    """Returns the object without resourceVersion and managedFields, and the managedFields."""
    metadata = dict(obj.get("metadata") or {})
    metadata.pop("resourceVersion", None)
    entries = metadata.pop("managedFields", None)
    return {**obj, "metadata": metadata}, entries


def _without_times(entries: Any) -> Any:
    """Returns the entries in canonical order without times; invalid entries are returned unchanged."""
    try:
        managed = managedfields.decode(entries)
    except ValueError:
        return entries
    return managedfields.encode({identity: replace(entry, time="") for identity, entry in managed.items()})


def _requested_managed_fields(live: Object, new: Object) -> ManagedFields:
    """Returns the managed fields that an update starts from: those of the request if they are valid, else the stored
    ones; none if the request turns tracking off (WIRE-G11)."""
    entries = (new.get("metadata") or {}).get("managedFields")
    if entries in ([], [{}]):
        return {}
    try:
        return managedfields.decode(entries) or _stored_managed_fields(live)
    except ValueError:
        return _stored_managed_fields(live)


def _stored_managed_fields(live: Object | None) -> ManagedFields:
    """Returns the managed fields of a stored object, empty if they are invalid."""
    try:
        return managedfields.decode(((live or {}).get("metadata") or {}).get("managedFields"))
    except ValueError:
        return {}


def _without_managed_fields(obj: Object) -> Object:
    metadata = {key: value for key, value in (obj.get("metadata") or {}).items() if key != "managedFields"}
    return {**obj, "metadata": metadata}


def _with_managed_fields(obj: Object, managed: ManagedFields) -> Object:
    return _with_entries(obj, managedfields.encode(managed))


def _with_entries(obj: Object, entries: list[dict[str, Any]] | None) -> Object:
    managed_fields = {"managedFields": entries} if entries else {}
    return {**obj, "metadata": {**(obj.get("metadata") or {}), **managed_fields}}


def _group_version_kind(api_version: object, kind: object) -> str:
    group, _, version = str(api_version or "").rpartition("/")
    return f"{group}/{version}, Kind={kind or ''}"
