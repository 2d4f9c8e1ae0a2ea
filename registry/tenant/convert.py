"""A Tenant is a pure function of one HelmRelease; these are that function and its inverse.

Reading is total: what is damaged is left out. Writing changes what the Tenant shows and keeps everything else.
"""

from __future__ import annotations

from collections.abc import Mapping
from copy import deepcopy
from typing import Any

from pydantic import BaseModel, ValidationError

from apiserver.meta.resource import Key, Object
from registry.cluster.interface import HELMRELEASES
from registry.names import (
    APP_VERSION_ANNOTATION,
    APPLICATION_GROUP_LABEL,
    APPLICATION_KIND_LABEL,
    APPLICATION_NAME_LABEL,
    FINDINGS_ANNOTATION,
    FLAGS,
    GROUP,
    KIND,
    SHARD_LABEL,
    TENANT_FINALIZER,
    is_root,
    release_name,
    tenant_name,
    workload_namespace,
)
from registry.tenant.convert_metadata import (
    parse_json_annotation,
    string_entries,
    to_release_metadata,
    to_tenant_metadata,
)
from registry.tenant.release_settings import ReleaseSettings
from registry.tenant.types import Condition, EffectiveGateway, EffectiveHost

API_VERSION = f"{GROUP}/v1alpha1"
_CONDITIONS = ("Ready", "Released", "WorkloadsReady")
# kubectl's and controllers' own; every object answers to it in a selector, as a Namespace does
_NAME_LABEL = "kubernetes.io/metadata.name"

_SPEC_DEFAULTS: Mapping[str, Any] = {"host": "", **dict.fromkeys(FLAGS, False), "schedulingClass": ""}


class NotATenant(ValueError):
    """The HelmRelease holds no Tenant: it lacks the labels of one, or the name."""


def tenant_key(release: Object) -> Key:
    """Where the Tenant is that `release` holds. Raises NotATenant."""
    metadata = release.get("metadata") or {}
    labels = string_entries(metadata.get("labels"))
    name = tenant_name(str(metadata.get("name", "")))
    ours = labels.get(APPLICATION_KIND_LABEL) == KIND and labels.get(APPLICATION_GROUP_LABEL) == GROUP
    if name is None or not ours:
        raise NotATenant(f"the HelmRelease {metadata.get('namespace')}/{metadata.get('name')} holds no Tenant")
    return Key(str(metadata.get("namespace", "")), name)


def to_tenant(release: Object) -> Object:
    """The Tenant that `release` holds, with the defaults of its spec (WIRE-D98). Raises NotATenant."""
    key = tenant_key(release)
    metadata = release["metadata"]
    tenant: Object = {
        "apiVersion": API_VERSION,
        "kind": KIND,
        "metadata": to_tenant_metadata(metadata, name=key.name),
    }
    if app_version := string_entries(metadata.get("annotations")).get(APP_VERSION_ANNOTATION):
        tenant["appVersion"] = app_version
    tenant["spec"] = spec_from_values(_mapping(release.get("spec")).get("values"))
    tenant["status"] = _status(release, key)
    return tenant


def unreadable_paths(release: Object) -> list[str]:
    """The paths of stored values of a wrong type: they are not shown, and survive until somebody sets them."""
    values = _mapping(release.get("spec")).get("values")
    if values is not None and not isinstance(values, dict):
        return ["spec.values"]
    stored, shown = _mapping(values), spec_from_values(values)
    fields = [field for field in (*_SPEC_DEFAULTS, "gateway") if field in stored and stored[field] is not None]
    paths = [f"spec.values.{field}" for field in fields if not _same(stored[field], shown.get(field))]
    quotas = stored.get("resourceQuotas")
    if quotas is not None and not isinstance(quotas, dict):
        return [*paths, "spec.values.resourceQuotas"]
    hidden = [
        key for key, value in _mapping(quotas).items() if value is not None and key not in shown["resourceQuotas"]
    ]
    return [*paths, *(f"spec.values.resourceQuotas[{key}]" for key in hidden)]


def selectable_labels(release: Object, tenant: Object) -> dict[str, str]:
    """What label selectors see: the Tenant's labels, and under them its HelmRelease's own (API-16)."""
    shown = tenant["metadata"]
    labels: dict[str, str] = {_NAME_LABEL: shown["name"]} | string_entries(release["metadata"].get("labels"))
    return labels | string_entries(shown.get("labels"))


def to_release(tenant: Object, current: Object | None, settings: ReleaseSettings) -> Object:
    """The HelmRelease to store for `tenant`: `current` with what the Tenant changes of it, or a new one.

    Neither argument is changed. Without a change of the Tenant the result equals `current`.
    """
    release = deepcopy(current) if current is not None else _new_release(tenant, settings)
    shown = spec_from_values(_mapping(release.get("spec")).get("values")) if current is not None else {}
    release["metadata"] = to_release_metadata(
        tenant["metadata"], release["metadata"], app_version=tenant.get("appVersion") or ""
    )
    _write_values(release.setdefault("spec", {}), tenant.get("spec") or {}, shown)
    return release


def _new_release(tenant: Object, settings: ReleaseSettings) -> Object:
    metadata = tenant["metadata"]
    labels = {
        APPLICATION_KIND_LABEL: KIND,
        APPLICATION_GROUP_LABEL: GROUP,
        APPLICATION_NAME_LABEL: metadata["name"],
    }
    if settings.shard:
        labels[SHARD_LABEL] = settings.shard
    made: Object = {
        "name": release_name(metadata["name"]),
        "namespace": metadata["namespace"],
        "labels": labels,
    }
    if settings.finalizer and not is_root(metadata["namespace"], metadata["name"]):
        # here, and not in a write of the reconciler's: so it costs nothing
        made["finalizers"] = [TENANT_FINALIZER]
    return {
        "apiVersion": HELMRELEASES.api_version,
        "kind": HELMRELEASES.kind,
        "metadata": made,
        "spec": settings.release_spec(),
    }


def spec_from_values(values: object) -> Object:
    """A Tenant's spec out of Helm values: known fields of the right type, defaults for the rest."""
    stored = _mapping(values)
    spec: Object = {}
    for field, default in _SPEC_DEFAULTS.items():
        value = stored.get(field)
        spec[field] = value if type(value) is type(default) else default
    if isinstance(stored.get("gateway"), bool):
        spec["gateway"] = stored["gateway"]
    quotas = _mapping(stored.get("resourceQuotas"))
    spec["resourceQuotas"] = {key: value for key, each in quotas.items() if (value := _quantity(each)) is not None}
    return spec


def _quantity(value: object) -> str | int | None:
    """Helm values may hold 0.5 as a number; a quantity is an integer or text."""
    if isinstance(value, bool):
        return None
    if isinstance(value, float):
        return repr(value)
    return value if isinstance(value, str | int) else None


def _write_values(release_spec: Object, wanted: Object, shown: Object) -> None:
    """Set in spec.values what differs from what was shown: what nobody changed stays as it is stored."""
    if not isinstance(release_spec.get("values"), dict) and wanted != shown:
        release_spec["values"] = {}
    values = release_spec.get("values")
    if not isinstance(values, dict):
        return
    for field in (*_SPEC_DEFAULTS, "gateway"):
        _write(values, field, wanted, shown)
    quotas, shown_quotas = wanted.get("resourceQuotas") or {}, shown.get("resourceQuotas")
    if quotas == shown_quotas:
        return
    stored = values.get("resourceQuotas")
    values["resourceQuotas"] = dict(stored) if isinstance(stored, dict) else {}
    for key in [*(shown_quotas or ()), *quotas]:
        _write(values["resourceQuotas"], key, quotas, shown_quotas or {})


def _write(values: Object, field: str, wanted: Object, shown: Object) -> None:
    if field not in wanted:
        if field in shown:
            values.pop(field, None)
    elif field not in shown or not _same(wanted[field], shown[field]):
        values[field] = deepcopy(wanted[field])


def _same(left: object, right: object) -> bool:
    return type(left) is type(right) and left == right


def _status(release: Object, key: Key) -> Object:
    """What the HelmRelease says of itself, and over it what the reconciler found."""
    annotations = string_entries(release["metadata"].get("annotations"))
    findings = _mapping(parse_json_annotation(annotations, FINDINGS_ANNOTATION))
    own = _mapping(release.get("status"))
    status: Object = {"namespace": workload_namespace(key.namespace, key.name)}
    version = own.get("lastAttemptedRevision")
    if isinstance(version, str) and version:
        status["version"] = version
    effective: tuple[tuple[str, type[BaseModel]], ...] = (("host", EffectiveHost), ("gateway", EffectiveGateway))
    for field, model in effective:
        if found := _valid(findings.get(field), model):
            status[field] = found
    if conditions := _conditions(own.get("conditions"), findings.get("conditions")):
        status["conditions"] = conditions
    count = findings.get("externalIPsCount")
    if isinstance(count, int) and not isinstance(count, bool) and count >= 0:
        status["externalIPsCount"] = count
    return status


def _conditions(own: object, found: object) -> list[Object]:
    """Ready, Released and WorkloadsReady of Helm's controller; what the reconciler found goes before, by type."""
    helm = {type_: each for type_, each in _by_type(own).items() if type_ in _CONDITIONS}
    by_type = helm | _by_type(found)
    return [by_type[type_] for type_ in sorted(by_type)]


def _by_type(conditions: object) -> dict[str, Object]:
    given = conditions if isinstance(conditions, list) else []
    return {each["type"]: each for condition in given if (each := _valid(condition, Condition))}


def _valid(value: object, model: type[BaseModel]) -> Object | None:
    """The fields of `value` that `model` has, None if it is no such thing."""
    try:
        return model.model_validate(value).model_dump(by_alias=True, exclude_none=True)
    except ValidationError:
        return None


def _mapping(value: object) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}
