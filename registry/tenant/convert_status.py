"""Converts the status of a HelmRelease, and what the reconciler has found, to the status of its Tenant. Pure."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel, ValidationError

from apiserver.meta.resource import Key, Object
from registry.application.release_metadata import parse_json_annotation, string_entries
from registry.names import FINDINGS_ANNOTATION, workload_namespace
from registry.tenant.readiness import READY, shown_conditions, shown_generation
from registry.tenant.types import Condition, GatewayStatus, HostStatus, ServicesStatus

# of the conditions of Flux's helm-controller, shown under their own names
_CONDITIONS_OF_FLUX = ("Released", "WorkloadsReady")
_EFFECTIVE: tuple[tuple[str, type[BaseModel]], ...] = (
    ("host", HostStatus),
    ("gateway", GatewayStatus),
    ("services", ServicesStatus),
)


def to_tenant_status(release: Object, key: Key) -> Object:
    """The status of the Tenant `key`. Malformed parts are omitted."""
    annotations = string_entries(release["metadata"].get("annotations"))
    findings = _mapping(parse_json_annotation(annotations, FINDINGS_ANNOTATION))
    helm_status = _mapping(release.get("status"))
    found, flux = _by_type(findings.get("conditions")), _by_type(helm_status.get("conditions"))
    status: Object = {
        "namespace": workload_namespace(key.namespace, key.name),
        "observedGeneration": shown_generation(found.values(), release, flux.get(READY)),
    }
    version = helm_status.get("lastAttemptedRevision")
    if isinstance(version, str) and version:
        status["version"] = version
    for field, model in _EFFECTIVE:
        if valid := _valid(findings.get(field), model):
            status[field] = valid
    conditions = {type_: flux[type_] for type_ in _CONDITIONS_OF_FLUX if type_ in flux}
    conditions |= shown_conditions(found, release, flux.get(READY))
    status["conditions"] = [conditions[type_] for type_ in sorted(conditions)]
    count = findings.get("externalIPsCount")
    if isinstance(count, int) and not isinstance(count, bool) and count >= 0:
        status["externalIPsCount"] = count
    return status


def _by_type(conditions: object) -> dict[str, Object]:
    items = conditions if isinstance(conditions, list) else []
    return {each["type"]: each for condition in items if (each := _valid(condition, Condition))}


def _valid(value: object, model: type[BaseModel]) -> Object | None:
    """The fields of `value` that `model` has, None if `value` is missing or invalid."""
    if value is None:
        # the usual case of a new Tenant, without the cost of a ValidationError
        return None
    try:
        return model.model_validate(value).model_dump(by_alias=True, exclude_none=True)
    except ValidationError:
        return None


def _mapping(value: object) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}
