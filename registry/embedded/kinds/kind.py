"""What the embedded host knows of a kind: names, versions, schema, columns and the rules that are its own."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from apiserver.encoding.table import NAME
from apiserver.meta.errors import FieldError
from apiserver.meta.object_meta import dns1123_subdomain_errors
from apiserver.meta.resource import Column, FieldValue, GroupResource, Object, Resource, Schema, no_cells
from apiserver.schema.pruning_and_defaulting import schema_errors
from registry.embedded.kinds.protobuf import message_descriptor_of
from registry.generic.deletion import Finalization, MetadataFinalizers


class KindValidation(Protocol):
    """Defaults and validation of one kind. Called with objects whose types are as the schema says."""

    def initialize(self, obj: Object) -> None:
        """In place, on create, before `default`."""
        ...

    def default(self, obj: Object) -> None:
        """In place, on create and on update."""
        ...

    def validate(self, obj: Object) -> list[FieldError]: ...

    def validate_update(self, new: Object, old: Object) -> list[FieldError]:
        """What may not change; called besides `validate`."""
        ...


class NoValidation:
    """The Rules of kinds whose content is nobody's business here."""

    def initialize(self, obj: Object) -> None:
        pass

    def default(self, obj: Object) -> None:
        pass

    def validate(self, obj: Object) -> list[FieldError]:
        return []

    def validate_update(self, new: Object, old: Object) -> list[FieldError]:
        return []


CREATED_AT = (
    NAME,
    Column("Created At", "date", description="The time at which the object was created."),
)
"""The columns, all of them, of kinds that say when instead of how long ago; `cells.created_at` fills them."""

NO_VALIDATION: KindValidation = NoValidation()
METADATA_FINALIZERS: Finalization = MetadataFinalizers()


@dataclass(frozen=True, kw_only=True)
class Kind:
    """`versions` are all served and share what is stored; the first is preferred.

    With `status` there is a subresource of that name, and `initial_status` is what a new object has there.
    `generation` counts changes of everything but metadata and status.
    `custom` are the kinds that come from CRDs; `selectable_fields` are the fields that field selectors know.
    The fields of `fixed` are not changed by an update of the object itself, but by a subresource of their own.
    """

    group: str
    versions: tuple[str, ...] = ("v1",)
    kind: str
    plural: str
    namespaced: bool = True
    short_names: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()
    description: str = ""
    status: bool = False
    initial_status: Object | None = None
    generation: bool = False
    name_errors: Callable[[str], list[str]] = dns1123_subdomain_errors
    properties: Mapping[str, Schema] = field(default_factory=dict)
    subresource_fields: tuple[str, ...] = ()
    required: tuple[str, ...] = ()
    custom: bool = False
    selectable_fields: Mapping[str, FieldValue] = field(default_factory=dict)
    columns: tuple[Column, ...] = ()
    cells: Callable[[Object], Sequence[object]] = no_cells
    replaces_default_columns: bool = False
    validation: KindValidation = NO_VALIDATION
    finalization: Finalization = METADATA_FINALIZERS

    @property
    def group_resource(self) -> GroupResource:
        return GroupResource(self.group, self.plural)

    def resources(self) -> tuple[Resource, ...]:
        """A Resource for each version."""
        return tuple(self._resource(version) for version in self.versions)

    def schema_errors(self, obj: Object) -> list[FieldError]:
        """What of the content is not of the type that the schema says."""
        return [
            problem
            for name, schema in self.properties.items()
            if name in obj
            for problem in schema_errors(schema, obj[name], name)
        ]

    def default(self, obj: Object) -> None:
        """In place; what is of a wrong type is left for validation."""
        if not self.schema_errors(obj):
            self.validation.default(obj)

    def _resource(self, version: str) -> Resource:
        return Resource(
            group=self.group,
            version=version,
            kind=self.kind,
            plural=self.plural,
            singular=self.kind.lower(),
            namespaced=self.namespaced,
            short_names=self.short_names,
            categories=self.categories,
            description=self.description,
            properties=self.properties,
            columns=self.columns,
            cells=self.cells,
            default=self.default,
            replaces_default_columns=self.replaces_default_columns,
            protobuf=message_descriptor_of(self.group, version, self.kind),
            selectable_fields=self.selectable_fields,
            strategic_merge=not self.custom,
        )
