"""The informers that readiness still waits for, and whether that is because the cluster lacks their kind. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from registry.application.release_backend import is_not_served
from registry.cluster.informer import Informer


def unsynced(informers: Sequence[Informer]) -> Sequence[Informer]:
    return [each for each in informers if not each.synced.is_set()]


def is_lacking(informer: Informer) -> bool:
    """True if the cluster has answered that it does not serve the kind."""
    return informer.cluster_error is not None and is_not_served(informer.cluster_error)


def unsynced_names(informers: Sequence[Informer]) -> Sequence[str]:
    """The plurals of the kinds, each once though several informers may be of one kind, such as of single ConfigMaps."""
    reasons = {True: " (kube-apiserver does not serve them)", False: ""}
    return list(dict.fromkeys(f"{each.resource.plural}{reasons[is_lacking(each)]}" for each in unsynced(informers)))
