"""The errors that one validation finds, and bounds on its work: schemas and values are written by different people, and
neither may occupy the server by what the other has written."""

from __future__ import annotations

from collections.abc import Sequence

from apiserver.meta import errors
from apiserver.meta.errors import FieldError

MAX_ERRORS = 200
"""Errors of one object. kube-apiserver has no such bound; its schemas are written by administrators only."""


class TooManyTrials(ValueError):
    """The value would be judged by more alternatives than one validation may try."""


class Trials:
    """Counts the values that one validation judges by alternatives: by parts of anyOf, oneOf, allOf and not."""

    __slots__ = ("_left", "_most")

    def __init__(self, most: int | None) -> None:
        self._most = most
        self._left = most if most is not None else -1

    def spend(self) -> None:
        """Raises TooManyTrials."""
        if self._left == 0:
            raise TooManyTrials(
                f"the alternatives of its schema (anyOf, oneOf, allOf, not) take more than {self._most} checks"
            )
        self._left -= 1


class Findings(list[FieldError]):
    """The errors in the order in which they are found."""

    __slots__ = ("trials",)
    is_trial = False

    def __init__(self, trials: Trials) -> None:
        super().__init__()
        self.trials = trials

    def trial(self) -> Findings:
        """Empty findings, for the errors by one alternative."""
        return _TrialFindings(self.trials)

    @property
    def are_enough(self) -> bool:
        """True if further errors would not be told."""
        return len(self) > MAX_ERRORS

    def add_new(self, added: Sequence[FieldError]) -> None:
        """Adds those that are not there yet, until there are enough: the same error may come from several alternatives.
        They are looked up: comparing each with each takes minutes for those of a hundred alternatives."""
        if not added:
            return
        known: dict[tuple[str, str], list[FieldError]] = {}
        for each in self:
            known.setdefault((each.field, each.detail), []).append(each)
        for each in added:
            if self.are_enough:
                return
            alike = known.setdefault((each.field, each.detail), [])
            # messages quote values, and are made only where nothing else differs
            if not any(each.message == other.message for other in alike):
                alike.append(each)
                self.append(each)

    def first_errors(self) -> list[FieldError]:
        """At most MAX_ERRORS, with a note if more were found."""
        if len(self) <= MAX_ERRORS:
            return list(self)
        note = f"there are more errors: only the first {MAX_ERRORS} are listed"
        return [*self[:MAX_ERRORS], errors.invalid(errors.NO_FIELD, errors.OMITTED, note)]


class _TrialFindings(Findings):
    __slots__ = ()
    is_trial = True
