"""The Helm values of an application: what clients see of them, and what a write changes in them. Pure.

Values are stored as a client sent them. Defaults are added on reading, so that a chart's later default takes effect.
"""

from __future__ import annotations

from typing import Any, Final

import orjson

from apiserver.json.values import deep_copy, equal
from apiserver.meta.errors import BadRequest
from apiserver.meta.resource import Object, Schema
from registry.application.defaulting import with_defaults_if_few

_INTERNAL = "_"
_NOTHING: Final = object()


def shown_spec(values: object, schema: Schema) -> Object:
    """The spec of stored values: with defaults unless they are too many, without the platform's keys, which begin with
    an underscore."""
    stored = values if isinstance(values, dict) else {}
    visible = {key: value for key, value in stored.items() if not key.startswith(_INTERNAL)}
    shown: Object = with_defaults_if_few(schema, visible)
    return shown


def reject_internal_keys(obj: Object) -> None:
    """Raises BadRequest for spec keys with a leading underscore, which are Helm values of the platform (WIRE-D98)."""
    spec = obj.get("spec")
    internal = sorted(key for key in spec if key.startswith(_INTERNAL)) if isinstance(spec, dict) else []
    if internal:
        quoted = ", ".join(f'"{key}"' for key in internal)
        raise BadRequest(f"spec must not contain keys that start with an underscore: {quoted}")


def write_new_values(release_spec: Object, spec: Object | None) -> None:
    """Adds the values of a new application to the spec of its HelmRelease: its own `spec`, as it was sent."""
    if spec is not None:
        release_spec["values"] = deep_copy(spec)


def write_changed_values(release_spec: Object, spec: Object | None, shown: Object) -> None:
    """Changes the values in the spec of a HelmRelease, in place, to those of an application that is updated to `spec`.
    `shown` is what clients see of the values that are stored.

    Only what differs from what clients see is changed: a default that they were shown, and send back or leave out, is
    not stored (T31), whether they patch the object or replace it. Without a spec, values without entries are removed.
    """
    if equal(shown, spec or {}):
        return
    stored = release_spec.get("values")
    values = stored if isinstance(stored, dict) else {}
    internal = {key: value for key, value in values.items() if key.startswith(_INTERNAL)}
    visible = {key: value for key, value in values.items() if not key.startswith(_INTERNAL)}
    changed = {**internal, **_changed(visible, shown, spec or {})}
    if not changed and spec is None:
        release_spec.pop("values", None)
    elif changed or isinstance(stored, dict):
        release_spec["values"] = changed


def _changed(stored: Any, shown: Any, wanted: Any) -> Any:
    """`stored` with the differences between `shown` and `wanted`."""
    if shown is not _NOTHING and equal(shown, wanted):
        return deep_copy(wanted) if stored is _NOTHING else stored
    if isinstance(shown, dict) and isinstance(wanted, dict):
        return _changed_object(stored if isinstance(stored, dict) else {}, shown, wanted)
    if isinstance(shown, list) and isinstance(wanted, list) and isinstance(stored, list) and len(stored) == len(shown):
        return _changed_list(stored, shown, wanted)
    return deep_copy(wanted)


def _changed_object(stored: Object, shown: Object, wanted: Object) -> Object:
    changed = {key: value for key, value in stored.items() if key in wanted or key not in shown}
    for key, value in wanted.items():
        before = shown.get(key, _NOTHING)
        if before is _NOTHING or not equal(before, value):
            changed[key] = _changed(stored.get(key, _NOTHING), before, value)
    return changed


def _changed_list(stored: list[Any], shown: list[Any], wanted: list[Any]) -> list[Any]:
    """Items that stay where they are, or only move, are stored as before. They are found by their text: comparing each
    with each would take minutes for a list of ten thousand (ATTACK-13)."""
    changed, places = [], {_text(each): at for at, each in reversed(tuple(enumerate(shown)))}
    for index, value in enumerate(wanted):
        same = places.get(_text(value))
        if same is not None:
            changed.append(deep_copy(stored[same]))
        elif len(shown) == len(wanted):
            changed.append(_changed(stored[index], shown[index], value))
        else:
            changed.append(deep_copy(value))
    return changed


def _text(value: Any) -> bytes:
    """The same for equal values only. Whole numbers are integers, as the decoder makes them."""
    # values that are too deep to be parsed are no JSON, but have a text
    return orjson.dumps(value, option=orjson.OPT_SORT_KEYS, default=repr)
