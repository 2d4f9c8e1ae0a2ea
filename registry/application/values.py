"""The Helm values of an application: what clients see of them, and what a write changes in them. Pure.

Values are stored as a client sent them. Defaults are added on reading, so that a chart's later default takes effect.
"""

from __future__ import annotations

import copy
from typing import Any, Final

from apiserver.json.values import equal
from apiserver.meta.errors import BadRequest
from apiserver.meta.resource import Object, Schema
from registry.application.schema import with_defaults

_INTERNAL = "_"
_NOTHING: Final = object()


def shown_spec(values: object, schema: Schema) -> Object:
    """The spec of stored values: with defaults, without the platform's keys, which begin with an underscore."""
    stored = values if isinstance(values, dict) else {}
    visible = {key: value for key, value in stored.items() if not key.startswith(_INTERNAL)}
    shown: Object = with_defaults(schema, visible)
    return shown


def reject_internal_keys(obj: Object) -> None:
    """Raises BadRequest for spec keys with a leading underscore, which are Helm values of the platform (WIRE-D98)."""
    spec = obj.get("spec")
    internal = sorted(key for key in spec if key.startswith(_INTERNAL)) if isinstance(spec, dict) else []
    if internal:
        quoted = ", ".join(f'"{key}"' for key in internal)
        raise BadRequest(f"spec must not contain keys that start with an underscore: {quoted}")


def changed_values(stored: object, spec: Object | None, schema: Schema) -> Object | None:
    """The values after an update to `spec`; None for no values. `stored` is what the HelmRelease has.

    Only what differs from what clients see is changed: a default that they were shown, and send back or leave out, is
    not stored (T31), whether they patch the object or replace it.
    """
    values = stored if isinstance(stored, dict) else {}
    shown = shown_spec(values, schema)
    if equal(shown, spec or {}):
        return stored if isinstance(stored, dict) else None
    internal = {key: value for key, value in values.items() if key.startswith(_INTERNAL)}
    visible = {key: value for key, value in values.items() if not key.startswith(_INTERNAL)}
    changed = {**internal, **_changed(visible, shown, spec or {})}
    return changed if changed or spec is not None else None


def _changed(stored: Any, shown: Any, wanted: Any) -> Any:
    """`stored` with the differences between `shown` and `wanted`."""
    if shown is not _NOTHING and equal(shown, wanted):
        return copy.deepcopy(wanted) if stored is _NOTHING else stored
    if isinstance(shown, dict) and isinstance(wanted, dict):
        return _changed_object(stored if isinstance(stored, dict) else {}, shown, wanted)
    if isinstance(shown, list) and isinstance(wanted, list) and isinstance(stored, list) and len(stored) == len(shown):
        return _changed_list(stored, shown, wanted)
    return copy.deepcopy(wanted)


def _changed_object(stored: Object, shown: Object, wanted: Object) -> Object:
    changed = {key: value for key, value in stored.items() if key in wanted or key not in shown}
    for key, value in wanted.items():
        before = shown.get(key, _NOTHING)
        if before is _NOTHING or not equal(before, value):
            changed[key] = _changed(stored.get(key, _NOTHING), before, value)
    return changed


def _changed_list(stored: list[Any], shown: list[Any], wanted: list[Any]) -> list[Any]:
    """Items that stay where they are, or only move, are stored as before."""
    changed = []
    for index, value in enumerate(wanted):
        same = next((at for at, each in enumerate(shown) if equal(each, value)), None)
        if same is not None:
            changed.append(copy.deepcopy(stored[same]))
        elif len(shown) == len(wanted):
            changed.append(_changed(stored[index], shown[index], value))
        else:
            changed.append(copy.deepcopy(value))
    return changed
