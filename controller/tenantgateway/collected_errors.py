"""Errors of one reconcile of a TenantGateway, collected so that one failed object does not stop the others."""

from __future__ import annotations

from collections.abc import Sequence
from types import TracebackType

from apiserver.meta.errors import StatusError
from controller.runtime.apply import ForeignObject
from registry.cluster.interface import ClusterUnreachable, NotServed, is_namespace_terminating_error

# Codes for a concurrent change of the object, an overloaded cluster, and credentials that are rejected temporarily.
_TRANSIENT = frozenset((401, 408, 409, 410, 429, 504))


class CollectedErrors:
    """`messages` go into the status; `api_errors` require a retry, and those that are `transient` have no message."""

    def __init__(self) -> None:
        self.messages: list[str] = []
        self.api_errors: list[StatusError] = []

    @property
    def transient(self) -> Sequence[StatusError]:
        return [each for each in self.api_errors if is_transient(each)]

    def raise_most_retryable(self) -> None:
        """Raises one of the `api_errors`, if any; an error about a terminating namespace only if there is no other."""
        if self.api_errors:
            raise min(self.api_errors, key=is_namespace_terminating_error)

    def add(self, message: str) -> None:
        self.messages.append(message)

    def collecting(self, subject: str, *, brief: bool = False) -> _ErrorCollector:
        """A context that collects StatusError, under the prefix `subject`, and ForeignObject. NotLeading propagates.
        With `brief`, the message has only the reason, because the text may name an object that readers must not see."""
        return _ErrorCollector(self, subject, brief=brief)


class _ErrorCollector:
    def __init__(self, errors: CollectedErrors, subject: str, *, brief: bool) -> None:
        self._errors = errors
        self._subject = subject
        self._brief = brief

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
                self._errors.add(f"{self._subject}: {error.reason if self._brief else error.message}")
        return isinstance(error, ForeignObject | StatusError)


def is_transient(error: StatusError) -> bool:
    """True if the error is expected to disappear by itself, so that the status need not mention it."""
    if isinstance(error, NotServed):
        return False
    return isinstance(error, ClusterUnreachable) or error.code in _TRANSIENT or _is_being_deleted(error)


def _is_being_deleted(error: StatusError) -> bool:
    """True if the object to write is already deleted, or its namespace is terminating."""
    if error.code == 404:
        return bool((error.details or {}).get("name"))
    return is_namespace_terminating_error(error)
