"""Builds the one informer of HelmReleases: Tenants, applications, modules and options are made from its objects."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from apiserver.meta.resource import Object
from registry.application.release_cache import trim_release
from registry.cluster.informer import Informer
from registry.cluster.interface import HELMRELEASES, ClusterClient
from registry.cluster.shared_events import SharedEvents
from registry.names import APPLICATION_GROUP_LABEL, APPLICATION_KIND_LABEL, GROUP, KIND
from registry.tenantmodule.convert import MODULE_LABEL

TENANTS, APPLICATIONS, MODULES = "tenants", "applications", "modules"
DISK, POOL_OWNER = "VMDisk", "SeaweedFS"
"""The kinds that options are computed from, and the names of those that subscribe to them."""
_OF_KIND: Mapping[str, Sequence[str]] = {
    KIND: (TENANTS,),
    DISK: (APPLICATIONS, DISK),
    POOL_OWNER: (APPLICATIONS, POOL_OWNER),
}
_OF_OTHER_KINDS = (APPLICATIONS,)


@dataclass(frozen=True, kw_only=True)
class Releases:
    """`events` are those of the informer, whose store has every HelmRelease that concerns anybody."""

    informer: Informer
    events: SharedEvents


def watch_releases(cluster: ClusterClient, *, minimum_version: Callable[[], int] = lambda: 0) -> Releases:
    """No label selector matches all of them: a module need not be an application. Those of others are not kept."""
    events = SharedEvents(concerned)
    informer = Informer(cluster, HELMRELEASES, transform=trim_release, keeps=concerned, minimum_version=minimum_version)
    informer.add_handler(events)
    return Releases(informer=informer, events=events)


def concerned(release: Object) -> Sequence[str]:
    """The names of the subscribers that a HelmRelease concerns, by its labels."""
    labels = release["metadata"].get("labels")
    if not isinstance(labels, dict):
        return ()
    # operators, as this runs for every event of a HelmRelease
    found: Sequence[str] = ()
    is_ours = APPLICATION_GROUP_LABEL in labels and labels[APPLICATION_GROUP_LABEL] == GROUP
    if is_ours and APPLICATION_KIND_LABEL in labels:
        found = _OF_OTHER_KINDS
        if (kind := labels[APPLICATION_KIND_LABEL]) in _OF_KIND:
            found = _OF_KIND[kind]
    return (*found, MODULES) if MODULE_LABEL in labels and labels[MODULE_LABEL] == "true" else found
