"""Strategic merge patch (WIRE-D81): a merge patch whose lists are merged where the schema says how.

The hints are `x-kubernetes-patch-strategy` and `x-kubernetes-patch-merge-key`, as in Kubernetes' documents. Pure.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from apiserver.json.values import MAX_OBJECT_NESTING, nests_deeper_than
from apiserver.meta import field_path as fieldpath
from apiserver.meta.errors import BadRequest
from apiserver.meta.resource import Schema
from apiserver.patch.strategic_order import ElementIdentity, restore_order

_DIRECTIVE = "$patch"
_RETAIN_KEYS = "$retainKeys"
_DELETE_FROM = "$deleteFromPrimitiveList/"
_ORDER = "$setElementOrder/"
_UNKNOWN: Schema = {}


def strategic_merge_patch(obj: Mapping[str, Any], patch: Mapping[str, Any], schema: Schema) -> dict[str, Any]:
    """`patch` over `obj`, neither of which is changed. Without hints a list replaces a list; a null removes.

    The directives are `$patch: replace | delete` in objects and in elements of merged lists, `$retainKeys`,
    `$deleteFromPrimitiveList/<field>` and `$setElementOrder/<field>`. Raises BadRequest.
    """
    if nests_deeper_than(patch, MAX_OBJECT_NESTING):
        raise _malformed(f"nested too deeply: more than {MAX_OBJECT_NESTING} levels")
    return _merge_object(copy.deepcopy(dict(obj)), copy.deepcopy(dict(patch)), schema)


@dataclass(frozen=True, slots=True)
class _Strategy:
    """How a field is merged: whole objects are replaced, or lists merged by `key`."""

    schema: Schema
    words: frozenset[str]
    key: str

    @classmethod
    def of(cls, schema: Schema, name: str) -> _Strategy:
        properties, additional = schema.get("properties") or {}, schema.get("additionalProperties")
        child: Schema = properties.get(name) or (additional if isinstance(additional, Mapping) else _UNKNOWN)
        words = str(child.get("x-kubernetes-patch-strategy", "")).split(",")
        return cls(child, frozenset(words), str(child.get("x-kubernetes-patch-merge-key", "")))

    @property
    def items(self) -> Schema:
        return self.schema.get("items") or _UNKNOWN

    @property
    def merges(self) -> bool:
        return "merge" in self.words

    @property
    def replaces(self) -> bool:
        return "replace" in self.words


def _merge_object(current: dict[str, Any], patch: dict[str, Any], schema: Schema) -> dict[str, Any]:
    match patch.pop(_DIRECTIVE, None):
        case None:
            pass
        case "replace":
            return _plain_object(patch)
        case "delete":
            return {}
        case other:
            raise _malformed(f"unknown patch type found: {other}")
    _retain_keys(current, patch)
    orders = {name: patch.pop(name) for name in list(patch) if name.startswith(_ORDER)}
    for name, value in patch.items():
        if name.startswith(_DELETE_FROM):
            _remove_values(current, name.removeprefix(_DELETE_FROM), value)
    for name, value in patch.items():
        if not name.startswith(_DELETE_FROM):
            order = _list_of(orders.get(f"{_ORDER}{name}"), f"{_ORDER}{name}")
            _merge_field(current, name, value, schema, order)
    for name, order in orders.items():
        _reorder(current, name.removeprefix(_ORDER), _list_of(order, name), schema)
    return current


def _retain_keys(current: dict[str, Any], patch: dict[str, Any]) -> None:
    retained = patch.pop(_RETAIN_KEYS, None)
    if retained is None:
        return
    named = {name.removeprefix(_DELETE_FROM).removeprefix(_ORDER) for name, each in patch.items() if each is not None}
    if not isinstance(retained, list) or not named <= {each for each in retained if isinstance(each, str)}:
        raise _malformed(f"{_RETAIN_KEYS} must be a list that has every key of the patch")
    for name in current.keys() - set(retained):
        del current[name]


def _remove_values(current: dict[str, Any], name: str, values: Any) -> None:
    held = current.get(name)
    unwanted = {fieldpath.value_element(each) for each in _list_of(values, f"{_DELETE_FROM}{name}") or []}
    if isinstance(held, list):
        current[name] = [each for each in held if fieldpath.value_element(each) not in unwanted]


def _merge_field(current: dict[str, Any], name: str, value: Any, schema: Schema, order: Sequence[Any] | None) -> None:
    held, strategy = current.get(name), _Strategy.of(schema, name)
    if value is None:
        current.pop(name, None)
    elif isinstance(value, dict) and value.get(_DIRECTIVE) == "delete":
        # an object that is asked to go leaves nothing behind where it is a field
        current.pop(name, None)
    elif isinstance(value, dict) and isinstance(held, dict) and not strategy.replaces:
        current[name] = _merge_object(held, value, strategy.schema)
    elif isinstance(value, list) and strategy.merges:
        current[name] = _merge_list(held if isinstance(held, list) else [], value, strategy, order)
    else:
        current[name] = _plain(value)


def _merge_list(held: list[Any], patch: list[Any], strategy: _Strategy, order: Sequence[Any] | None) -> list[Any]:
    if not all(isinstance(each, dict) for each in (*held, *patch)):
        if any(isinstance(each, dict | list) for each in (*held, *patch)):
            raise _malformed("the elements of a list that is merged must all be objects, or none of them")
        known = {fieldpath.value_element(each) for each in held}
        merged = [*held, *(each for each in patch if fieldpath.value_element(each) not in known)]
        return restore_order(merged, held=held, wanted=patch if order is None else order, identity=ElementIdentity())
    if not strategy.key:
        raise _malformed("cannot merge lists without merge key")
    identity = ElementIdentity(strategy.key)
    patch = _without_deleted(held, patch, identity)
    if order is not None:
        identity.check_merge_keys(order)
    merged = _merge_elements(held, patch, identity, strategy.items)
    return restore_order(merged, held=held, wanted=patch if order is None else order, identity=identity)


def _without_deleted(held: list[Any], patch: list[Any], identity: ElementIdentity) -> list[Any]:
    """The elements of the patch that are no directives; what those ask for is done to `held`."""
    kept, gone, replace = [], set[str](), False
    for each in patch:
        match each.get(_DIRECTIVE):
            case None:
                kept.append(each)
            case "delete":
                gone.add(identity.text(each))
            case "replace":
                replace = True
            case "merge":
                raise _malformed("merging lists cannot yet be specified in the patch")
            case other:
                raise _malformed(f"unknown patch type found: {other}")
    if replace:
        held.clear()
    elif gone:
        held[:] = [each for each in held if identity.text(each) not in gone]
    return kept


def _merge_elements(held: list[Any], patch: list[Any], identity: ElementIdentity, items: Schema) -> list[Any]:
    merged, places = [*held], identity.positions(held)
    for each in patch:
        place = places.setdefault(identity.text(each), len(merged))
        if place == len(merged):
            merged.append(_plain_object(each))
        else:
            merged[place] = _merge_object(merged[place], each, items)
    return merged


def _reorder(current: dict[str, Any], name: str, order: Sequence[Any] | None, schema: Schema) -> None:
    """An order for a list that the patch does not change otherwise; what it changes is in order already."""
    held, strategy = current.get(name), _Strategy.of(schema, name)
    if order is None or not isinstance(held, list) or not strategy.merges:
        return
    objects = all(isinstance(each, dict) for each in held)
    if objects and not strategy.key:
        raise _malformed("cannot merge lists without merge key")
    identity = ElementIdentity(strategy.key if objects else "")
    identity.check_merge_keys(order)
    current[name] = restore_order(held, held=held, wanted=order, identity=identity)


def _plain(value: Any) -> Any:
    """What a patch puts where nothing was to be merged with: without nulls and directives."""
    if isinstance(value, dict):
        return _plain_object(value)
    if isinstance(value, list):
        return [_plain(each) for each in value if not (isinstance(each, dict) and _DIRECTIVE in each)]
    return value


def _plain_object(value: dict[str, Any]) -> dict[str, Any]:
    return {
        name: _plain(each)
        for name, each in value.items()
        if each is not None and not name.startswith((_DIRECTIVE, _RETAIN_KEYS, _DELETE_FROM, _ORDER))
    }


def _list_of(value: Any, name: str) -> list[Any] | None:
    if value is not None and not isinstance(value, list):
        raise _malformed(f"{name} must be a list")
    return value


def _malformed(why: str) -> BadRequest:
    return BadRequest(f"error decoding patch: {why}")
