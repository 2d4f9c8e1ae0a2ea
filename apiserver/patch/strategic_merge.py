"""Strategic merge patch: a merge patch that also merges lists, directed by the schema (WIRE-D81).

The hints are `x-kubernetes-patch-strategy` and `x-kubernetes-patch-merge-key`, as in Kubernetes' OpenAPI documents.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from apiserver.json.values import MAX_OBJECT_NESTING, deep_copy, nests_deeper_than
from apiserver.meta import field_path as fieldpath
from apiserver.meta.errors import BadRequest
from apiserver.meta.resource import Schema
from apiserver.patch.strategic_order import ElementIdentity, sort_merged

_DIRECTIVE = "$patch"
_RETAIN_KEYS = "$retainKeys"
_DELETE_FROM = "$deleteFromPrimitiveList/"
_ORDER = "$setElementOrder/"
_UNKNOWN: Schema = {}


def strategic_merge_patch(obj: Mapping[str, Any], patch: Mapping[str, Any], schema: Schema) -> dict[str, Any]:
    """Merges `patch` into a copy of `obj`. Null removes a field; without hints a list replaces a list.

    The directives are `$patch: replace | delete` in objects and in elements of merged lists, `$retainKeys`,
    `$deleteFromPrimitiveList/<field>` and `$setElementOrder/<field>`. Raises BadRequest.
    """
    if nests_deeper_than(patch, MAX_OBJECT_NESTING):
        raise _malformed(f"nested too deeply: more than {MAX_OBJECT_NESTING} levels")
    return _merge_object(deep_copy(dict(obj)), deep_copy(dict(patch)), schema)


@dataclass(frozen=True, slots=True)
class _Strategy:
    """The patch strategy of a field, and the merge `key` of a list."""

    schema: Schema
    strategies: frozenset[str]
    key: str

    @classmethod
    def of(cls, schema: Schema, name: str) -> _Strategy:
        properties, additional = schema.get("properties") or {}, schema.get("additionalProperties")
        child: Schema = properties.get(name) or (additional if isinstance(additional, Mapping) else _UNKNOWN)
        strategies = str(child.get("x-kubernetes-patch-strategy", "")).split(",")
        return cls(child, frozenset(strategies), str(child.get("x-kubernetes-patch-merge-key", "")))

    @property
    def items(self) -> Schema:
        return self.schema.get("items") or _UNKNOWN

    @property
    def merges(self) -> bool:
        return "merge" in self.strategies

    @property
    def replaces(self) -> bool:
        return "replace" in self.strategies


def _merge_object(current: dict[str, Any], patch: dict[str, Any], schema: Schema) -> dict[str, Any]:
    match patch.pop(_DIRECTIVE, None):
        case None:
            pass
        case "replace":
            return _strip_object(patch)
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
            order = _require_list(orders.get(f"{_ORDER}{name}"), f"{_ORDER}{name}")
            _merge_field(current, name, value, schema, order)
    for name, order in orders.items():
        _reorder(current, name.removeprefix(_ORDER), _require_list(order, name), schema)
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
    existing = current.get(name)
    unwanted = {fieldpath.value_element(each) for each in _require_list(values, f"{_DELETE_FROM}{name}") or []}
    if isinstance(existing, list):
        current[name] = [each for each in existing if fieldpath.value_element(each) not in unwanted]


def _merge_field(current: dict[str, Any], name: str, value: Any, schema: Schema, order: Sequence[Any] | None) -> None:
    existing, strategy = current.get(name), _Strategy.of(schema, name)
    if value is None:
        current.pop(name, None)
    elif isinstance(value, dict) and value.get(_DIRECTIVE) == "delete":
        # a field whose object is deleted is removed as well
        current.pop(name, None)
    elif isinstance(value, dict) and isinstance(existing, dict) and not strategy.replaces:
        current[name] = _merge_object(existing, value, strategy.schema)
    elif isinstance(value, list) and strategy.merges:
        current[name] = _merge_list(existing if isinstance(existing, list) else [], value, strategy, order)
    else:
        current[name] = _strip_directives(value)


def _merge_list(existing: list[Any], patch: list[Any], strategy: _Strategy, order: Sequence[Any] | None) -> list[Any]:
    if not all(isinstance(each, dict) for each in (*existing, *patch)):
        if any(isinstance(each, dict | list) for each in (*existing, *patch)):
            raise _malformed("the elements of a list that is merged must all be objects, or none of them")
        present = {fieldpath.value_element(each) for each in existing}
        merged = [*existing, *(each for each in patch if fieldpath.value_element(each) not in present)]
        return sort_merged(
            merged, existing=existing, order=patch if order is None else order, identity=ElementIdentity()
        )
    if not strategy.key:
        raise _malformed("cannot merge lists without merge key")
    identity = ElementIdentity(strategy.key)
    patch = _apply_list_directives(existing, patch, identity)
    if order is not None:
        identity.check_merge_keys(order)
    merged = _merge_elements(existing, patch, identity, strategy.items)
    return sort_merged(merged, existing=existing, order=patch if order is None else order, identity=identity)


def _apply_list_directives(existing: list[Any], patch: list[Any], identity: ElementIdentity) -> list[Any]:
    """Applies the directives of the patch to `existing` in place, and returns the other elements of the patch."""
    elements, deleted, replace = [], set[str](), False
    for each in patch:
        match each.get(_DIRECTIVE):
            case None:
                elements.append(each)
            case "delete":
                deleted.add(identity.text(each))
            case "replace":
                replace = True
            case "merge":
                raise _malformed("merging lists cannot yet be specified in the patch")
            case other:
                raise _malformed(f"unknown patch type found: {other}")
    if replace:
        existing.clear()
    elif deleted:
        existing[:] = [each for each in existing if identity.text(each) not in deleted]
    return elements


def _merge_elements(existing: list[Any], patch: list[Any], identity: ElementIdentity, items: Schema) -> list[Any]:
    merged, positions = [*existing], identity.positions(existing)
    for each in patch:
        position = positions.setdefault(identity.text(each), len(merged))
        if position == len(merged):
            merged.append(_strip_object(each))
        else:
            merged[position] = _merge_object(merged[position], each, items)
    return merged


def _reorder(current: dict[str, Any], name: str, order: Sequence[Any] | None, schema: Schema) -> None:
    """Orders a list that the patch does not change otherwise. Changed lists are already in order."""
    existing, strategy = current.get(name), _Strategy.of(schema, name)
    if order is None or not isinstance(existing, list) or not strategy.merges:
        return
    objects = all(isinstance(each, dict) for each in existing)
    if objects and not strategy.key:
        raise _malformed("cannot merge lists without merge key")
    identity = ElementIdentity(strategy.key if objects else "")
    identity.check_merge_keys(order)
    current[name] = sort_merged(existing, existing=existing, order=order, identity=identity)


def _strip_directives(value: Any) -> Any:
    """Returns a value of the patch that is stored without a merge, without nulls and directives."""
    if isinstance(value, dict):
        return _strip_object(value)
    if isinstance(value, list):
        return [_strip_directives(each) for each in value if not (isinstance(each, dict) and _DIRECTIVE in each)]
    return value


def _strip_object(value: dict[str, Any]) -> dict[str, Any]:
    return {
        name: _strip_directives(each)
        for name, each in value.items()
        if each is not None and not name.startswith((_DIRECTIVE, _RETAIN_KEYS, _DELETE_FROM, _ORDER))
    }


def _require_list(value: Any, name: str) -> list[Any] | None:
    if value is not None and not isinstance(value, list):
        raise _malformed(f"{name} must be a list")
    return value


def _malformed(why: str) -> BadRequest:
    return BadRequest(f"error decoding patch: {why}")
