"""The spec of a Tenant: what clients see of stored Helm values, and of a spec that a client sends. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from apiserver.json.deep import RawJson
from apiserver.json.values import MAX_OBJECT_NESTING
from apiserver.meta.resource import Object
from apiserver.schema.pruning_and_defaulting import apply_defaults
from registry.application.values import write_changed_values
from registry.names import SERVICE_FLAGS
from registry.tenant.types import TENANT_SPEC

_DEFAULTS: Mapping[str, Any] = {"host": "", **dict.fromkeys(SERVICE_FLAGS, False), "schedulingClass": ""}
_GATEWAY, _QUOTAS = "gateway", "resourceQuotas"
_DOCUMENTED = frozenset({*_DEFAULTS, _GATEWAY, _QUOTAS})
_INTERNAL = "_"
_CONTAINERS = (dict, list, RawJson)
# of a value in the spec of an object
_MAX_NESTING = MAX_OBJECT_NESTING - 2
# the characters of an unreadable key that a message shows
_MAX_SHOWN = 64


def spec_from_values(values: object) -> Object:
    """The spec of a Tenant from Helm values: the documented fields of the right type, defaults for all others, and
    undocumented keys as they are stored, which the result shares with `values`. Those that nest deeper than objects of
    this API may are left out: no client could write the Tenant any more."""
    stored = _mapping(values)
    spec: Object = {}
    for field, default in _DEFAULTS.items():
        value = stored.get(field)
        spec[field] = value if type(value) is type(default) else default
    if isinstance(stored.get(_GATEWAY), bool):
        spec[_GATEWAY] = stored[_GATEWAY]
    quotas = _mapping(stored.get(_QUOTAS))
    spec[_QUOTAS] = {key: value for key, each in quotas.items() if (value := _quantity(each)) is not None}
    for field in stored:
        if field not in _DOCUMENTED and field[:1] != _INTERNAL and _can_be_shown(stored[field]):
            spec[field] = stored[field]
    return spec


def with_spec_defaults(tenant: Object) -> Object:
    """A Tenant that a client sends, as it will be shown: with the defaults of its spec (WIRE-D98), and without nulls
    for documented fields, which count as omitted. The result shares values with `tenant`, which is not changed."""
    sent = tenant.get("spec")
    if sent is not None and not isinstance(sent, dict):
        return tenant
    spec = dict(sent or {})
    if isinstance(spec.get(_QUOTAS), dict):
        spec[_QUOTAS] = dict(spec[_QUOTAS])
    apply_defaults(TENANT_SPEC, spec)
    return {**tenant, "spec": spec}


def change_values(release_spec: Object, wanted: Object | None) -> None:
    """Changes the values in the spec of a HelmRelease, in place, to those of a Tenant that is updated to the spec
    `wanted`. To omit a field whose stored value cannot be read is no change of it: it was shown as omitted."""
    values = release_spec.get("values")
    if unreadable_values(values):
        wanted = {**spec_from_values(None), **(wanted or {})}
    write_changed_values(release_spec, wanted, spec_from_values(values))


def unreadable_paths(release: Object) -> list[str]:
    """The paths of stored values of a wrong type, or that nest too deeply. They are not shown, and stay until a client
    sets them."""
    return unreadable_values(_mapping(release.get("spec")).get("values"))


def unreadable_values(values: object) -> list[str]:
    """The same for the values of a HelmRelease."""
    if values is not None and not isinstance(values, dict):
        return ["spec.values"]
    stored, shown = _mapping(values), spec_from_values(values)
    fields = [field for field in (*_DEFAULTS, _GATEWAY) if field in stored and stored[field] is not None]
    paths = [f"spec.values.{field}" for field in fields if not _same(stored[field], shown.get(field))]
    paths += [
        f"spec.values.{field[:_MAX_SHOWN]}"
        for field in stored
        if field not in shown and field not in _DOCUMENTED and field[:1] != _INTERNAL
    ]
    quotas = stored.get(_QUOTAS)
    if quotas is not None and not isinstance(quotas, dict):
        return [*paths, f"spec.values.{_QUOTAS}"]
    unreadable = [key for key, value in _mapping(quotas).items() if value is not None and key not in shown[_QUOTAS]]
    return [*paths, *(f"spec.values.{_QUOTAS}[{key}]" for key in unreadable)]


def unreadable_quotas(release: Object) -> list[str]:
    """The error of stored quotas that have a wrong type. They are not shown, and limit nothing."""
    quotas = _mapping(_mapping(release.get("spec")).get("values")).get(_QUOTAS)
    if quotas is not None and not isinstance(quotas, dict):
        return [f"spec.{_QUOTAS}: must be an object, and not {_type_name(quotas)}"]
    return [
        f"spec.{_QUOTAS}[{key[:_MAX_SHOWN]}]: must be a quantity, and not {_type_name(value)}"
        for key, value in sorted(_mapping(quotas).items())
        if value is not None and _quantity(value) is None
    ]


def _can_be_shown(value: object) -> bool:
    """False for what nests too deeply, and for what is kept as text because it could not even be parsed."""
    level = [value] if isinstance(value, _CONTAINERS) else []
    for _ in range(_MAX_NESTING):
        if not level:
            return True
        if any(isinstance(each, RawJson) for each in level):
            return False
        level = [child for each in level for child in _children(each) if isinstance(child, _CONTAINERS)]
    return not level


def _children(container: Any) -> Iterable[Any]:
    return container.values() if isinstance(container, dict) else container


def _quantity(value: object) -> str | int | None:
    """Converts a Helm value, which may be a float such as 0.5, to a quantity: an integer or a string."""
    if isinstance(value, bool):
        return None
    if isinstance(value, float):
        return repr(value)
    return value if isinstance(value, str | int) else None


def _type_name(value: object) -> str:
    names = {dict: "an object", list: "a list", bool: "a boolean", str: "a string"}
    return names.get(type(value), "a number")


def _same(left: object, right: object) -> bool:
    return type(left) is type(right) and left == right


def _mapping(value: object) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}
