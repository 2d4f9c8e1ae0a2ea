"""Numbers by group and name, optimized for many groups whose few names are the same."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import lru_cache
from struct import Struct

_FEW = 8
_CACHE_SIZE = 1024
_NUMBER = Struct("<q")


class NumbersByName:
    """A signed 64-bit number for each name in a group.

    The numbers of up to eight names are bytes, and equal names of several groups are one tuple. With 10,000 Tenants,
    there are 40,000 groups, and a dictionary for each would take more than twice the memory. A group that has had more
    names stays a dictionary until it is empty.
    """

    def __init__(self) -> None:
        self._few: dict[str, tuple[tuple[str, ...], bytes]] = {}
        self._many: dict[str, dict[str, int]] = {}

    def get(self, group: str, name: str) -> int | None:
        """None for an unknown name."""
        if (few := self._few.get(group)) is not None:
            names, numbers = few
            return _at(numbers, names.index(name)) if name in names else None
        return self._many[group].get(name) if group in self._many else None

    def names(self, group: str) -> Sequence[str]:
        if (few := self._few.get(group)) is not None:
            return few[0]
        return tuple(self._many.get(group, ()))

    def put(self, group: str, name: str, number: int | None) -> bool:
        """Sets or removes a number, and returns whether it differs."""
        if self.get(group, name) == number:
            return False
        if (many := self._many.get(group)) is None:
            self._put_few(group, name, number)
        elif number is not None:
            many[name] = number
        else:
            del many[name]
            if not many:
                del self._many[group]
        return True

    def _put_few(self, group: str, name: str, number: int | None) -> None:
        names, numbers = self._few.get(group, ((), b""))
        by_name = {each: _at(numbers, index) for index, each in enumerate(names)}
        if number is None:
            del by_name[name]
        else:
            by_name[name] = number
        if len(by_name) > _FEW:
            del self._few[group]
            self._many[group] = by_name
        elif by_name:
            self._few[group] = _shared(tuple(by_name)), b"".join(map(_NUMBER.pack, by_name.values()))
        else:
            del self._few[group]

    def clear(self) -> None:
        self._few.clear()
        self._many.clear()

    def __iter__(self) -> Iterator[tuple[str, str]]:
        """Each group and name."""
        for group, (names, _) in self._few.items():
            for name in names:
                yield group, name
        for group, numbers in self._many.items():
            for name in numbers:
                yield group, name


def _at(numbers: bytes, index: int) -> int:
    number: int
    (number,) = _NUMBER.unpack_from(numbers, index * _NUMBER.size)
    return number


@lru_cache(maxsize=_CACHE_SIZE)
def _shared(names: tuple[str, ...]) -> tuple[str, ...]:
    return names
