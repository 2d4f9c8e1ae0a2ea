"""Converts a HelmRelease to the Tenant that it stores, and back. Pure.

Reading never fails: malformed parts are omitted. Writing changes the fields that a Tenant has and preserves the rest.
"""

from __future__ import annotations

from collections.abc import Mapping
from copy import deepcopy
from typing import Any

from apiserver.meta.resource import Key, Object
from registry.application.release_metadata import (
    string_entries,
    to_release_metadata,
    to_shown_metadata,
)
from registry.cluster.interface import HELMRELEASES
from registry.names import (
    APP_VERSION_ANNOTATION,
    APPLICATION_GROUP_LABEL,
    APPLICATION_KIND_LABEL,
    APPLICATION_NAME_LABEL,
    GROUP,
    KIND,
    SERVICE_FLAGS,
    SHARD_LABEL,
    TENANT_FINALIZER,
    is_root,
    release_name,
    tenant_name,
)
from registry.tenant.convert_status import to_tenant_status
from registry.tenant.release_settings import ReleaseSettings

API_VERSION = f"{GROUP}/v1alpha1"
# a label that every Namespace has: selectors match it on Tenants, too, although it is not shown
_NAME_LABEL = "kubernetes.io/metadata.name"

_SPEC_DEFAULTS: Mapping[str, Any] = {"host": "", **dict.fromkeys(SERVICE_FLAGS, False), "schedulingClass": ""}


# the characters of an unreadable key that a message shows
_MAX_SHOWN = 64


class NotATenant(ValueError):
    """The HelmRelease does not store a Tenant: it lacks the labels or the name prefix."""


def tenant_key(release: Object) -> Key:
    """The key of the Tenant that `release` stores. Raises NotATenant."""
    metadata = release.get("metadata") or {}
    labels = string_entries(metadata.get("labels"))
    name = tenant_name(str(metadata.get("name", "")))
    is_tenant = labels.get(APPLICATION_KIND_LABEL) == KIND and labels.get(APPLICATION_GROUP_LABEL) == GROUP
    if name is None or not is_tenant:
        raise NotATenant(f"the HelmRelease {metadata.get('namespace')}/{metadata.get('name')} does not store a Tenant")
    return Key(str(metadata.get("namespace", "")), name)


def to_tenant(release: Object) -> Object:
    """The Tenant that `release` stores, with the defaults of its spec (WIRE-D98). Raises NotATenant."""
    key = tenant_key(release)
    metadata = release["metadata"]
    tenant: Object = {
        "apiVersion": API_VERSION,
        "kind": KIND,
        "metadata": to_shown_metadata(metadata, name=key.name),
    }
    if app_version := string_entries(metadata.get("annotations")).get(APP_VERSION_ANNOTATION):
        tenant["appVersion"] = app_version
    tenant["spec"] = spec_from_values(_mapping(release.get("spec")).get("values"))
    tenant["status"] = to_tenant_status(release, key)
    return tenant


def unreadable_paths(release: Object) -> list[str]:
    """The paths of stored values of a wrong type. They are not shown, and are preserved until a client sets them."""
    values = _mapping(release.get("spec")).get("values")
    if values is not None and not isinstance(values, dict):
        return ["spec.values"]
    stored, shown = _mapping(values), spec_from_values(values)
    fields = [field for field in (*_SPEC_DEFAULTS, "gateway") if field in stored and stored[field] is not None]
    paths = [f"spec.values.{field}" for field in fields if not _same(stored[field], shown.get(field))]
    quotas = stored.get("resourceQuotas")
    if quotas is not None and not isinstance(quotas, dict):
        return [*paths, "spec.values.resourceQuotas"]
    unreadable = [
        key for key, value in _mapping(quotas).items() if value is not None and key not in shown["resourceQuotas"]
    ]
    return [*paths, *(f"spec.values.resourceQuotas[{key}]" for key in unreadable)]


def unreadable_quotas(release: Object) -> list[str]:
    """What is wrong with stored quotas of a wrong type. They are not shown, and limit nothing."""
    quotas = _mapping(_mapping(release.get("spec")).get("values")).get("resourceQuotas")
    if quotas is not None and not isinstance(quotas, dict):
        return [f"spec.resourceQuotas: must be an object, and not {_type_name(quotas)}"]
    return [
        f"spec.resourceQuotas[{key[:_MAX_SHOWN]}]: must be a quantity, and not {_type_name(value)}"
        for key, value in sorted(_mapping(quotas).items())
        if value is not None and _quantity(value) is None
    ]


def _type_name(value: object) -> str:
    names = {dict: "an object", list: "a list", bool: "a boolean", str: "a string"}
    return names.get(type(value), "a number")


def selectable_labels(release: Object, tenant: Object) -> dict[str, str]:
    """The labels that selectors match: those of the HelmRelease, overridden by those of the Tenant (API-16)."""
    shown = tenant["metadata"]
    labels: dict[str, str] = {_NAME_LABEL: shown["name"]} | string_entries(release["metadata"].get("labels"))
    return labels | string_entries(shown.get("labels"))


def to_release(tenant: Object, current: Object | None, settings: ReleaseSettings) -> Object:
    """The HelmRelease that stores `tenant`: `current` with the changes of the Tenant, or a new one.

    Neither argument is changed. If the Tenant has not changed, the result equals `current`.
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
    metadata_of_release: Object = {
        "name": release_name(metadata["name"]),
        "namespace": metadata["namespace"],
        "labels": labels,
    }
    if settings.finalizer and not is_root(metadata["namespace"], metadata["name"]):
        # set on create, to save the reconciler a write
        metadata_of_release["finalizers"] = [TENANT_FINALIZER]
    return {
        "apiVersion": HELMRELEASES.api_version,
        "kind": HELMRELEASES.kind,
        "metadata": metadata_of_release,
        "spec": settings.release_spec(),
    }


def spec_from_values(values: object) -> Object:
    """The spec of a Tenant from Helm values: known fields of the right type, and defaults for all others."""
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
    """Converts a Helm value, which may be a float such as 0.5, to a quantity: an integer or a string."""
    if isinstance(value, bool):
        return None
    if isinstance(value, float):
        return repr(value)
    return value if isinstance(value, str | int) else None


def _write_values(release_spec: Object, wanted: Object, shown: Object) -> None:
    """Writes to spec.values the fields that differ from the Tenant as it was shown; all others stay as stored."""
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


def _mapping(value: object) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}
