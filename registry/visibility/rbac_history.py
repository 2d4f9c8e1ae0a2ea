"""Roles and bindings as they are, and for a while as they were."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

from registry.rbac.role_index import BindingKey, RbacBinding, RbacRule, RoleIndex, RoleKey, Subject, split_key

_CHANGES = 10_000

Listener = Callable[[frozenset[Subject], int, str | None], None]
"""Told for whom something may have changed, the resourceVersion of the change, and in which namespace; None if it can
be anywhere."""


class _Change(NamedTuple):
    """When it was taken in, whom it concerns, and what there was before: a binding, or a role's rules, None for
    nothing."""

    time: float
    subjects: frozenset[Subject]
    binding: BindingKey | None
    role: RoleKey | None
    before: RbacBinding | Sequence[RbacRule] | None


class RbacHistory:
    """Fed by one writer. What was there when everything had been seen for the first time is the beginning: nothing
    is known of what was before `since`, the resourceVersion of that, which came at `began` of the clock."""

    def __init__(self, *, clock: Callable[[], float] = time.monotonic, changes: int = _CHANGES) -> None:
        self.index = RoleIndex()
        self.rv = 0
        self.since = 0
        self.began = float("inf")
        self._clock = clock
        self._most = changes
        self._changes: deque[_Change] = deque()
        self._recording = False
        self._forgotten = float("-inf")
        self._listeners: list[Listener] = []

    def subscribe(self, listener: Listener) -> None:
        """To be told of every change from the beginning on: before it, nobody has been shown anything."""
        self._listeners.append(listener)

    def begin(self, rv: int) -> None:
        """Everything has been seen up to `rv`, and is remembered from now on."""
        self.since = self.rv = max(self.rv, rv)
        self.began = self._clock()
        self._recording = True

    def put_role(self, key: RoleKey, rules: tuple[RbacRule, ...], rv: int) -> None:
        before = self.index.rules_of(key)
        if before != rules:
            self.index.put_role(key, rules)
            self._changed(rv, self._bound(key), role=key, before=before)

    def drop_role(self, key: RoleKey, rv: int) -> None:
        before = self.index.rules_of(key)
        if before is not None:
            self.index.drop_role(key)
            self._changed(rv, self._bound(key), role=key, before=before)

    def put_binding(self, binding: RbacBinding, rv: int) -> None:
        before = self.index.binding(binding.key)
        if before != binding:
            self.index.put_binding(binding)
            former = before.subjects if before is not None else ()
            self._changed(rv, {*binding.subjects, *former}, binding=binding.key, before=before)

    def drop_binding(self, key: BindingKey, rv: int) -> None:
        before = self.index.binding(key)
        if before is not None:
            self.index.drop_binding(key)
            self._changed(rv, before.subjects, binding=key, before=before)

    def states_between(self, start: float, end: float, subjects: frozenset[Subject]) -> Sequence[PastRoleIndex] | None:
        """The states from one time of the clock to another: the first one, and one more for each change in between
        that concerns one of `subjects`. None if that has been forgotten."""
        if start <= self._forgotten:
            return None
        past = PastRoleIndex(self.index)
        states: list[PastRoleIndex] = []
        for change in reversed(self._changes):
            if change.time < start:
                break
            if change.time <= end and not change.subjects.isdisjoint(subjects):
                states.append(past.copy())
            past.undo(change)
        return [*states, past]

    def _bound(self, role: RoleKey) -> set[Subject]:
        return {subject for binding in self.index.bindings_of_role(role) for subject in binding.subjects}

    def _changed(
        self,
        rv: int,
        subjects: Iterable[Subject],
        *,
        binding: BindingKey | None = None,
        role: RoleKey | None = None,
        before: RbacBinding | Sequence[RbacRule] | None,
    ) -> None:
        self.rv = max(self.rv, rv)
        if not self._recording:
            return
        concerned = frozenset(subjects)
        self._changes.append(_Change(self._clock(), concerned, binding, role, before))
        if len(self._changes) > self._most:
            self._forgotten = self._changes.popleft().time
        namespace = split_key(binding).namespace if binding is not None else None
        for listener in self._listeners:
            listener(concerned, rv, namespace or None)


class PastRoleIndex:
    """The index as it was before the changes that were undone."""

    def __init__(self, index: RoleIndex) -> None:
        self._index = index
        self._bindings: dict[BindingKey, RbacBinding | None] = {}
        self._roles: dict[RoleKey, Sequence[RbacRule] | None] = {}

    def copy(self) -> PastRoleIndex:
        copied = PastRoleIndex(self._index)
        copied._bindings, copied._roles = dict(self._bindings), dict(self._roles)
        return copied

    def undo(self, change: _Change) -> None:
        """Changes are undone from the last one on."""
        before = change.before
        if change.binding is not None:
            self._bindings[change.binding] = before if isinstance(before, RbacBinding) else None
        elif change.role is not None:
            self._roles[change.role] = None if isinstance(before, RbacBinding) else before

    def bindings_of(self, subject: Subject, namespace: str | None = None) -> Iterable[RbacBinding]:
        for binding in self._index.bindings_of(subject, namespace):
            if binding.key not in self._bindings:
                yield binding
        for past in self._bindings.values():
            if past is not None and subject in past.subjects and namespace in (None, past.namespace):
                yield past

    def rules_of(self, key: RoleKey) -> Sequence[RbacRule] | None:
        return self._roles[key] if key in self._roles else self._index.rules_of(key)
