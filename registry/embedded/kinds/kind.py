"""The definition of a kind in the embedded cluster: names, versions, schema, table columns and validation."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from apiserver.encoding.table import NAME
from apiserver.meta.errors import FieldError
from apiserver.meta.object_meta import dns1123_subdomain_errors
from apiserver.meta.resource import (
    METADATA_FIELDS,
    Column,
    FieldValue,
    GroupResource,
    Object,
    Resource,
    Schema,
    no_cells,
)
from apiserver.schema.pruning_and_defaulting import schema_errors
from registry.embedded.kinds.protobuf import message_descriptor_of
from registry.generic.deletion import Finalization, MetadataFinalizers


class KindValidation(Protocol):
    """Defaulting and validation of one kind. Called only with objects whose fields have the types of the schema."""

    def initialize(self, obj: Object) -> None:
        """Sets the fields that every new object has, in place, before `default`."""
        ...

    def default(self, obj: Object) -> None:
        """Sets defaults in place, on create and on update."""
        ...

    def validate(self, obj: Object) -> list[FieldError]: ...

    def validate_create(self, obj: Object) -> list[FieldError]:
        """Checks what may be stored, but not be created. Called after `validate` has found no error."""
        ...

    def validate_update(self, new: Object, old: Object) -> list[FieldError]:
        """Checks for changes that are not allowed. Called after `validate` has found no error."""
        ...

    def is_slow(self) -> bool:
        """True if these checks take long even for a small object."""
        ...


class NoValidation:
    """For kinds without defaults of their own, whose content is not validated."""

    def initialize(self, obj: Object) -> None:
        pass

    def default(self, obj: Object) -> None:
        pass

    def validate(self, obj: Object) -> list[FieldError]:
        return []

    def validate_create(self, obj: Object) -> list[FieldError]:
        return []

    def validate_update(self, new: Object, old: Object) -> list[FieldError]:
        return []

    def is_slow(self) -> bool:
        return False


CREATED_AT = (
    NAME,
    Column("Created At", "date", description="The time at which the object was created."),
)
"""All columns of kinds whose table shows the time of creation instead of the age; see `table_cells.created_at`."""

NO_VALIDATION: KindValidation = NoValidation()
METADATA_FINALIZERS: Finalization = MetadataFinalizers()


@dataclass(frozen=True, kw_only=True)
class Kind:
    """All `versions` are served and share one storage; the first is preferred.

    With `status` there is a subresource of that name, and `initial_status` is the status of a new object.
    `generation` counts changes of everything but metadata and status.
    `selectable_fields` and `metadata_fields` are the fields that field selectors support.
    `subresource_fields` change only through a subresource of their own, not with an update of the object.
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
    selectable_fields: Mapping[str, FieldValue] = field(default_factory=dict)
    metadata_fields: tuple[str, ...] = METADATA_FIELDS
    columns: tuple[Column, ...] = ()
    cells: Callable[[Object], Sequence[object]] = no_cells
    replaces_default_columns: bool = False
    validation: KindValidation = NO_VALIDATION
    finalization: Finalization = METADATA_FINALIZERS

    @property
    def group_resource(self) -> GroupResource:
        return GroupResource(self.group, self.plural)

    def resources(self) -> tuple[Resource, ...]:
        """Returns a Resource for each version."""
        return tuple(self._resource(version) for version in self.versions)

    def schema_errors(self, obj: Object) -> list[FieldError]:
        """Returns an error for each value that does not have the type of the schema."""
        return [
            problem
            for name, schema in self.properties.items()
            if name in obj
            for problem in schema_errors(schema, obj[name], name)
        ]

    def default(self, obj: Object) -> None:
        """Sets defaults in place, unless a value has a wrong type: validation reports that."""
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
            metadata_fields=self.metadata_fields,
            strategic_merge=True,
        )
