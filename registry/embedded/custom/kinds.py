"""The custom kinds that are served now: those of the established CustomResourceDefinitions."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, MutableMapping
from itertools import chain

from apiserver import rest
from apiserver.meta.resource import GroupKind, Object, Resource
from apiserver.schema.rules import RuleCompiler
from apiserver.storage.watch_cache import WatchCache
from registry.embedded.controllers.ownership_graph import OwnerKind
from registry.embedded.custom.definition import CustomDefinition, parse_definition, version_priority
from registry.embedded.custom.served import ServedCustomKind, ServedCustomVersion, serve_definition
from registry.sqlite.backend import SqliteBackend
from registry.sqlite.database import Database

Storages = Mapping[tuple[str, str], Mapping[str, rest.Storage]]


class CustomKinds:
    """`backends` and `owner_kinds` are those of the whole cluster, to which a kind is added while it is served."""

    def __init__(
        self,
        *,
        database: Database,
        caches: Callable[[Resource], WatchCache],
        compiler: RuleCompiler,
        backends: MutableMapping[str, SqliteBackend],
        owner_kinds: MutableMapping[GroupKind, OwnerKind],
    ) -> None:
        self._database = database
        self._caches = caches
        self._compiler = compiler
        self._backends = backends
        self._owner_kinds = owner_kinds
        self._served: dict[str, ServedCustomKind] = {}
        self._sources: dict[str, Object] = {}
        self.terminating: set[str] = set()
        """The definitions that are being deleted, by name: no objects of theirs are created."""

    def __iter__(self) -> Iterator[ServedCustomKind]:
        return iter(self._served.values())

    @property
    def versions(self) -> Iterator[ServedCustomVersion]:
        return chain.from_iterable(each.versions for each in self)

    def get(self, name: str) -> ServedCustomKind | None:
        """The kind of the definition with this name."""
        return self._served.get(name)

    def storages(self) -> Storages:
        """The storages of all kinds by (group, version) and then by 'resource[/subresource]'. Of each group, the
        preferred version comes first."""
        found: dict[tuple[str, str], dict[str, rest.Storage]] = {}
        for kind in self:
            for group_version, storages in kind.storages.items():
                found.setdefault(group_version, {}).update(storages)
        return dict(sorted(found.items(), key=lambda item: version_priority(item[0][1]), reverse=True))

    async def serve(self, crd: Object) -> bool:
        """Serves the kind of a definition. Returns False if it is served like that already; otherwise open watches of
        it end, and clients start them again."""
        name = crd["metadata"]["name"]
        source = {"spec": crd["spec"], "names": (crd.get("status") or {}).get("acceptedNames")}
        if self._sources.get(name) == source:
            return False
        definition = parse_definition(crd)
        kind = serve_definition(
            definition,
            database=self._database,
            caches=self._caches,
            compiler=self._compiler,
            stored_since=int(crd["metadata"].get("resourceVersion") or 0),
            is_terminating=lambda: name in self.terminating or name not in self._served,
        )
        for backend in kind.backends:
            await backend.load()
        self.remove(name)
        self._sources[name], self._served[name] = source, kind
        self._backends[str(definition.group_resource)] = kind.primary
        self._owner_kinds[definition.group_kind] = _owner_kind(definition)
        return True

    def remove(self, name: str) -> bool:
        """Serves the kind no longer. Returns False if it was not served."""
        kind = self._served.pop(name, None)
        self._sources.pop(name, None)
        if kind is None:
            return False
        for backend in kind.backends:
            backend.unload()
        self._backends.pop(str(kind.definition.group_resource), None)
        self._owner_kinds.pop(kind.definition.group_kind, None)
        return True


def _owner_kind(definition: CustomDefinition) -> OwnerKind:
    return OwnerKind(str(definition.group_resource), definition.namespaced)
