"""The Strategy of Tenants: validation and warnings. Nothing is added to what a client sends. All errors are reported
together."""

from __future__ import annotations

from functools import cached_property

from apiserver.json.values import deep_copy
from apiserver.meta import errors
from apiserver.meta import object_meta as meta
from apiserver.meta.errors import FieldError
from apiserver.meta.resource import Object, Resource
from apiserver.schema.pruning_and_defaulting import schema_errors
from registry import quantity
from registry.application.validation import undocumented_warnings
from registry.names import is_root, tenant_name_errors
from registry.tenant.own_objects import room_errors
from registry.tenant.quota_keys import key_errors, value_errors
from registry.tenant.spec import with_spec_defaults
from registry.tenant.types import TENANT_SPEC, tenant_resource

_MAX_CHANGED_QUOTAS = 1000
_MAX_CLASS_LENGTH = 63
_MAX_GENERATE_NAME = 253
_MAX_APP_VERSION = 128


class TenantStrategy:
    """The Strategy of Tenants. A client cannot write the status: it is dropped on create and restored on update
    (WIRE-D99)."""

    @cached_property
    def resource(self) -> Resource:
        return tenant_resource()

    def prepare_for_create(self, obj: Object) -> None:
        obj.pop("status", None)
        if obj.get("appVersion", "") in ("", None):
            obj.pop("appVersion", None)

    def prepare_for_update(self, new: Object, old: Object) -> None:
        self.prepare_for_create(new)
        if "status" in old:
            new["status"] = deep_copy(old["status"])

    def name_errors(self, obj: Object) -> list[FieldError]:
        metadata = obj["metadata"]
        return tenant_name_errors(metadata.get("namespace", ""), metadata.get("name", ""))

    def validate(self, obj: Object) -> list[FieldError]:
        return self.validate_update(obj, {})

    def validate_update(self, new: Object, old: Object) -> list[FieldError]:
        new = self.shown(new)
        problems = self._type_errors(new)
        return problems or [
            *quota_errors(_quotas(new), _quotas(old)),
            *_scheduling_class_errors(new, old),
            *_length_errors(new, old),
            *_root_owner_errors(new, old),
        ]

    def is_slow(self) -> bool:
        return False

    def warnings(self, obj: Object) -> list[str]:
        return undocumented_warnings(TENANT_SPEC, obj.get("spec"))

    def shown(self, obj: Object) -> Object:
        return with_spec_defaults(obj)

    def _type_errors(self, obj: Object) -> list[FieldError]:
        schemas = {"appVersion": self.resource.properties["appVersion"], "spec": TENANT_SPEC}
        found = (schema_errors(schema, obj[field], field) for field, schema in schemas.items() if field in obj)
        return [problem for problems in found for problem in problems]


def quota_errors(quotas: Object, stored: Object) -> list[FieldError]:
    """The errors of quotas that differ from the stored ones (R-011). Too many changes are rejected without validating
    them, because exact arithmetic is slow (ATTACK-13)."""
    changed = {key: value for key, value in quotas.items() if key not in stored or stored[key] != value}
    if len(changed) > _MAX_CHANGED_QUOTAS:
        why = f"must have at most {_MAX_CHANGED_QUOTAS} items that are new or changed"
        return [FieldError("FieldValueTooMany", "spec.resourceQuotas", len(changed), why)]
    problems: list[FieldError] = []
    for key, value in changed.items():
        path = f"spec.resourceQuotas[{key}]"
        wrong = key_errors(key)
        problems += [errors.invalid(path, key, text) for text in wrong]
        problems += _quantity_errors(path, "" if wrong else key, value)
        problems += [errors.invalid(path, value, text) for text in room_errors(key, value)]
    return problems


def _scheduling_class_errors(new: Object, old: Object) -> list[FieldError]:
    """The errors of a new or changed scheduling class, which has to be a valid label value."""
    field = "schedulingClass"
    value = new["spec"].get(field, "")
    if value == (old.get("spec") or {}).get(field):
        return []
    if len(value) > _MAX_CLASS_LENGTH:
        # the message must not repeat the value, which may be as long as a request
        return [errors.too_long(f"spec.{field}", _MAX_CLASS_LENGTH)]
    return [errors.invalid(f"spec.{field}", value, text) for text in meta.label_value_errors(value)]


def _length_errors(new: Object, old: Object) -> list[FieldError]:
    """The errors of texts that are new or changed and too long for the HelmRelease, where no other rule bounds them
    (ATTACK-16)."""
    found = []
    name, stored_name = (each.get("metadata", {}).get("generateName") or "" for each in (new, old))
    if name != stored_name and len(name) > _MAX_GENERATE_NAME:
        found.append(errors.too_long("metadata.generateName", _MAX_GENERATE_NAME))
    version = new.get("appVersion") or ""
    if version != old.get("appVersion") and len(version) > _MAX_APP_VERSION:
        found.append(errors.too_long("appVersion", _MAX_APP_VERSION))
    return found


def _root_owner_errors(new: Object, old: Object) -> list[FieldError]:
    """The error of new or changed owners of the root Tenant: the garbage collector would delete it with them, and it
    would be created anew with the defaults."""
    metadata = new["metadata"]
    owners = metadata.get("ownerReferences")
    if not owners or owners == (old.get("metadata") or {}).get("ownerReferences"):
        return []
    if not is_root(metadata.get("namespace", ""), metadata.get("name", "")):
        return []
    return [errors.forbidden("metadata.ownerReferences", "the root tenant cannot have owners")]


def _quantity_errors(path: str, key: str, value: str | int) -> list[FieldError]:
    if isinstance(value, str) and len(value) > quantity.MAX_LENGTH:
        # the message must not repeat the value, which may be as long as a request
        return [errors.too_long(path, quantity.MAX_LENGTH)]
    return [errors.invalid(path, value, text) for text in value_errors(key, value)]


def _quotas(obj: Object) -> Object:
    quotas = (obj.get("spec") or {}).get("resourceQuotas")
    return quotas if isinstance(quotas, dict) else {}
