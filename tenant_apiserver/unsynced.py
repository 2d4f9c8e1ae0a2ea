"""The informers that readiness still waits for, and those that the cluster does not let watch. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from registry.application.release_backend import is_not_served
from registry.cluster.informer import Informer
from registry.cluster.interface import FORBIDDEN, missing_right


def unsynced(informers: Sequence[Informer]) -> Sequence[Informer]:
    return [each for each in informers if not each.synced.is_set()]


def is_lacking(informer: Informer) -> bool:
    """True if the cluster has answered that it does not serve the kind."""
    return informer.cluster_error is not None and is_not_served(informer.cluster_error)


def unsynced_names(informers: Sequence[Informer]) -> Sequence[str]:
    """The plurals of the kinds, each once though several informers may be of one kind, such as of single ConfigMaps."""
    reasons = {True: " (kube-apiserver does not serve them)", False: ""}
    return list(dict.fromkeys(f"{each.resource.plural}{reasons[is_lacking(each)]}" for each in unsynced(informers)))


def unwatched_note(informers: Sequence[Informer]) -> str:
    """The kinds that cannot be watched at present, by the reason; empty if there are none."""
    lacking, silent, rights = set[str](), set[str](), set[str]()
    for each in informers:
        error, plural = each.cluster_error, each.resource.plural
        if error is None or (error.code == FORBIDDEN and each.if_forbidden):
            continue
        if is_lacking(each):
            lacking.add(plural)
        elif error.code == FORBIDDEN:
            rights.add(missing_right(error) or f"list and watch {plural}")
        else:
            silent.add(plural)
    named = (
        ("no answer at present about", silent),
        ("kube-apiserver does not serve", lacking),
        ("the server lacks the right to", rights),
    )
    return "; ".join(f"{text} {', '.join(sorted(found))}" for text, found in named if found)
