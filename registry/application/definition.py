"""Reads an ApplicationDefinition: what a kind is called, how its HelmReleases are, and the schema of its spec. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import orjson

from apiserver.meta.name_validation import dns1123_label_errors
from apiserver.meta.resource import GroupKind, GroupResource, Object, Schema
from apiserver.schema.validation import Matches
from registry.application.go_duration import canonical_duration
from registry.application.release_errors import ApplicationNames
from registry.application.release_metadata import string_entries
from registry.application.schema import UnusableSchema, parse_schema
from registry.names import GROUP

INSTALL_TIMEOUT = "release.cozystack.io/helm-install-timeout"
"""The annotation with the timeout of install, and of upgrade if that has none of its own."""
UPGRADE_TIMEOUT = "release.cozystack.io/helm-upgrade-timeout"
DISABLE_WAIT = "release.cozystack.io/helm-install-disable-wait"
_ANNOTATIONS = (INSTALL_TIMEOUT, UPGRADE_TIMEOUT, DISABLE_WAIT)

MAX_RELEASE_NAME = 53
_KIND = re.compile(r"[A-Z][A-Za-z0-9]{0,62}")
_PREFIX = re.compile(r"([a-z0-9][a-z0-9-]*)?")
_MAX_BYTES = 64 * 1024
_WAIT_STRATEGIES = ("poller", "legacy")


class UnusableDefinition(ValueError):
    """The definition cannot be served; the text says why."""


@dataclass(frozen=True, kw_only=True)
class ApplicationDefinition:
    """The parts of a definition that this server reads. `created` is its creationTimestamp. Timeouts are in Go's
    notation, empty for the server's own."""

    name: str
    uid: str = ""
    generation: int = 0
    created: str
    kind: str
    plural: str
    singular: str
    schema: Schema
    prefix: str
    labels: Mapping[str, str] = field(default_factory=dict)
    chart_ref: Mapping[str, str]
    wait_strategy: str = ""
    health_check_exprs: tuple[Mapping[str, Any], ...] = ()
    install_timeout: str = ""
    upgrade_timeout: str = ""
    disable_wait: bool = False
    source: Object = field(default_factory=dict, compare=False, repr=False)
    """The source of the form: `parse_definition` makes the same form of it."""

    @property
    def names(self) -> ApplicationNames:
        return ApplicationNames(GroupResource(GROUP, self.plural), GroupKind(GROUP, self.kind), self.prefix)

    def is_served_like(self, other: ApplicationDefinition) -> bool:
        """True if clients see the same API. The content of new HelmReleases may differ."""
        return (self.kind, self.plural, self.singular, self.prefix, self.schema) == (
            other.kind,
            other.plural,
            other.singular,
            other.prefix,
            other.schema,
        )


def parse_definition(obj: Object, matches: Matches) -> ApplicationDefinition:
    """Reads the fields that matter. Raises UnusableDefinition."""
    source = source_of(obj)
    metadata, spec = source["metadata"], source["spec"]
    application, release = _mapping(spec.get("application")), _mapping(spec.get("release"))
    _check_size(spec)
    annotations = string_entries(metadata.get("annotations"))
    install = _timeout(annotations, INSTALL_TIMEOUT)
    strategy, expressions = _waiting(release)
    return ApplicationDefinition(
        name=metadata["name"],
        uid=metadata["uid"],
        generation=metadata["generation"],
        created=metadata["creationTimestamp"],
        kind=_kind(application),
        plural=_resource_name(application, "plural"),
        singular=_resource_name(application, "singular"),
        schema=_schema(application, matches),
        prefix=_prefix(release),
        labels=string_entries(release.get("labels")),
        chart_ref=_chart_ref(release),
        wait_strategy=strategy,
        health_check_exprs=expressions,
        install_timeout=install,
        upgrade_timeout=_timeout(annotations, UPGRADE_TIMEOUT) or install,
        disable_wait=_flag(annotations, DISABLE_WAIT),
        source=source,
    )


def source_of(obj: Object) -> Object:
    """The parts of a definition that are read: definitions with equal ones are the same form."""
    metadata, spec = obj["metadata"], _mapping(obj.get("spec"))
    annotations, generation = string_entries(metadata.get("annotations")), metadata.get("generation")
    return {
        "metadata": {
            "name": metadata["name"],
            "uid": str(metadata.get("uid") or ""),
            "generation": generation if isinstance(generation, int) else 0,
            "creationTimestamp": str(metadata.get("creationTimestamp") or ""),
            "annotations": {name: annotations[name] for name in _ANNOTATIONS if name in annotations},
        },
        "spec": {part: spec.get(part) for part in ("application", "release")},
    }


def _check_size(spec: Mapping[str, Any]) -> None:
    """A form in force is kept in a ConfigMap, and may come from one that others have written. Kubernetes bounds no
    definition but by the size of a request."""
    application = {part: value for part, value in _mapping(spec["application"]).items() if part != "openAPISchema"}
    try:
        size = len(orjson.dumps({**spec, "application": application}))
    except TypeError as error:
        raise UnusableDefinition("spec nests too deeply") from error
    if size > _MAX_BYTES:
        raise UnusableDefinition(f"spec has more than {_MAX_BYTES // 1024} KiB besides openAPISchema")


def _kind(application: Mapping[str, Any]) -> str:
    kind = application.get("kind")
    if not isinstance(kind, str) or not _KIND.fullmatch(kind):
        raise UnusableDefinition("spec.application.kind must be a name in CamelCase of at most 63 characters")
    return kind


def _resource_name(application: Mapping[str, Any], part: str) -> str:
    name = application.get(part)
    if not isinstance(name, str) or dns1123_label_errors(name):
        raise UnusableDefinition(f"spec.application.{part} must be a lower case name of at most 63 characters")
    return name


def _schema(application: Mapping[str, Any], matches: Matches) -> Schema:
    text = application.get("openAPISchema") or ""
    if not isinstance(text, str):
        raise UnusableDefinition("spec.application.openAPISchema must be a text")
    try:
        return parse_schema(text, matches)
    except UnusableSchema as error:
        raise UnusableDefinition(f"spec.application.openAPISchema is unusable: {error}") from error


def _prefix(release: Mapping[str, Any]) -> str:
    prefix = release.get("prefix") or ""
    if not isinstance(prefix, str) or not _PREFIX.fullmatch(prefix) or len(prefix) >= MAX_RELEASE_NAME:
        raise UnusableDefinition("spec.release.prefix must consist of at most 52 lower case letters, digits and dashes")
    return prefix


def _chart_ref(release: Mapping[str, Any]) -> Mapping[str, str]:
    chart = string_entries(release.get("chartRef"))
    if not chart.get("kind") or not chart.get("name"):
        raise UnusableDefinition("spec.release.chartRef must have kind and name")
    return {part: chart[part] for part in ("kind", "name", "namespace") if chart.get(part)}


def _waiting(release: Mapping[str, Any]) -> tuple[str, tuple[Mapping[str, Any], ...]]:
    expressions = release.get("healthCheckExprs") or []
    if not isinstance(expressions, list) or not all(isinstance(each, dict) for each in expressions):
        raise UnusableDefinition("spec.release.healthCheckExprs must be a list of objects")
    strategy = release.get("waitStrategy") or ""
    if strategy and strategy not in _WAIT_STRATEGIES:
        raise UnusableDefinition(f"spec.release.waitStrategy must be one of {', '.join(_WAIT_STRATEGIES)}")
    # Flux evaluates expressions with this strategy only
    return strategy or ("poller" if expressions else ""), tuple(expressions)


def _timeout(annotations: Mapping[str, str], name: str) -> str:
    text = annotations.get(name, "")
    try:
        found = canonical_duration(text) if text else ""
    except ValueError as error:
        raise UnusableDefinition(f"annotation {name}: {error}") from error
    # as in the peer, no time at all is no time of its own
    return "" if found == "0s" else found


def _flag(annotations: Mapping[str, str], name: str) -> bool:
    text = annotations.get(name, "").strip().lower()
    if text not in ("", "true", "false"):
        raise UnusableDefinition(f'annotation {name} must be "true" or "false"')
    return text == "true"


def _mapping(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}
