"""The type model of structured-merge-diff, derived from structural schemas: which values are leaves, and how list items
are identified (WIRE-G8, WIRE-G34).

An Atom has the forms that a value may take; the value itself decides which form applies.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Literal

from apiserver.meta import field_path as fieldpath
from apiserver.meta.resource import Schema

Scalar = Literal["numeric", "string", "boolean", "untyped"]


class Absent:
    """The type of ABSENT, which stands for a missing value as opposed to null."""

    def __deepcopy__(self, memo: dict[int, Any]) -> Absent:
        return self


ABSENT: Final = Absent()


@dataclass(frozen=True, slots=True)
class MapType:
    """An object. Keys besides `fields` have type `element_type`, or any type with `preserves_unknown_fields`; without
    both they are not allowed."""

    fields: Mapping[str, Atom] = field(default_factory=dict)
    element_type: Atom | None = None
    preserves_unknown_fields: bool = False
    atomic: bool = False

    def value_atom(self, name: str) -> Atom | None:
        """Returns the type of a key's value, None if the schema does not declare the key."""
        return self.fields.get(name) or (DEDUCED if self.preserves_unknown_fields else self.element_type)


@dataclass(frozen=True, slots=True)
class ListType:
    """A list: atomic, or associative as a set or as a map by `keys`. Without `element_type` items may have any type."""

    element_type: Atom | None = None
    associative: bool = False
    keys: tuple[str, ...] = ()
    key_defaults: Mapping[str, Any] = field(default_factory=dict)

    @property
    def item_atom(self) -> Atom:
        return self.element_type or DEDUCED

    def path_element(self, item: Any) -> str:
        """Returns the path element of an item. Raises ValueError for an item without an identity (WIRE-G24)."""
        return self._by_keys(item) if self.keys else _by_value(item)

    def with_path_elements(self, items: Sequence[Any]) -> list[tuple[str, Any]]:
        """Returns items with their path elements, without the items that have no identity."""
        found = []
        for item in items:
            try:
                found.append((self.path_element(item), item))
            except ValueError:
                continue
        return found

    def _by_keys(self, item: Any) -> str:
        if item is None:
            raise ValueError("associative list with keys may not have a null element")
        if not isinstance(item, dict):
            raise ValueError("associative list with keys may not have non-map elements")
        keys = {name: item.get(name, self.key_defaults.get(name)) for name in self.keys}
        present = {name: value for name, value in keys.items() if name in item or value is not None}
        if not present:
            quoted = " ".join(f'"{name}"' for name in self.keys)
            raise ValueError(
                f"associative list with keys has an element that omits all key fields [{quoted}] "
                "(and doesn't have default values for any key fields)"
            )
        return fieldpath.key_element(present)


@dataclass(frozen=True, slots=True)
class Atom:
    """The forms that a value may have."""

    scalar: Scalar | None = None
    list_type: ListType | None = None
    map_type: MapType | None = None
    # every form as an Atom of its own, precomputed because deduce_atom() runs for every value of every object
    _as_scalar: Atom = field(init=False, repr=False, compare=False)
    _as_list: Atom = field(init=False, repr=False, compare=False)
    _as_map: Atom = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        scalar, listed, mapped = self.scalar, self.list_type, self.map_type
        several = [scalar, listed, mapped].count(None) < 2
        object.__setattr__(self, "_as_scalar", Atom(scalar=scalar) if several and scalar is not None else self)
        object.__setattr__(self, "_as_list", Atom(list_type=listed) if several and listed is not None else self)
        object.__setattr__(self, "_as_map", Atom(map_type=mapped) if several and mapped is not None else self)

    def deduce_atom(self, value: Any) -> Atom:
        """Returns the Atom with only the form of `value`. Null, ABSENT and values of no allowed form get all forms."""
        if isinstance(value, dict):
            return self._as_map
        if isinstance(value, list):
            return self._as_list
        if value is None or value is ABSENT:
            return self
        return self._as_scalar


DEDUCED = Atom(scalar="untyped", list_type=ListType(), map_type=MapType(preserves_unknown_fields=True))
"""The type of values without a schema: objects are granular, lists atomic."""


def atom_from_schema(schema: Schema, *, preserve: bool = False) -> Atom:
    """Converts a structural schema. `preserve` means that a schema above it preserves unknown fields."""
    preserve = preserve or bool(schema.get("x-kubernetes-preserve-unknown-fields"))
    match schema.get("type", ""):
        case "":
            return Atom("untyped", _list_type(schema, preserve=preserve), _map_type(schema, preserve=preserve))
        case "object":
            return Atom(map_type=_map_type(schema, preserve=preserve))
        case "array":
            return Atom(list_type=_list_type(schema, preserve=preserve))
        case "integer" | "number":
            return Atom(scalar="numeric")
        case "boolean":
            return Atom(scalar="boolean")
        case _:
            return Atom(scalar="string" if schema.get("format", "") in ("", "byte") else "untyped")


def _map_type(schema: Schema, *, preserve: bool) -> MapType:
    properties = schema.get("properties") or {}
    additional = schema.get("additionalProperties")
    return MapType(
        fields={name: atom_from_schema(each, preserve=preserve) for name, each in properties.items()},
        element_type=atom_from_schema(additional, preserve=preserve) if isinstance(additional, Mapping) else None,
        preserves_unknown_fields=additional is True or (additional is None and (preserve or not properties)),
        atomic=schema.get("x-kubernetes-map-type") == "atomic",
    )


def _list_type(schema: Schema, *, preserve: bool) -> ListType:
    items = schema.get("items")
    item = atom_from_schema(items, preserve=preserve) if isinstance(items, Mapping) else None
    match schema.get("x-kubernetes-list-type"):
        case "set":
            return ListType(item, associative=True)
        case "map":
            keys = tuple(schema["x-kubernetes-list-map-keys"])
            properties = (items or {}).get("properties") or {}
            defaults = {name: properties[name]["default"] for name in keys if "default" in properties.get(name, {})}
            return ListType(item, associative=True, keys=keys, key_defaults=defaults)
        case _:
            return ListType(item)


def _by_value(item: Any) -> str:
    if isinstance(item, dict):
        raise ValueError("associative list without keys has an element that's a map type")
    if isinstance(item, list):
        raise ValueError("not supported: associative list with lists as elements")
    if item is None:
        raise ValueError("associative list without keys has an element that's an explicit null")
    return fieldpath.value_element(item)
