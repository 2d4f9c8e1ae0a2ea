"""The groups that `standalone` serves: those of the embedded cluster, and ours beside them."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from weakref import WeakSet

from admission.chain import Chain
from admission.complete_caches import CompleteCaches
from admission.matching.match_rules import EquivalentResources, single_version
from admission.namespace_lifecycle import NamespaceLifecycle
from admission.namespace_source import StoredNamespaces
from apiserver import rest
from apiserver.authorization.authorizer import Authorizer
from apiserver.endpoints.installer import ApiGroupVersion
from apiserver.meta.resource import Resource
from apiserver.storage.watch_cache import WatchCache
from registry.embedded.api_groups import StoredGroupVersion
from registry.embedded.cluster import EmbeddedCluster
from tenant_apiserver.application_groups import InstalledApplications
from tenant_apiserver.process import Process, ServedGroupVersion, admission_observer, install_groups, installed
from tenant_apiserver.wiring.applications.api import ApplicationApi
from tenant_apiserver.wiring.cluster_admission import ClusterAdmission
from tenant_apiserver.wiring.policies import equivalents_of


class StandaloneGroups:
    """The kinds of the embedded cluster, which change with its CustomResourceDefinitions, and those of Tenants.

    Checks of terminating namespaces and of RBAC are part of the embedded cluster's storages.
    """

    def __init__(
        self,
        process: Process,
        embedded: EmbeddedCluster,
        admission: ClusterAdmission,
        authorizer: Authorizer,
        served: Sequence[ApiGroupVersion],
        applications: ApplicationApi,
    ) -> None:
        """`served` are the groups besides those of the embedded cluster."""
        self._process = process
        self._embedded = embedded
        self._authorizer = authorizer
        namespaces = StoredNamespaces(embedded.namespaces)
        self._equivalents: EquivalentResources = single_version
        plugins = admission.plugins(
            namespaces=namespaces,
            authorizer=authorizer,
            equivalents=lambda resource: self._equivalents(resource),
        )
        caches = CompleteCaches([each.complete for each in admission.informers])
        observe = admission_observer(process.metrics)
        self._chain = Chain((caches, NamespaceLifecycle(namespaces=namespaces), *plugins), observe=observe)
        self._served = served
        self._applications = InstalledApplications(process, applications, authorizer)
        self._known: dict[tuple[str, str], tuple[Mapping[str, rest.Storage], ApiGroupVersion]] = {}
        self._tracked: WeakSet[WatchCache] = WeakSet()
        embedded.reserve_names(_resources(served))
        self.installed = installed(self._current())
        embedded.on_kinds_changed(lambda: self.installed.replace(self._current()))
        applications.on_change(lambda: self._follow(applications))

    def _follow(self, applications: ApplicationApi) -> None:
        self._embedded.own_by_releases(each.definition.names for each in applications.served)
        self.installed.replace(self._current())

    def _current(self) -> Sequence[ApiGroupVersion]:
        groups = self._embedded.group_versions(self._authorizer)
        self._equivalents = equivalents_of(storage.resource for each in groups for storage in each.storages.values())
        self._known = {(each.group, each.version): (each.storages, self._install(each)) for each in groups}
        for cache in self._embedded.caches:
            if cache not in self._tracked:
                self._tracked.add(cache)
                self._process.metrics.track_cache(cache)
        return own_versions_first(
            [group for _, group in self._known.values()], [self._applications.extend(each) for each in self._served]
        )

    def _install(self, group: StoredGroupVersion) -> ApiGroupVersion:
        storages, known = self._known.get((group.group, group.version), ({}, None))
        if known is not None and storages == group.storages:
            return known
        kept = {} if known is None else {path: known.endpoints[path] for path in same_paths(storages, group.storages)}
        served = ServedGroupVersion(
            group=group.group,
            version=group.version,
            storages={path: storage for path, storage in group.storages.items() if path not in kept},
            admission=self._chain,
        )
        [added] = install_groups(self._process, [served], self._authorizer)
        return replace(added, endpoints={**kept, **added.endpoints})


def _resources(groups: Sequence[ApiGroupVersion]) -> Iterator[Resource]:
    for group in groups:
        yield from (each.scope.resource for path, each in group.endpoints.items() if "/" not in path)


def same_paths(before: Mapping[str, rest.Storage], now: Mapping[str, rest.Storage]) -> Collection[str]:
    """The paths of resources whose storages, and those of their subresources, are the same objects as before: their
    endpoints can stay. Each path is 'resource' or 'resource/subresource'."""
    changed = {path.partition("/")[0] for path in before.keys() | now.keys() if before.get(path) is not now.get(path)}
    return [path for path in now if path.partition("/")[0] not in changed]


def own_versions_first(others: Sequence[ApiGroupVersion], own: Sequence[ApiGroupVersion]) -> Sequence[ApiGroupVersion]:
    """All group versions. A version of a group of ours is preferred to those that others add to the group, whatever
    their names; what they add to the same version is served beside our kinds."""
    found: dict[tuple[str, str], ApiGroupVersion] = {}
    for each in own:
        key = each.group, each.version
        found[key] = each.extended_with(found[key]) if key in found else each
    groups = {each.group for each in own}
    foreign = [each for each in others if each.group not in groups]
    for each in others:
        key = each.group, each.version
        if each.group in groups:
            found[key] = found[key].extended_with(each) if key in found else each
    return [*foreign, *found.values()]
