"""The file of `tenant-apiserver proxy --config`: the kinds whose lists the proxy answers."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from apiserver.meta.errors import BadRequest
from apiserver.meta.resource import GroupResource
from apiserver.meta.selectors import parse_label_selector
from apiserver.serializer.yaml import decode_yaml

if TYPE_CHECKING:
    from registry.rbac.role_index import Subject

_MAX_NESTING: Final = 20
_KEYS: Final = frozenset({"namespacedKinds", "clusterKinds", "selectedKinds", "persistentVolumesByClaim"})


@dataclass(frozen=True, slots=True, kw_only=True)
class SelectedKind:
    """The `subjects` list and watch the objects of a cluster-scoped kind that a label selector selects."""

    kind: GroupResource
    selector: str
    subjects: frozenset[Subject]


@dataclass(frozen=True, slots=True, kw_only=True)
class ProxySettings:
    """`namespaced_kinds` are listed and watched across the namespaces in which RBAC allows it, `cluster_kinds` by the
    names that RBAC allows, and `selected` by label. `persistent_volumes_by_claim`: PersistentVolumes are those of the
    claims that RBAC lets the caller get."""

    namespaced_kinds: tuple[GroupResource, ...] = ()
    cluster_kinds: tuple[GroupResource, ...] = ()
    selected: tuple[SelectedKind, ...] = ()
    persistent_volumes_by_claim: bool = False

    @property
    def answered_kinds(self) -> frozenset[GroupResource]:
        """All kinds of which users may get a part of the list. Namespaces always are one."""
        selected = (each.kind for each in self.selected)
        volumes = [GroupResource("", "persistentvolumes")] if self.persistent_volumes_by_claim else []
        return frozenset(
            {GroupResource("", "namespaces"), *volumes, *self.namespaced_kinds, *self.cluster_kinds, *selected}
        )


def load_proxy_settings(path: Path | None) -> ProxySettings:
    """The settings of a file, or the defaults without one. Raises ValueError with one line that does not name the file:
    the flag has its name."""
    if path is None:
        return ProxySettings()
    try:
        document, duplicates = decode_yaml(path.read_text(), max_nesting=_MAX_NESTING)
        if duplicates:
            raise ValueError("; ".join(duplicates))
        return parse_proxy_settings(document)
    except OSError as error:
        raise ValueError(error.strerror) from error


def parse_proxy_settings(document: object) -> ProxySettings:
    """Raises ValueError with the key that is wrong."""
    fields = _mapping(document if document is not None else {}, "the file", _KEYS)
    selected = fields.get("selectedKinds", [])
    if not isinstance(selected, list):
        raise ValueError("selectedKinds must be a list")
    by_claim = fields.get("persistentVolumesByClaim", False)
    if not isinstance(by_claim, bool):
        raise ValueError("persistentVolumesByClaim must be true or false")
    return ProxySettings(
        namespaced_kinds=_kinds(fields.get("namespacedKinds", []), "namespacedKinds"),
        cluster_kinds=_kinds(fields.get("clusterKinds", []), "clusterKinds"),
        selected=tuple(_selected(each, f"selectedKinds[{position}]") for position, each in enumerate(selected)),
        persistent_volumes_by_claim=by_claim,
    )


def _selected(value: object, key: str) -> SelectedKind:
    fields = _mapping(value, key, {"kind", "labelSelector", "subjects"})
    selector, subjects = fields.get("labelSelector"), fields.get("subjects")
    if not isinstance(selector, str) or not _has_requirements(selector):
        # an empty one would select everything
        raise ValueError(f"{key}.labelSelector must be a label selector with a requirement")
    if not isinstance(subjects, list) or not subjects:
        raise ValueError(f"{key}.subjects must be a list of users and groups")
    found = frozenset(_subject(each, f"{key}.subjects[{position}]") for position, each in enumerate(subjects))
    return SelectedKind(kind=_kind(fields.get("kind"), f"{key}.kind"), selector=selector, subjects=found)


def _has_requirements(selector: str) -> bool:
    try:
        return not parse_label_selector(selector).empty
    except BadRequest:
        return False


def _subject(value: object, key: str) -> Subject:
    fields = _mapping(value, key, {"kind", "name"})
    kind, name = fields.get("kind"), fields.get("name")
    if kind not in ("User", "Group") or not isinstance(name, str) or not name:
        raise ValueError(f"{key} must have the kind User or Group, and a name")
    # imported late, so that commands without these settings do not load the server's libraries
    from registry.rbac.role_index import make_subject

    return make_subject(kind, name)


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


def _mapping(value: object, key: str, known: Collection[str]) -> Mapping[str, Any]:
    if not isinstance(value, dict):
        raise ValueError(f"{key} must be a mapping")
    if unknown := sorted(set(map(str, value)) - set(known)):
        raise ValueError(f"{key} has unknown keys: {', '.join(unknown)}; known are {', '.join(sorted(known))}")
    return value
