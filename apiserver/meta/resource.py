"""The description of a resource: its names, schema and table columns. Data only."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Final, NamedTuple

from apiserver.meta.protobuf_message import MessageDescriptor

METADATA_FIELDS: Final = ("metadata.name", "metadata.namespace")

Object = dict[str, Any]
"""A Kubernetes object as a JSON value."""

Schema = Mapping[str, Any]
"""A structural OpenAPI v3 schema: type, properties, items, additionalProperties (a schema, never a boolean),
enum, pattern, default, nullable, and the `x-kubernetes-…` extensions."""


class Key(NamedTuple):
    """Namespace and name of an object; the namespace is empty at cluster scope. Sorts in the order of lists
    (WIRE-D61)."""

    namespace: str
    name: str


class GroupResource(NamedTuple):
    group: str
    resource: str

    def __str__(self) -> str:
        return f"{self.resource}.{self.group}" if self.group else self.resource


class GroupKind(NamedTuple):
    group: str
    kind: str

    def __str__(self) -> str:
        return f"{self.kind}.{self.group}" if self.group else self.kind


@dataclass(frozen=True, slots=True)
class Column:
    """A Table column; only `kubectl get -o wide` shows those with a `priority` above 0."""

    name: str
    type: str = "string"
    format: str = ""
    description: str = ""
    priority: int = 0


@dataclass(frozen=True, slots=True)
class Age:
    """A Table cell that shows the time since `since`, in seconds of the epoch; 0 means unknown."""

    since: int


def no_cells(obj: Object) -> Sequence[object]:
    return ()


def do_nothing(obj: Object) -> None:
    """The default of hooks that check or change an object."""


FieldValue = Callable[[Object], str]
"""Returns the value of a field for field selectors."""


def field_at(path: str) -> FieldValue:
    """Returns a getter for the string at a dotted path, which is empty if there is none."""
    *parents, last = path.split(".")

    def value(obj: Object) -> str:
        inside: Any = obj
        for name in parents:
            inside = inside.get(name)
            if not isinstance(inside, dict):
                return ""
        found = inside.get(last)
        return found if isinstance(found, str) else ""

    return value


def fields_at(*paths: str) -> Mapping[str, FieldValue]:
    """Returns the selectable fields at the given paths."""
    return {path: field_at(path) for path in paths}


@dataclass(frozen=True, kw_only=True)
class Resource:
    """One resource in one version of one group.

    `properties` are the schemas of the top-level fields besides apiVersion, kind and metadata, and `required` names
    those that an object must have; `preserve_unknown_fields` keeps other top-level fields as they are.
    `published` are the schemas that OpenAPI shows in place of some `properties`, by which writes are decoded.
    `list_kind_name` is the kind of lists, if it is not the kind with "List" at its end.
    `namespace_of` is for objects of cluster scope that are visible with a namespace: it returns this namespace, empty
    if there is none. It is in the key of the object, and not in its metadata.
    `precheck` gets the object as the client sent it, before unknown fields are pruned, and raises BadRequest for
    content that clients may not send.
    `default` sets defaults that the schema cannot express, in place. It runs on every object that a client sends, so
    the field manager of the request owns the fields it sets.
    `columns` are between Name and Age in a Table, those with a priority after Age; with `replaces_default_columns`
    the Table has no other columns. `cells` returns their values for an object, in the same order.
    `protobuf` describes Kubernetes' protobuf encoding of the kind; without it protobuf bodies are rejected (WIRE-E18).
    `selectable_fields` can be used in field selectors besides `metadata_fields` (WIRE-D57).
    `get_parameters` are the query parameters of `get` besides Kubernetes' own, each with its description.
    `strategic_merge` enables strategic merge patches, directed by the hints in the schemas (WIRE-D81).
    """

    group: str
    version: str
    kind: str
    plural: str
    singular: str
    namespaced: bool
    short_names: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()
    description: str = ""
    list_kind_name: str = ""
    properties: Mapping[str, Schema] = field(default_factory=dict)
    published: Mapping[str, Schema] = field(default_factory=dict)
    required: tuple[str, ...] = ()
    preserve_unknown_fields: bool = False
    columns: tuple[Column, ...] = ()
    cells: Callable[[Object], Sequence[object]] = no_cells
    replaces_default_columns: bool = False
    namespace_of: Callable[[Object], str] | None = None
    precheck: Callable[[Object], None] = do_nothing
    default: Callable[[Object], None] = do_nothing
    protobuf: MessageDescriptor | None = None
    selectable_fields: Mapping[str, FieldValue] = field(default_factory=dict)
    metadata_fields: tuple[str, ...] = METADATA_FIELDS
    get_parameters: Mapping[str, str] = field(default_factory=dict)
    strategic_merge: bool = False

    @property
    def api_version(self) -> str:
        return f"{self.group}/{self.version}" if self.group else self.version

    @property
    def has_namespace_in_key(self) -> bool:
        return self.namespaced or self.namespace_of is not None

    @property
    def list_kind(self) -> str:
        return self.list_kind_name or f"{self.kind}List"

    @cached_property
    def field_labels(self) -> tuple[str, ...]:
        """The fields of field selectors."""
        return (*self.metadata_fields, *self.selectable_fields)

    @cached_property
    def group_resource(self) -> GroupResource:
        return GroupResource(self.group, self.plural)

    @cached_property
    def group_kind(self) -> GroupKind:
        return GroupKind(self.group, self.kind)
