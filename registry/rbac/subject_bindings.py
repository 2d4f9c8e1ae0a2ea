"""The keys of the bindings of each subject, grouped by namespace where there are many.

The groups of a tenant are bound in the namespaces of all its descendants: those of the root, five times in each
namespace of ten thousand. A decision about one namespace must not read them all.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from sys import intern
from typing import Generic, TypeVar

S = TypeVar("S", bound=str)
K = TypeVar("K", bound=str)

_FEW = 16


class SubjectBindings(Generic[S, K]):
    """Subjects are strings, and keys are strings `<namespace>/<name>`, with an empty namespace for cluster-wide ones.

    Most subjects have few bindings, which are a tuple: the garbage collector skips tuples of strings.
    """

    def __init__(self) -> None:
        self._few: dict[S, tuple[K, ...]] = {}
        self._many: dict[S, dict[str, tuple[K, ...]]] = {}

    def add(self, subject: S, key: K) -> None:
        """Adds a key that the subject does not have."""
        if (many := self._many.get(subject)) is not None:
            _insert(many, key)
            return
        keys = (*self._few.get(subject, ()), key)
        if len(keys) <= _FEW:
            self._few[subject] = keys
            return
        self._few.pop(subject)
        many = self._many[subject] = {}
        for each in keys:
            _insert(many, each)

    def discard(self, subject: S, key: K) -> None:
        """Does nothing if the subject does not have the key."""
        if (many := self._many.get(subject)) is not None:
            _remove(many, namespace_of(key), key)
            if not many:
                del self._many[subject]
        else:
            _remove(self._few, subject, key)

    def keys(self, subject: S) -> Iterator[K]:
        """All keys of a subject. The bindings may change during the iteration."""
        if (many := self._many.get(subject)) is not None:
            for keys in tuple(many.values()):
                yield from keys
        else:
            yield from self._few.get(subject, ())

    def keys_in(self, subject: S, namespace: str) -> Iterable[K]:
        """The keys of a subject in one namespace, '' for cluster-wide ones."""
        if (many := self._many.get(subject)) is not None:
            return many.get(namespace, ())
        if (few := self._few.get(subject)) is None:
            return ()
        prefix = f"{namespace}/"
        return [key for key in few if key.startswith(prefix)]


def namespace_of(key: str) -> str:
    return key.partition("/")[0]


def _insert(keys: dict[str, tuple[K, ...]], key: K) -> None:
    # the same namespaces occur for several subjects
    namespace = intern(namespace_of(key))
    keys[namespace] = (*keys.get(namespace, ()), key)


def _remove(keys: dict[S, tuple[K, ...]], index: S, key: K) -> None:
    remaining = tuple(each for each in keys.get(index, ()) if each != key)
    if remaining:
        keys[index] = remaining
    else:
        keys.pop(index, None)
