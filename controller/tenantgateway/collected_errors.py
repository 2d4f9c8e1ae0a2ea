"""What went wrong in one pass over a TenantGateway: each thing by itself, so that the others are done all the same."""

from __future__ import annotations

from collections.abc import Sequence
from types import TracebackType

from apiserver.meta.errors import StatusError
from controller.runtime.apply import ForeignObject
from registry.cluster.interface import ClusterUnreachable, NotServed, is_namespace_ending

# What changed under our hands, a host that is busy, or one that does not know us for the moment: no fault of an object.
_PASSING = frozenset((401, 408, 409, 410, 429, 504))


class Faults:
    """`sentences` are for people, `refusals` are to be tried again; what is `passing` is not worth telling."""

    def __init__(self) -> None:
        self.sentences: list[str] = []
        self.refusals: list[StatusError] = []

    @property
    def passing(self) -> Sequence[StatusError]:
        return [each for each in self.refusals if is_passing(each)]

    def raise_one(self) -> None:
        """Raises a refusal if there is any: one that another try may help, if there is such a one."""
        if self.refusals:
            raise min(self.refusals, key=is_namespace_ending)

    def add(self, sentence: str) -> None:
        self.sentences.append(sentence)

    def collected(self, what: str) -> Collected:
        """A context that takes what the host refuses of `what`, and foreign objects. NotLeading ends the pass."""
        return Collected(self, what)


class Collected:
    def __init__(self, faults: Faults, what: str) -> None:
        self._faults = faults
        self._what = what

    def __enter__(self) -> None:
        """Nothing to do."""

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> bool:
        if isinstance(error, ForeignObject):
            self._faults.add(str(error))
        elif isinstance(error, StatusError):
            self._faults.refusals.append(error)
            if not is_passing(error):
                self._faults.add(f"{self._what}: {error.message}")
        return isinstance(error, ForeignObject | StatusError)


def is_passing(error: StatusError) -> bool:
    if isinstance(error, NotServed):
        return False
    return isinstance(error, ClusterUnreachable) or error.code in _PASSING or _is_going(error)


def _is_going(error: StatusError) -> bool:
    """Whether what was to be written, or its namespace, has just gone or is about to."""
    if error.code == 404:
        return bool((error.details or {}).get("name"))
    return is_namespace_ending(error)
