"""The Strategies of custom resources and of their status. Pure."""

from __future__ import annotations

from apiserver.meta import errors
from apiserver.meta.errors import FieldError
from apiserver.meta.object_meta import dns1123_subdomain_errors
from apiserver.meta.resource import Object, Resource
from apiserver.schema.pruning_and_defaulting import apply_defaults
from registry.embedded.custom.definition import CustomVersion
from registry.embedded.custom.validation import CustomValidation
from registry.embedded.storage.strategies import SubresourceStrategy


class CustomStrategy:
    """The Strategy of the resource itself."""

    def __init__(self, resource: Resource, version: CustomVersion, validation: CustomValidation) -> None:
        self._resource = resource
        self._version = version
        self._validation = validation
        properties = version.schema.get("properties") or {}
        self._status_schema = {"properties": {"status": properties["status"]}} if "status" in properties else {}

    @property
    def resource(self) -> Resource:
        return self._resource

    def prepare_for_create(self, obj: Object) -> None:
        if self._version.status:
            # a new object has the status that the schema declares as the default
            obj.pop("status", None)
            apply_defaults(self._status_schema, obj)
        obj["metadata"]["generation"] = 1

    def prepare_for_update(self, new: Object, old: Object) -> None:
        if self._version.status:
            new.pop("status", None)
            if "status" in old:
                new["status"] = old["status"]
        if _content(new) != _content(old):
            new["metadata"]["generation"] = old["metadata"].get("generation", 0) + 1

    def name_errors(self, obj: Object) -> list[FieldError]:
        name = obj["metadata"]["name"]
        return [errors.invalid("metadata.name", name, text) for text in dns1123_subdomain_errors(name)]

    def validate(self, obj: Object) -> list[FieldError]:
        return self._validation.create_errors(obj)

    def validate_update(self, new: Object, old: Object) -> list[FieldError]:
        return self._validation.update_errors(new, old)

    def is_slow(self) -> bool:
        return self._validation.is_slow

    def warnings(self, obj: Object) -> list[str]:
        return [self._version.deprecation] if self._version.deprecation else []


class CustomStatusStrategy(SubresourceStrategy):
    """The Strategy of the status of a custom resource."""

    def __init__(self, resource: Resource, validation: CustomValidation) -> None:
        super().__init__(resource, field="status")
        self._validation = validation

    def validate_update(self, new: Object, old: Object) -> list[FieldError]:
        return self._validation.status_errors(new, old)

    def is_slow(self) -> bool:
        return self._validation.is_slow


def _content(obj: Object) -> Object:
    return {name: value for name, value in obj.items() if name not in ("apiVersion", "kind", "metadata")}
