"""The current roles and bindings with their recent changes, from which earlier states can be reconstructed."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from itertools import chain
from typing import NamedTuple

from registry.rbac.role_index import (
    BindingKey,
    BoundRole,
    RbacBinding,
    RbacRule,
    RoleIndex,
    RoleKey,
    Subject,
    split_key,
)

_MAX_CHANGES = 10_000
_MAX_BYTES = 16 * 1024 * 1024
"""Of the subjects and rules of all changes: a user who may write RoleBindings in one namespace may write large ones.
Usual changes have half a kilobyte."""
_STRING_BYTES = 64
"""Of a string besides its characters, and of its place in a tuple."""

Affected = Sequence[Sequence[Subject]]
"""Subjects, with repetitions: those of each binding. To unite them would take a second for a role of large bindings."""

RbacListener = Callable[[Affected, int, str | None], None]
"""Called with the subjects that a change affects, its resourceVersion, and the namespace that it is limited to, or
None."""


class _Change(NamedTuple):
    """A change: its time and version, the affected subjects, about how many bytes it refers to, and the binding or the
    rules of the role before it, None if there were none."""

    time: float
    rv: int
    affected: Affected
    size: int
    binding: BindingKey | None
    role: RoleKey | None
    before: RbacBinding | Sequence[RbacRule] | None

    @property
    def namespace(self) -> str | None:
        """The only namespace that the change concerns, None if it may concern others."""
        return split_key(self.binding).namespace or None if self.binding is not None else None


class Undone(NamedTuple):
    """A change that has been undone in `past`: its time, and the only namespace that it concerns, or None."""

    time: float
    namespace: str | None
    past: PastRoleIndex


class RbacHistory:
    """The role index and its latest changes, written by a single feed. Recording starts when everything has been listed
    for the first time: at `first_rv`, and at `started_at` of the clock. Earlier states are unknown, and so are those
    before `oldest_rv` once many changes have followed."""

    def __init__(
        self,
        *,
        clock: Callable[[], float] = time.monotonic,
        max_changes: int = _MAX_CHANGES,
        max_bytes: int = _MAX_BYTES,
    ) -> None:
        self.index = RoleIndex()
        self.rv = 0
        self.first_rv = 0
        self.oldest_rv = 0
        self.started_at = float("inf")
        self._clock = clock
        self._max_changes = max_changes
        self._max_bytes = max_bytes
        self._changes: deque[_Change] = deque()
        self._bytes = 0
        self._recording = False
        self._dropped_until = float("-inf")
        self._listeners: list[RbacListener] = []

    def subscribe(self, listener: RbacListener) -> None:
        """Calls `listener` for every change after recording has started; no watch depends on earlier ones."""
        self._listeners.append(listener)

    def start_recording(self, rv: int) -> None:
        """Starts recording: everything has been listed up to `rv`."""
        self.first_rv = self.oldest_rv = self.rv = max(self.rv, rv)
        self.started_at = self._clock()
        self._recording = True

    def put_role(self, key: RoleKey, rules: tuple[RbacRule, ...], rv: int) -> None:
        before = self.index.rules_of(key)
        if before != rules:
            self.index.put_role(key, rules)
            self._record_change(rv, self._subjects_of_role(key), role=key, before=before)

    def drop_role(self, key: RoleKey, rv: int) -> None:
        before = self.index.rules_of(key)
        if before is not None:
            self.index.drop_role(key)
            self._record_change(rv, self._subjects_of_role(key), role=key, before=before)

    def put_binding(self, binding: RbacBinding, rv: int) -> None:
        before = self.index.binding(binding.key)
        if before != binding:
            self.index.put_binding(binding)
            former = before.subjects if before is not None else ()
            self._record_change(rv, (binding.subjects, former), binding=binding.key, before=before)

    def drop_binding(self, key: BindingKey, rv: int) -> None:
        before = self.index.binding(key)
        if before is not None:
            self.index.drop_binding(key)
            self._record_change(rv, (before.subjects,), binding=key, before=before)

    def undo_until(self, start: float, subjects: frozenset[Subject]) -> Iterator[Undone] | None:
        """The changes that affect one of `subjects`, the latest first, back to a time of the clock. Each step changes
        the one `past`. None if `start` is before the oldest recorded change."""
        return self._undo_until(start, subjects) if start > self._dropped_until else None

    def _undo_until(self, start: float, subjects: frozenset[Subject]) -> Iterator[Undone]:
        past = PastRoleIndex(self.index)
        for change in reversed(self._changes):
            if change.time < start:
                return
            past.undo(change)
            if not all(map(subjects.isdisjoint, change.affected)):
                yield Undone(change.time, change.namespace, past)

    def _subjects_of_role(self, role: RoleKey) -> Affected:
        return tuple(binding.subjects for binding in self.index.bindings_of_role(role))

    def _record_change(
        self,
        rv: int,
        affected: Affected,
        *,
        binding: BindingKey | None = None,
        role: RoleKey | None = None,
        before: RbacBinding | Sequence[RbacRule] | None,
    ) -> None:
        self.rv = max(self.rv, rv)
        if not self._recording:
            return
        change = _Change(self._clock(), rv, affected, _size_of(affected, before), binding, role, before)
        self._changes.append(change)
        self._bytes += change.size
        while len(self._changes) > self._max_changes or self._bytes > self._max_bytes:
            dropped = self._changes.popleft()
            self._bytes -= dropped.size
            self._dropped_until = dropped.time
            self.oldest_rv = max(self.oldest_rv, dropped.rv)
        for listener in self._listeners:
            listener(affected, rv, change.namespace)


def _size_of(affected: Affected, before: RbacBinding | Sequence[RbacRule] | None) -> int:
    """The subjects of `before`, if it is a binding, are among the affected ones."""
    rules = () if before is None or isinstance(before, RbacBinding) else before
    strings = (each for rule in rules for each in (rule.verbs, rule.groups, rule.resources, rule.names, rule.paths))
    return sum(_STRING_BYTES * len(each) + sum(map(len, each)) for each in chain(affected, strings))


class PastRoleIndex:
    """The role index at an earlier time: the current one with some changes undone."""

    def __init__(self, index: RoleIndex) -> None:
        self._index = index
        # by namespace
        self._bindings: dict[str, dict[BindingKey, RbacBinding | None]] = {}
        self._roles: dict[RoleKey, Sequence[RbacRule] | None] = {}

    def undo(self, change: _Change) -> None:
        """Undoes a change. Changes are undone in reverse order."""
        before = change.before
        if change.binding is not None:
            undone = self._bindings.setdefault(split_key(change.binding).namespace, {})
            undone[change.binding] = before if isinstance(before, RbacBinding) else None
        elif change.role is not None:
            self._roles[change.role] = None if isinstance(before, RbacBinding) else before

    def roles_of(self, subject: Subject, namespace: str | None = None) -> Iterator[BoundRole]:
        undone = self._bindings if namespace is None else {namespace: self._bindings.get(namespace, {})}
        for binding in self._index.bindings_of(subject, namespace):
            if binding.key not in undone.get(binding.namespace, {}):
                yield binding.namespace, binding.role
        for where, bindings in undone.items():
            for past in bindings.values():
                if past is not None and subject in past.subjects:
                    yield where, past.role

    def rules_of(self, key: RoleKey) -> Sequence[RbacRule] | None:
        return self._roles[key] if key in self._roles else self._index.rules_of(key)
