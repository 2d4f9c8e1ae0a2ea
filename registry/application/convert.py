"""Converts a HelmRelease to the application that it stores, and back, by the definition of the kind. Pure.

Reading never fails: malformed parts are omitted. An update changes the labels and annotations of clients and the
values, and preserves the rest, such as what Flux, the shard operator or the platform's charts have set (T4).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from apiserver.meta.resource import Key, Object
from registry.application.definition import ApplicationDefinition
from registry.application.identity import ApplicationIdentity, application_of
from registry.application.release_errors import ApplicationNames
from registry.application.release_metadata import (
    stored_status,
    string_entries,
    to_release_metadata,
    to_shown_metadata,
)
from registry.application.values import shown_spec, write_changed_values, write_new_values
from registry.cluster.interface import HELMRELEASES
from registry.names import (
    APPLICATION_GROUP_LABEL,
    APPLICATION_KIND_LABEL,
    APPLICATION_NAME_LABEL,
    GROUP,
    VERSION,
)

API_VERSION = f"{GROUP}/{VERSION}"
_CONDITIONS = ("Ready", "Released")
_WORKLOADS_READY = "WorkloadsReady"
_CONDITION_FIELDS = ("type", "status", "lastTransitionTime", "reason", "message")


@dataclass(frozen=True, slots=True, kw_only=True)
class ReleaseDefaults:
    """Fields of new HelmReleases that no definition sets. The defaults are Cozystack's; durations are in Go's
    notation."""

    interval: str = "5m0s"
    retry_interval: str = "30s"
    install_timeout: str = "10m0s"
    upgrade_timeout: str = "10m0s"
    max_history: int = 5
    values_secret: str = "cozystack-values"


class ApplicationConversion:
    """The ReleaseConversion of one kind. `definition` may be replaced by one that is served alike."""

    def __init__(
        self, definition: ApplicationDefinition, defaults: Callable[[], ReleaseDefaults] = ReleaseDefaults
    ) -> None:
        self.definition = definition
        self._defaults = defaults

    @property
    def names(self) -> ApplicationNames:
        return self.definition.names

    def stores(self, release: Object) -> bool:
        return stores(release, self.definition)

    def to_object(self, release: Object) -> Object:
        return to_application(release, self.definition)

    def to_new_release(self, obj: Object) -> Object:
        return to_new_release(obj, self.definition, self._defaults())

    def to_changed_release(self, obj: Object, current: Object) -> Object:
        return to_changed_release(obj, current, self.definition)


def stores(release: Object, definition: ApplicationDefinition) -> bool:
    """True if the labels name an application of the kind, and the release is called as that application's is (T37)."""
    found = application_of(release)
    if found is None or found.kind != definition.kind or not found.name:
        return False
    return bool(release["metadata"].get("name") == definition.prefix + found.name)


def application_key(release: Object, definition: ApplicationDefinition) -> Key | None:
    """The key that an application in this HelmRelease has, None if its name lacks the prefix."""
    metadata = release["metadata"]
    name = definition.names.name_of(str(metadata.get("name", "")))
    return Key(str(metadata.get("namespace", "")), name) if name is not None else None


def to_application(release: Object, definition: ApplicationDefinition) -> Object:
    """The application in a HelmRelease whose name has the prefix of the kind."""
    metadata = release["metadata"]
    name = definition.names.name_of(metadata["name"]) or metadata["name"]
    return {
        "apiVersion": API_VERSION,
        "kind": definition.kind,
        "metadata": to_shown_metadata(metadata, name=name),
        "spec": shown_spec(_mapping(release.get("spec")).get("values"), definition.schema),
        "status": to_application_status(release),
    }


def to_application_status(release: Object) -> Object:
    helm_status = _mapping(release.get("status"))
    status: Object = {}
    version = helm_status.get("lastAttemptedRevision")
    if isinstance(version, str) and version:
        status["version"] = version
    flux, ours = _by_type(helm_status), _by_type(stored_status(release["metadata"]))
    conditions = [_condition(flux[type_]) for type_ in _CONDITIONS if type_ in flux]
    if _WORKLOADS_READY in ours:
        conditions.append(_condition(ours[_WORKLOADS_READY]))
    if conditions:
        status["conditions"] = conditions
    return status


def _by_type(status: Mapping[str, Any]) -> dict[object, Mapping[str, Any]]:
    listed = status.get("conditions")
    return {each.get("type"): each for each in (listed if isinstance(listed, list) else ()) if isinstance(each, dict)}


def _condition(condition: Mapping[str, Any]) -> Object:
    """Without observedGeneration, which is that of the HelmRelease."""
    return {field: value for field in _CONDITION_FIELDS if isinstance(value := condition.get(field), str)}


def selectable_labels(release: Object, application: Object) -> dict[str, str]:
    """The labels that selectors match: those of the HelmRelease, overridden by those of the application (T16)."""
    return string_entries(release["metadata"].get("labels")) | string_entries(application["metadata"].get("labels"))


def to_new_release(obj: Object, definition: ApplicationDefinition, defaults: ReleaseDefaults) -> Object:
    """The HelmRelease of a new application. Its values are the spec as the client sent it."""
    metadata = obj["metadata"]
    own: Object = {
        "name": definition.prefix + metadata["name"],
        "namespace": metadata["namespace"],
        "labels": dict(definition.labels),
    }
    written = to_release_metadata(metadata, own, app_version="")
    written["labels"] = {**(written.get("labels") or {}), **_identity_labels(definition, metadata["name"])}
    spec = release_spec(definition, defaults)
    write_new_values(spec, obj.get("spec"))
    return {"apiVersion": HELMRELEASES.api_version, "kind": HELMRELEASES.kind, "metadata": written, "spec": spec}


def _identity_labels(definition: ApplicationDefinition, name: str) -> dict[str, str]:
    identity = ApplicationIdentity(definition.kind, name)
    return {
        APPLICATION_KIND_LABEL: identity.kind,
        APPLICATION_GROUP_LABEL: GROUP,
        APPLICATION_NAME_LABEL: identity.name,
    }


def release_spec(definition: ApplicationDefinition, defaults: ReleaseDefaults) -> Object:
    """The spec of a new HelmRelease, without `values`."""
    spec: Object = {
        "chartRef": dict(definition.chart_ref),
        "interval": defaults.interval,
        "maxHistory": defaults.max_history,
        "install": _action(definition.install_timeout or defaults.install_timeout, definition, defaults),
        "upgrade": _action(definition.upgrade_timeout or defaults.upgrade_timeout, definition, defaults),
    }
    if defaults.values_secret:
        spec["valuesFrom"] = [{"kind": "Secret", "name": defaults.values_secret}]
    if definition.wait_strategy:
        spec["waitStrategy"] = {"name": definition.wait_strategy}
    if definition.health_check_exprs:
        spec["healthCheckExprs"] = [dict(each) for each in definition.health_check_exprs]
    return spec


def _action(timeout: str, definition: ApplicationDefinition, defaults: ReleaseDefaults) -> Object:
    action: Object = {
        "timeout": timeout,
        "strategy": {"name": "RetryOnFailure", "retryInterval": defaults.retry_interval},
    }
    if definition.disable_wait:
        action["disableWait"] = True
    return action


def to_changed_release(obj: Object, current: Object, definition: ApplicationDefinition) -> Object:
    """`current` with the changes of the application."""
    release = {**current, "metadata": to_release_metadata(obj["metadata"], current["metadata"], app_version="")}
    spec = dict(_mapping(current.get("spec")))
    write_changed_values(spec, obj.get("spec"), shown_spec(spec.get("values"), definition.schema))
    release["spec"] = spec
    return release


def _mapping(value: object) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}
