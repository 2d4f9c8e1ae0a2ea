"""The API of the embedded cluster: a backend for each version of each kind, and the storages of each group version."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from apiserver import rest
from apiserver.meta.resource import Resource, field_at, fields_at
from apiserver.schema.rules import RuleCompiler
from apiserver.storage.watch_cache import WatchCache
from registry.embedded.custom.definition_kind import definition_kind
from registry.embedded.kinds.control_plane import CONTROL_PLANE_KINDS, policy_kind
from registry.embedded.kinds.core import CORE_KINDS, EVENT, NAMESPACE, REFERENCE_FIELDS
from registry.embedded.kinds.event_conversion import EventsV1Conversion
from registry.embedded.kinds.kind import Kind
from registry.embedded.kinds.networking import NETWORKING_KINDS
from registry.embedded.kinds.policy_validation import ExpressionErrors
from registry.embedded.storage.escalation_check import BindingEscalationCheck, RoleEscalationCheck
from registry.embedded.storage.storages import (
    EscalationCheck,
    EscalationCheckingStore,
    NamespaceStorage,
    SubresourceStorage,
)
from registry.embedded.storage.strategies import KindStrategy, SubresourceStrategy
from registry.generic.store import Store
from registry.rbac import role_index as rbac
from registry.rbac.role_index import RoleIndex
from registry.sqlite.backend import SqliteBackend
from registry.sqlite.database import Database

KINDS: Sequence[Kind] = (*CORE_KINDS, *CONTROL_PLANE_KINDS, *NETWORKING_KINDS)
"""The built-in kinds, without those whose expressions are compiled: CustomResourceDefinition and
ValidatingAdmissionPolicy."""

_EVENTS = replace(
    EVENT,
    group="events.k8s.io",
    cells=lambda event: EVENT.cells(EventsV1Conversion().to_stored(event)),
    selectable_fields={
        **{f"regarding.{field}": field_at(f"regarding.{field}") for field in REFERENCE_FIELDS},
        **fields_at("reason", "reportingController", "type"),
    },
    properties=EventsV1Conversion().to_served(dict(EVENT.properties)),
)


@dataclass(frozen=True, slots=True)
class StoredGroupVersion:
    """A version of an API group with its storages, keyed by 'resource' or 'resource/subresource'."""

    group: str
    version: str
    storages: Mapping[str, rest.Storage]


@dataclass(frozen=True, slots=True)
class ServedVersion:
    """A version of a kind and the backend that stores it."""

    kind: Kind
    backend: SqliteBackend


def build_served_versions(
    database: Database,
    compiler: RuleCompiler,
    policy_errors: ExpressionErrors,
    caches: Callable[[Resource], WatchCache] = WatchCache,
) -> list[ServedVersion]:
    """Creates a backend for every version of every built-in kind. Of the backends that share a storage, the first has
    the preferred version. `compiler` checks the rules of CustomResourceDefinitions, and
    `policy_errors` the expressions of ValidatingAdmissionPolicies."""
    served = [
        ServedVersion(kind, _backend(database, kind, resource, caches))
        for kind in (*KINDS, policy_kind(policy_errors), definition_kind(compiler))
        for resource in kind.resources()
    ]
    for resource in _EVENTS.resources():
        backend = SqliteBackend(
            database=database,
            resource=resource,
            cache=caches(resource),
            storage=str(EVENT.group_resource),
            conversion=EventsV1Conversion(),
        )
        served.append(ServedVersion(_EVENTS, backend))
    return served


def primary_backends(served: Iterable[ServedVersion]) -> dict[str, SqliteBackend]:
    """Returns the backend of the preferred version for each storage."""
    backends: dict[str, SqliteBackend] = {}
    for each in served:
        backends.setdefault(each.backend.storage, each.backend)
    return backends


def storages_by_group_version(
    served: Iterable[ServedVersion], index: RoleIndex
) -> dict[tuple[str, str], dict[str, rest.Storage]]:
    """Returns the storages by (group, version) and then by 'resource[/subresource]', in the order of the kinds."""
    groups: dict[tuple[str, str], dict[str, rest.Storage]] = {}
    for each in served:
        resource = each.backend.resource
        groups.setdefault((resource.group, resource.version), {}).update(_storages(each, index))
    return groups


def _backend(
    database: Database, kind: Kind, resource: Resource, caches: Callable[[Resource], WatchCache]
) -> SqliteBackend:
    return SqliteBackend(database=database, resource=resource, cache=caches(resource), finalization=kind.finalization)


def _storages(served: ServedVersion, index: RoleIndex) -> dict[str, rest.Storage]:
    kind, backend = served.kind, served.backend
    resource, plural = backend.resource, kind.plural
    strategy = KindStrategy(kind, resource)
    check = _escalation_check(resource, index)
    store = (
        EscalationCheckingStore(backend=backend, strategy=strategy, check=check)
        if check
        else Store(backend=backend, strategy=strategy)
    )
    storages: dict[str, rest.Storage] = {plural: NamespaceStorage(store) if kind is NAMESPACE else store}
    if kind.status:
        storages[f"{plural}/status"] = _subresource(backend, "status")
    if kind is NAMESPACE:
        storages[f"{plural}/finalize"] = _subresource(backend, "spec")
    return storages


def _subresource(backend: SqliteBackend, field: str) -> SubresourceStorage:
    metadata = ("labels", "annotations") if backend.resource.group_resource == ("", "namespaces") else ()
    strategy = SubresourceStrategy(backend.resource, field=field, metadata=metadata)
    return SubresourceStorage(Store(backend=backend, strategy=strategy))


def _escalation_check(resource: Resource, index: RoleIndex) -> EscalationCheck | None:
    if resource.group != rbac.GROUP:
        return None
    if resource.plural in ("roles", "clusterroles"):
        return RoleEscalationCheck(index, resource)
    return BindingEscalationCheck(index, resource)
