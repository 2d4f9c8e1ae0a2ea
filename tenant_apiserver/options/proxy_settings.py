"""The file of `tenant-apiserver proxy --config`: the kinds whose lists the proxy answers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from apiserver.meta.resource import GroupResource
from apiserver.serializer.yaml import decode_yaml

_MAX_NESTING: Final = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class ProxySettings:
    """`namespaced_kinds` are listed and watched across the namespaces in which RBAC allows it."""

    namespaced_kinds: tuple[GroupResource, ...] = ()


def load_proxy_settings(path: Path | None) -> ProxySettings:
    """The settings of a file, or the defaults without one. Raises ValueError with one line."""
    if path is None:
        return ProxySettings()
    try:
        document, duplicates = decode_yaml(path.read_text(), max_nesting=_MAX_NESTING)
        if duplicates:
            raise ValueError("; ".join(duplicates))
        return parse_proxy_settings(document)
    except OSError as error:
        raise ValueError(f"{path}: {error.strerror}") from error
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from error


def parse_proxy_settings(document: object) -> ProxySettings:
    """Raises ValueError with the key that is wrong."""
    fields = _mapping(document if document is not None else {}, "the file", {"namespacedKinds"})
    return ProxySettings(namespaced_kinds=_kinds(fields.get("namespacedKinds", []), "namespacedKinds"))


def _kinds(value: object, key: str) -> tuple[GroupResource, ...]:
    if not isinstance(value, list):
        raise ValueError(f"{key} must be a list")
    return tuple(dict.fromkeys(_kind(each, f"{key}[{position}]") for position, each in enumerate(value)))


def _kind(value: object, key: str) -> GroupResource:
    """A plural name with its group, as kubectl has it: `deployments.apps`."""
    if not isinstance(value, str) or not value or "/" in value:
        raise ValueError(f"{key} must be a plural name and its group, such as pods or deployments.apps")
    plural, _, group = value.partition(".")
    return GroupResource(group, plural)


def _mapping(value: object, key: str, known: set[str]) -> Mapping[str, Any]:
    if not isinstance(value, dict):
        raise ValueError(f"{key} must be a mapping")
    if unknown := sorted(set(map(str, value)) - known):
        raise ValueError(f"{key} has unknown keys: {', '.join(unknown)}")
    return value
