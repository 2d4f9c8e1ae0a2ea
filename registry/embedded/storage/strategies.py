"""The Strategy of every kind of the embedded cluster, and of the subresources status and finalize. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from apiserver.json.values import deep_copy
from apiserver.meta import errors
from apiserver.meta.errors import FieldError
from apiserver.meta.resource import Object, Resource
from apiserver.schema.pruning_and_defaulting import schema_errors
from registry.embedded.kinds.kind import Kind

_OWN_FIELDS = ("apiVersion", "kind", "metadata")


class KindStrategy:
    """The Strategy of the resource itself. If `status` is a subresource, an update of the resource does not change it
    (WIRE-D53)."""

    def __init__(self, kind: Kind, resource: Resource) -> None:
        self._kind = kind
        self._resource = resource

    @property
    def resource(self) -> Resource:
        return self._resource

    def prepare_for_create(self, obj: Object) -> None:
        kind = self._kind
        if kind.status:
            _put(obj, "status", kind.initial_status)
        obj["metadata"].pop("generation", None)
        if kind.generation:
            obj["metadata"]["generation"] = 1
        if not kind.schema_errors(obj):
            kind.validation.initialize(obj)
            kind.validation.default(obj)

    def prepare_for_update(self, new: Object, old: Object) -> None:
        kind = self._kind
        unchanged = (*kind.subresource_fields, "status") if kind.status else kind.subresource_fields
        for field in unchanged:
            _put(new, field, old.get(field))
        kind.default(new)
        if kind.generation and _content(new) != _content(old):
            new["metadata"]["generation"] = old["metadata"].get("generation", 0) + 1

    def name_errors(self, obj: Object) -> list[FieldError]:
        name = obj["metadata"]["name"]
        return [errors.invalid("metadata.name", name, text) for text in self._kind.name_errors(name)]

    def validate(self, obj: Object) -> list[FieldError]:
        return self._content_errors(obj) or self._kind.validation.validate_create(obj)

    def validate_update(self, new: Object, old: Object) -> list[FieldError]:
        return self._content_errors(new) or self._kind.validation.validate_update(new, old)

    def _content_errors(self, obj: Object) -> list[FieldError]:
        missing = [errors.required(field) for field in self._kind.required if field not in obj]
        problems = [*missing, *self._kind.schema_errors(obj)]
        return problems or self._kind.validation.validate(obj)

    def is_slow(self) -> bool:
        return self._kind.validation.is_slow()

    def warnings(self, obj: Object) -> list[str]:
        return []


class SubresourceStrategy:
    """The Strategy of a subresource that writes one field of the object (WIRE-D53) and the metadata fields in
    `metadata`, which are labels and annotations for subresources of Namespaces."""

    def __init__(self, resource: Resource, *, field: str, metadata: Sequence[str] = ()) -> None:
        self._resource = resource
        self._field = field
        # managedFields record this write, and resourceVersion is its precondition
        self._metadata = ("managedFields", "resourceVersion", *metadata)

    @property
    def resource(self) -> Resource:
        return self._resource

    def prepare_for_create(self, obj: Object) -> None:
        raise errors.ResourceMethodNotAllowed(self._resource.group_resource, "create")

    def prepare_for_update(self, new: Object, old: Object) -> None:
        wanted, metadata = new.get(self._field), new["metadata"]
        new.clear()
        new.update(deep_copy(old))
        _put(new, self._field, wanted)
        for name in self._metadata:
            _put(new["metadata"], name, metadata.get(name))

    def name_errors(self, obj: Object) -> list[FieldError]:
        return []

    def validate(self, obj: Object) -> list[FieldError]:
        schema = self._resource.properties.get(self._field)
        if schema is None or self._field not in obj:
            return []
        return schema_errors(schema, obj[self._field], self._field)

    def validate_update(self, new: Object, old: Object) -> list[FieldError]:
        return self.validate(new)

    def is_slow(self) -> bool:
        return False

    def warnings(self, obj: Object) -> list[str]:
        return []


def _content(obj: Object) -> Object:
    return {name: value for name, value in obj.items() if name not in (*_OWN_FIELDS, "status")}


def _put(obj: Object, field: str, value: Any) -> None:
    """Sets the field to a copy of the value, or removes the field if the value is None."""
    if value is None:
        obj.pop(field, None)
    else:
        obj[field] = deep_copy(value)
