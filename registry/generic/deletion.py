"""DELETE of an object with finalizers, propagation and preconditions (WIRE-D79, WIRE-D89 to WIRE-D92). Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from apiserver.meta.resource import Object
from apiserver.request.options import DeleteOptions, Preconditions
from registry.generic.finalizers import FOREGROUND, ORPHAN


class Finalization(Protocol):
    """Finds the finalizers of a kind's objects, and changes an object when its deletion begins."""

    def has_finalizers(self, obj: Object) -> bool:
        """True if finalizers block the removal of the object."""
        ...

    def mark_terminating(self, obj: Object) -> None:
        """Changes the object in place when its deletion begins, beyond metadata.deletionTimestamp."""
        ...


class MetadataFinalizers:
    """The Finalization of nearly all kinds, by metadata.finalizers alone."""

    def has_finalizers(self, obj: Object) -> bool:
        return bool(obj["metadata"].get("finalizers"))

    def mark_terminating(self, obj: Object) -> None:
        pass


@dataclass(frozen=True, slots=True)
class DeletionOutcome:
    """The object after a DELETE. If `removed` is true, the caller removes it from the storage."""

    object: Object
    changed: bool
    removed: bool


def apply_delete(current: Object, options: DeleteOptions, finalization: Finalization, *, now: str) -> DeletionOutcome:
    """Computes the outcome without changing `current`. A second DELETE of a terminating object can change the
    propagation policy and nothing else (WIRE-D91)."""
    metadata = dict(current["metadata"])
    finalizers = propagation_finalizers(metadata.get("finalizers") or (), options)
    changed = finalizers != list(metadata.get("finalizers") or ())
    if finalizers:
        metadata["finalizers"] = finalizers
    else:
        metadata.pop("finalizers", None)
    obj = {**current, "metadata": metadata}
    if not finalization.has_finalizers(obj):
        return DeletionOutcome(obj, True, True)
    if "deletionTimestamp" not in metadata:
        changed = True
        metadata["deletionTimestamp"] = now
        metadata["deletionGracePeriodSeconds"] = 0
        if "generation" in metadata:
            metadata["generation"] += 1
        finalization.mark_terminating(obj)
    return DeletionOutcome(obj, changed, False)


def precondition_mismatch(preconditions: Preconditions, current: Object) -> str:
    """The message of a precondition that does not hold (WIRE-D89), empty if all hold."""
    metadata = current["metadata"]
    uid, version = preconditions.uid, preconditions.resource_version
    if uid is not None and uid != metadata["uid"]:
        return (
            f"the UID in the precondition ({uid}) does not match the UID in record ({metadata['uid']}). "
            "The object might have been deleted and then recreated"
        )
    if version is not None and version != metadata["resourceVersion"]:
        return (
            f"the ResourceVersion in the precondition ({version}) does not match the ResourceVersion in record "
            f"({metadata['resourceVersion']}). The object might have been modified"
        )
    return ""


def propagation_finalizers(finalizers: Sequence[str], options: DeleteOptions) -> list[str]:
    """The finalizers of an object after a DELETE with these options (WIRE-D90)."""
    orphan, foreground = _requested_propagation(finalizers, options)
    others = [each for each in finalizers if each not in (ORPHAN, FOREGROUND)]
    propagation = [*([ORPHAN] if orphan else []), *([FOREGROUND] if foreground else [])]
    unchanged = sorted(propagation) == sorted(each for each in finalizers if each in (ORPHAN, FOREGROUND))
    return list(finalizers) if unchanged else [*others, *propagation]


def _requested_propagation(finalizers: Sequence[str], options: DeleteOptions) -> tuple[bool, bool]:
    """Returns whether dependents are orphaned, and whether they are deleted in the foreground."""
    if options.orphan_dependents is not None:
        return options.orphan_dependents, False
    match options.propagation_policy:
        case "Orphan":
            return True, False
        case "Foreground":
            return False, True
        case "Background":
            return False, False
        case _:
            return ORPHAN in finalizers, FOREGROUND in finalizers


def delete_body(current: Object, options: DeleteOptions) -> dict[str, Any]:
    """DeleteOptions with preconditions on the state that admission has seen (WIRE-D89, API-2)."""
    metadata = current["metadata"]
    body: dict[str, Any] = {
        "preconditions": {"uid": metadata["uid"], "resourceVersion": metadata["resourceVersion"]},
    }
    optional = {
        "propagationPolicy": options.propagation_policy,
        "orphanDependents": options.orphan_dependents,
        "gracePeriodSeconds": options.grace_period_seconds,
        "dryRun": ["All"] if options.dry_run else None,
    }
    return body | {field: value for field, value in optional.items() if value is not None}
