"""What a DELETE makes of an object: the rules of finalizers and propagation (WIRE-D79, WIRE-D89 to WIRE-D92). Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from apiserver.meta.resource import Object
from apiserver.request.options import DeleteOptions, Preconditions

ORPHAN = "orphan"
FOREGROUND = "foregroundDeletion"


class Finalization(Protocol):
    """What keeps objects of a kind, and what shows that they are on their way out."""

    def has_finalizers(self, obj: Object) -> bool:
        """Whether something has to be done before the object may go."""
        ...

    def mark_terminating(self, obj: Object) -> None:
        """Called in place, once, when the deletion begins."""
        ...


class MetadataFinalizers:
    """The Termination of nearly all kinds: metadata.finalizers."""

    def has_finalizers(self, obj: Object) -> bool:
        return bool(obj["metadata"].get("finalizers"))

    def mark_terminating(self, obj: Object) -> None:
        pass


@dataclass(frozen=True, slots=True)
class DeletionOutcome:
    """The object after a DELETE. Not `changed`, it is as it was; `gone`, it has to be removed."""

    object: Object
    changed: bool
    gone: bool


def apply_delete(current: Object, options: DeleteOptions, termination: Finalization, *, now: str) -> DeletionOutcome:
    """`current` is not changed. A second DELETE of an object that is on its way out may still ask for another
    propagation, and changes nothing else (WIRE-D91)."""
    metadata = dict(current["metadata"])
    finalizers = propagation_finalizers(metadata.get("finalizers") or (), options)
    changed = finalizers != list(metadata.get("finalizers") or ())
    if finalizers:
        metadata["finalizers"] = finalizers
    else:
        metadata.pop("finalizers", None)
    obj = {**current, "metadata": metadata}
    if not termination.has_finalizers(obj):
        return DeletionOutcome(obj, True, True)
    if "deletionTimestamp" not in metadata:
        changed = True
        metadata["deletionTimestamp"] = now
        metadata["deletionGracePeriodSeconds"] = 0
        if "generation" in metadata:
            metadata["generation"] += 1
        termination.mark_terminating(obj)
    return DeletionOutcome(obj, changed, False)


def precondition_mismatch(preconditions: Preconditions, current: Object) -> str:
    """Why the preconditions do not hold, in the words of WIRE-D89; empty if they do."""
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
    """The finalizers of an object that is deleted with these options (WIRE-D90)."""
    orphan, foreground = _wanted(finalizers, options)
    kept = [each for each in finalizers if each not in (ORPHAN, FOREGROUND)]
    asked = [*([ORPHAN] if orphan else []), *([FOREGROUND] if foreground else [])]
    unchanged = sorted(asked) == sorted(each for each in finalizers if each in (ORPHAN, FOREGROUND))
    return list(finalizers) if unchanged else [*kept, *asked]


def _wanted(finalizers: Sequence[str], options: DeleteOptions) -> tuple[bool, bool]:
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
