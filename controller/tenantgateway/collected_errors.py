"""What went wrong in one pass over a TenantGateway: each thing by itself, so that the others are done all the same."""

from __future__ import annotations

from collections.abc import Sequence
from types import TracebackType

from apiserver.meta.errors import StatusError
from controller.runtime.apply import ForeignObject
from registry.cluster.interface import ClusterUnreachable, NotServed, is_namespace_terminating_error

# What changed under our hands, a host that is busy, or one that does not know us for the moment: no fault of an object.
_PASSING = frozenset((401, 408, 409, 410, 429, 504))


class CollectedErrors:
    """`messages` are for people, `api_errors` are to be tried again; what is `transient` is not worth telling."""

    def __init__(self) -> None:
        self.messages: list[str] = []
        self.api_errors: list[StatusError] = []

    @property
    def transient(self) -> Sequence[StatusError]:
        return [each for each in self.api_errors if is_transient(each)]

    def raise_most_retryable(self) -> None:
        """Raises a refusal if there is any: one that another try may help, if there is such a one."""
        if self.api_errors:
            raise min(self.api_errors, key=is_namespace_terminating_error)

    def add(self, sentence: str) -> None:
        self.messages.append(sentence)

    def collecting(self, what: str) -> _ErrorCollector:
        """A context that takes what the host refuses of `what`, and foreign objects. NotLeading ends the pass."""
        return _ErrorCollector(self, what)


class _ErrorCollector:
    def __init__(self, errors: CollectedErrors, what: str) -> None:
        self._errors = errors
        self._what = what

    def __enter__(self) -> None:
        """Nothing to do."""

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> bool:
        if isinstance(error, ForeignObject):
            self._errors.add(str(error))
        elif isinstance(error, StatusError):
            self._errors.api_errors.append(error)
            if not is_transient(error):
                self._errors.add(f"{self._what}: {error.message}")
        return isinstance(error, ForeignObject | StatusError)


def is_transient(error: StatusError) -> bool:
    if isinstance(error, NotServed):
        return False
    return isinstance(error, ClusterUnreachable) or error.code in _PASSING or _is_being_deleted(error)


def _is_being_deleted(error: StatusError) -> bool:
    """Whether what was to be written, or its namespace, has just gone or is about to."""
    if error.code == 404:
        return bool((error.details or {}).get("name"))
    return is_namespace_terminating_error(error)
