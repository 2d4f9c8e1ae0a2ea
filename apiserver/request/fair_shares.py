"""The shares of users in something that a process has a limited amount of."""

from __future__ import annotations

from fractions import Fraction
from typing import Final

_PART: Final = Fraction(1, 3)


class FairShares:
    """Counts how much each user, or each flow of users (BytesInFlight), has of `total`.

    A user may have `per_user`, but at most a part of what the others leave, by default a third, so that some is left
    for one who takes less, however many others take all that they can (as the dynamic thresholds of a switch divide its
    memory among ports). `always` is not refused to anyone, so that large requests do not block ordinary ones
    (ATTACK-19).
    """

    def __init__(self, *, total: int, per_user: int, always: int = 0, part: Fraction = _PART) -> None:
        self._total = total
        self._per_user = per_user
        self._always = always
        self._numerator, self._denominator = part.as_integer_ratio()
        self._used = 0
        self._by_user: dict[str, int] = {}

    def of(self, user: str) -> int:
        return self._by_user.get(user, 0)

    def allows(self, user: str, more: int) -> bool:
        """True if the user may have as many `more`."""
        used = self._by_user.get(user, 0)
        wanted, left_by_others = used + more, self._total - (self._used - used)
        share = left_by_others * self._numerator // self._denominator
        return wanted <= self._per_user and (wanted <= self._always or wanted <= share)

    def add(self, user: str, count: int) -> None:
        """A negative `count` gives back."""
        self._used += count
        if used := self._by_user.get(user, 0) + count:
            self._by_user[user] = used
        else:
            self._by_user.pop(user, None)
