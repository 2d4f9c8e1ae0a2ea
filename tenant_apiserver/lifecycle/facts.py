"""The facts of a cluster that preflight judges. Only `reader.py` makes these values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from apiserver.meta.resource import Object
from tenant_apiserver.lifecycle.kinds import TargetObject
from tenant_apiserver.options.lifecycle import GROUPS as GROUPS

VERSION = "v1alpha1"


def api_service_name(group: str) -> str:
    return f"{VERSION}.{group}"


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterFacts:
    """`found` has the objects that exist of those that were looked for; it lacks the ones in `unreadable`, for which it
    has the reason. `served` are the plural names of the kinds that somebody serves now, by group, without the groups
    whose server does not answer. `definitions` are the ApplicationDefinitions, `deployments` all Deployments; None if
    they cannot be listed, for which `notes` have the reason."""

    kubernetes: str
    groups: Sequence[str] = ()
    """Those that the step registers or moves."""
    found: Mapping[TargetObject, Object] = field(default_factory=dict)
    unreadable: Mapping[TargetObject, str] = field(default_factory=dict)
    served: Mapping[str, frozenset[str]] = field(default_factory=dict)
    silent: Mapping[str, str] = field(default_factory=dict)
    """The groups that have an APIService whose server does not answer, with the reason."""
    leading: Sequence[str] = ()
    """The names of all APIServices that lead to our Service, in their order."""
    own: Mapping[str, frozenset[str]] = field(default_factory=dict)
    """The plural names of the kinds that this version serves on any cluster, by group."""
    definitions: Sequence[Object] | None = ()
    deployments: Sequence[Object] | None = ()
    notes: Sequence[str] = ()
    """Other objects that could not be read."""
