"""Field ownership and server-side apply, for the handlers: what structured-merge-diff does for Kubernetes (G).

Everything here is pure: arguments are never changed. The results of create and update share with `new` what they
did not change; those of apply share nothing.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from apiserver.fieldmanager import last_applied as lastapplied
from apiserver.fieldmanager import managed_fields as managers
from apiserver.fieldmanager.field_set import EMPTY, FieldSet
from apiserver.fieldmanager.managed_fields import FieldManagerIdentity, ManagedFields, ManagedFieldsEntry
from apiserver.fieldmanager.typed.compare import compare
from apiserver.fieldmanager.typed.field_set import (
    ensure_named_fields_are_members,
    reconcile_with_schema,
    remove_items,
    to_field_set,
)
from apiserver.fieldmanager.typed.merge import merge
from apiserver.fieldmanager.typed.types import atom_from_schema
from apiserver.fieldmanager.typed.validate import validate
from apiserver.json.values import MAX_OBJECT_NESTING, equal, nests_deeper_than
from apiserver.meta import field_path as fieldpath
from apiserver.meta.errors import BadRequest
from apiserver.meta.resource import Object, Resource
from apiserver.schema.pruning_and_defaulting import object_schema, prune

_BEFORE_FIRST_APPLY = "before-first-apply"

# Nobody owns these (WIRE-G6)
_UNTRACKED = FieldSet.of(
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
    """Ownership of one resource's fields.

    `reset_fields` are dotted paths that a write through this endpoint cannot change, so nobody can own them (WIRE-G14).
    """

    def __init__(self, resource: Resource, *, reset_fields: Sequence[str] = ()) -> None:
        self._resource = resource
        self._schema = object_schema(resource)
        self._atom = atom_from_schema(self._schema)
        self._reset = FieldSet.of(fieldpath.make_path(*path.split(".")) for path in reset_fields)

    def create(self, new: Object, *, manager: str, now: str, subresource: str = "") -> Object:
        """`new` with managedFields that say that `manager` set all of it at `now` (RFC 3339)."""
        return self._track(self._nothing(), new, self._updater(manager, subresource), now)

    def update(self, live: Object, new: Object, *, manager: str, now: str, subresource: str = "") -> Object:
        """`new` with managedFields: what differs from `live` is the manager's now, and nobody else's (WIRE-G9).

        The request's own managedFields are what is started from, if they are valid; `[]` and `[{}]` end the tracking
        (WIRE-G11). An object that is not tracked stays so (WIRE-G10).
        """
        return self._track(live, new, self._updater(manager, subresource), now)

    def apply(
        self, live: Object | None, patch: Object, *, manager: str, force: bool, now: str, subresource: str = ""
    ) -> Object:
        """`live` with the configuration `patch` merged into it, and without what the manager no longer applies
        (WIRE-G19, WIRE-G25); a new object if there is no live one.

        Raises ApplyConflict for fields of other managers that it would change, unless `force`; BadRequest for a
        configuration that does not fit the schema (WIRE-G17, WIRE-G24).
        """
        self._check_config(patch)
        current = _without_managed_fields(live or self._nothing())
        if problem := validate(self._atom, current, allow_duplicates=True):
            raise BadRequest(f"failed to create typed live object ({self._identify(current)}): {problem}")
        known = _stored(live)
        if not known:
            # whatever was there before the first apply is somebody's (WIRE-G28)
            before = self._updater(_BEFORE_FIRST_APPLY, subresource)
            known = managers.cap_update_managers(self._updated(self._nothing(), current, known, before, now))
        identity = managers.field_manager_identity(manager, "Apply", self._resource.api_version, subresource)
        try:
            applied, owners = self._applied(current, patch, known, identity, force=force)
        except _Conflicts as found:
            remaining = (
                found.without(lastapplied.last_applied_fields(self._atom, current))
                if manager == "kubectl"
                else found.fields
            )
            if remaining:
                raise managers.apply_conflict(remaining) from None
            applied, owners = self._applied(current, patch, known, identity, force=True)
        if identity in owners and not equal(applied, current):
            owners[identity] = replace(owners[identity], time=now)
        if manager == "kubectl":
            applied = lastapplied.refresh_last_applied(applied, patch)
        settled: Object = prune(self._schema, applied)
        return _with_managers(settled, owners)

    def _track(self, live: Object, new: Object, identity: FieldManagerIdentity, now: str) -> Object:
        known = _stored(live) if identity.subresource else _base(live, new)
        current, wanted = _without_managed_fields(live), _without_managed_fields(new)
        if not known and current["metadata"].get("uid"):
            return wanted
        if self._problem(current) or self._problem(wanted):
            # what does not fit the schema has no fields that could be told apart; validation will refuse it
            return _with_entries(wanted, live.get("metadata", {}).get("managedFields"))
        return _with_managers(
            wanted, managers.cap_update_managers(self._updated(current, wanted, known, identity, now))
        )

    def _updated(
        self, live: Object, new: Object, known: ManagedFields, identity: FieldManagerIdentity, now: str
    ) -> ManagedFields:
        """The managers after an update (WIRE-G9). What differs is taken from all, and given to the one who updates."""
        comparison = compare(self._atom, live, new).exclude_fields(self._reset)
        owners = {
            each: replace(managed, fields=managed.fields - comparison.modified_or_added - comparison.removed)
            for each, managed in self._recorded(known).items()
        }
        gained = comparison.modified_or_added - _UNTRACKED
        if gained:
            own = owners[identity].fields if identity in owners else EMPTY
            owners[identity] = ManagedFieldsEntry(own | gained, self._resource.api_version, now)
        return {each: managed for each, managed in owners.items() if managed.fields}

    def _applied(
        self, live: Object, config: Object, known: ManagedFields, identity: FieldManagerIdentity, *, force: bool
    ) -> tuple[Object, ManagedFields]:
        """The object and its managers after an apply. Raises _Conflicts."""
        owners = self._recorded(known)
        last = owners.pop(identity, ManagedFieldsEntry(EMPTY, self._resource.api_version))
        own = replace(last, fields=to_field_set(self._atom, config).recursive_difference(self._reset))
        merged = merge(self._atom, live, config)
        owned = own.fields
        for managed in owners.values():
            owned |= managed.fields
        applied = self._pruned(merged, owned, last.fields)
        comparison = compare(self._atom, live, applied).exclude_fields(self._reset)
        conflicts = {each: managed.fields & comparison.modified_or_added for each, managed in owners.items()}
        conflicts = {each: fields for each, fields in conflicts.items() if fields}
        if conflicts and not force:
            raise _Conflicts(conflicts)
        after = {
            each: replace(managed, fields=managed.fields - conflicts.get(each, EMPTY) - comparison.removed)
            for each, managed in owners.items()
        }
        after[identity] = replace(own, fields=own.fields - _UNTRACKED)
        return applied, {each: managed for each, managed in after.items() if managed.fields}

    def _pruned(self, merged: Object, owned: FieldSet, last: FieldSet) -> Object:
        """`merged` without what the manager applied the last time and nobody owns now (WIRE-G25)."""
        if not last:
            return merged
        root = self._atom
        last = ensure_named_fields_are_members(root, last)
        everything = self._named_fields(merged)
        kept = self._named_fields(remove_items(root, merged, last)) | ensure_named_fields_are_members(root, owned)
        # what is removed with a container, but is owned, comes back
        pruned = self._named_fields(remove_items(root, merged, everything - kept))
        # and so does what was in the container without ever having been applied
        result: Object = remove_items(root, merged, (everything - pruned) & last)
        return result

    def _named_fields(self, value: Object) -> FieldSet:
        return ensure_named_fields_are_members(self._atom, to_field_set(self._atom, value))

    def _recorded(self, known: ManagedFields) -> ManagedFields:
        """The managers under today's schema. Fields in a version that is not served mean nothing any more."""
        return {
            identity: replace(managed, fields=reconcile_with_schema(self._atom, managed.fields))
            for identity, managed in known.items()
            if managed.api_version == self._resource.api_version
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

    def _problem(self, obj: Object) -> str:
        return validate(self._atom, obj, allow_duplicates=True)

    def _identify(self, obj: Object) -> str:
        metadata = obj.get("metadata")
        names = metadata if isinstance(metadata, dict) else {}
        kind = _group_version_kind(self._resource.api_version, self._resource.kind)
        return f"{names.get('namespace') or ''}/{names.get('name') or ''}; {kind}"

    def _updater(self, name: str, subresource: str) -> FieldManagerIdentity:
        return managers.field_manager_identity(name, "Update", self._resource.api_version, subresource)

    def _nothing(self) -> Object:
        return {"apiVersion": self._resource.api_version, "kind": self._resource.kind}


class _Conflicts(Exception):
    """Fields that an apply would take from their managers."""

    def __init__(self, fields: Mapping[FieldManagerIdentity, FieldSet]) -> None:
        super().__init__()
        self.fields = fields

    def without(self, allowed: FieldSet) -> dict[FieldManagerIdentity, FieldSet]:
        remaining = {identity: fields - allowed for identity, fields in self.fields.items()}
        return {identity: fields for identity, fields in remaining.items() if fields}


def same_content(left: Object, right: Object) -> bool:
    """Whether two objects differ in nothing but resourceVersion and the times in managedFields (WIRE-G12, WIRE-D51)."""
    (ours, own), (theirs, other) = _content(left), _content(right)
    # most differences are elsewhere, and reading fields takes its time
    return equal(ours, theirs) and (own == other or equal(_timeless(own), _timeless(other)))


def managed_fields_error(obj: Object) -> str:
    """What is wrong with the object's managedFields, or nothing; for what admission may have made of them
    (WIRE-G42)."""
    try:
        managers.decode((obj.get("metadata") or {}).get("managedFields"))
    except ValueError as error:
        return str(error)
    return ""


def _content(obj: Object) -> tuple[Object, Any]:
    """The object without resourceVersion and managedFields, and these."""
    metadata = dict(obj.get("metadata") or {})
    metadata.pop("resourceVersion", None)
    entries = metadata.pop("managedFields", None)
    return {**obj, "metadata": metadata}, entries


def _timeless(entries: Any) -> Any:
    """The entries in their order without their times; as they are, if they cannot be read."""
    try:
        read = managers.decode(entries)
    except ValueError:
        return entries
    return managers.encode({identity: replace(managed, time="") for identity, managed in read.items()})


def _base(live: Object, new: Object) -> ManagedFields:
    """The managers that an update starts from (WIRE-G11)."""
    entries = (new.get("metadata") or {}).get("managedFields")
    if entries in ([], [{}]):
        return {}
    try:
        return managers.decode(entries) or _stored(live)
    except ValueError:
        return _stored(live)


def _stored(live: Object | None) -> ManagedFields:
    """The managers of a stored object; none if what is stored cannot be read."""
    try:
        return managers.decode(((live or {}).get("metadata") or {}).get("managedFields"))
    except ValueError:
        return {}


def _without_managed_fields(obj: Object) -> Object:
    metadata = {key: value for key, value in (obj.get("metadata") or {}).items() if key != "managedFields"}
    return {**obj, "metadata": metadata}


def _with_managers(obj: Object, owners: ManagedFields) -> Object:
    return _with_entries(obj, managers.encode(owners))


def _with_entries(obj: Object, entries: list[dict[str, Any]] | None) -> Object:
    managed = {"managedFields": copy.deepcopy(entries)} if entries else {}
    return {**obj, "metadata": {**(obj.get("metadata") or {}), **managed}}


def _group_version_kind(api_version: object, kind: object) -> str:
    group, _, version = str(api_version or "").rpartition("/")
    return f"{group}/{version}, Kind={kind or ''}"
