"""The Strategy of an application: names, validation and warnings. Nothing is added to what a client sends."""

from __future__ import annotations

import re

from apiserver.json.values import deep_copy
from apiserver.meta import errors
from apiserver.meta.errors import FieldError
from apiserver.meta.name_validation import DNS1035_LABEL_TEXT
from apiserver.meta.resource import Object, Resource
from registry.application.definition import MAX_RELEASE_NAME, ApplicationDefinition
from registry.application.validation import ApplicationValidation

_NAME = re.compile(r"[a-z]([-a-z0-9]*[a-z0-9])?")
_MAX_GENERATE_NAME = 253


class ApplicationStrategy:
    """A client cannot write the status: it is dropped on create and restored on update. appVersion is accepted and
    dropped."""

    def __init__(
        self, resource: Resource, definition: ApplicationDefinition, validation: ApplicationValidation
    ) -> None:
        self._resource = resource
        self._prefix = definition.prefix
        self._validation = validation

    @property
    def resource(self) -> Resource:
        return self._resource

    def prepare_for_create(self, obj: Object) -> None:
        obj.pop("status", None)
        obj.pop("appVersion", None)

    def prepare_for_update(self, new: Object, old: Object) -> None:
        self.prepare_for_create(new)
        if "status" in old:
            new["status"] = deep_copy(old["status"])

    def name_errors(self, obj: Object) -> list[FieldError]:
        return name_errors(obj["metadata"].get("name", ""), self._prefix)

    def validate(self, obj: Object) -> list[FieldError]:
        return [*_generate_name_errors(obj), *self._validation.create_errors(obj.get("spec"))]

    def validate_update(self, new: Object, old: Object) -> list[FieldError]:
        return self._validation.update_errors(new.get("spec"), old.get("spec"))

    def is_slow(self) -> bool:
        return self._validation.is_slow

    def shown(self, obj: Object) -> Object:
        return {**obj, "spec": self._validation.shown(obj.get("spec"))}

    def warnings(self, obj: Object) -> list[str]:
        return self._validation.warnings(obj.get("spec"))


def name_errors(name: str, prefix: str) -> list[FieldError]:
    """The errors in the name of a new application whose HelmRelease has this prefix."""
    problems = [] if _NAME.fullmatch(name) else [DNS1035_LABEL_TEXT]
    if len(name) > (most := MAX_RELEASE_NAME - len(prefix)):
        problems.append(f"must be no more than {most} characters, because its HelmRelease is {prefix}<name>")
    return [errors.invalid("metadata.name", name, problem) for problem in problems]


def _generate_name_errors(obj: Object) -> list[FieldError]:
    name = obj["metadata"].get("generateName") or ""
    return [errors.too_long("metadata.generateName", _MAX_GENERATE_NAME)] if len(name) > _MAX_GENERATE_NAME else []
