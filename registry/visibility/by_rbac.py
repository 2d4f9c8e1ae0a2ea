"""Who may see what, alive: by RBAC, one sight an identity, told only of the changes that concern it."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Callable, Sequence
from functools import reduce
from typing import NamedTuple
from weakref import WeakSet

from apiserver.authorization.authorizer import MASTERS
from apiserver.meta.errors import ServiceUnavailable
from apiserver.request.context import User
from apiserver.storage.visibility import Visibility, VisibilityChange, VisibleNamespaces, intersection, union
from registry.rbac.role_index import Subject, subjects_of
from registry.visibility.rbac_history import RbacHistory
from registry.visibility.visible_namespaces import VisibilityCriterion, is_namespace_visible, visible_namespaces

# What was taken in shortly before a reader's last event may not have reached that reader: it is told again.
_MARGIN_SECONDS = 10.0
_MAX_IDENTITIES = 4096
_SYNC_SECONDS = 2.0


class Identity(NamedTuple):
    """All that RBAC asks of a user."""

    name: str
    groups: tuple[str, ...]


def identity_of(user: User) -> Identity:
    return Identity(user.name, tuple(sorted(set(user.groups))))


class RbacVisibility:
    """Sights by RBAC: where a user may get what the questions ask for, one of them at least.

    `synced` is set once all roles and bindings have been seen.
    """

    def __init__(self, record: RbacHistory, questions: Sequence[VisibilityCriterion], *, synced: asyncio.Event) -> None:
        self._record = record
        self._questions = tuple(questions)
        self._synced = synced
        # what is asked for often stays; what is watched lives as long as its watches, wherever it is held
        self._by_identity: OrderedDict[Identity, _RbacUserVisibility] = OrderedDict()
        self._by_subject: dict[Subject, WeakSet[_RbacUserVisibility]] = {}
        record.subscribe(self._changed)

    async def for_user(self, user: User) -> Visibility:
        if MASTERS in user.groups:
            return UNRESTRICTED
        await self._filled()
        identity = identity_of(user)
        visibility = self._by_identity.get(identity)
        if visibility is None:
            visibility = self._by_identity[identity] = _RbacUserVisibility(user, self._record, self._questions)
            for subject in subjects_of(user):
                self._by_subject.setdefault(subject, WeakSet()).add(visibility)
            while len(self._by_identity) > _MAX_IDENTITIES:
                self._forget(self._by_identity.popitem(last=False)[0])
        self._by_identity.move_to_end(identity)
        return visibility

    async def _filled(self) -> None:
        """What is not known yet is not shown, and not taken for nothing either."""
        if self._synced.is_set():
            return
        try:
            async with asyncio.timeout(_SYNC_SECONDS):
                await self._synced.wait()
        except TimeoutError:
            raise ServiceUnavailable("roles and bindings are still being read", retry_after=1) from None

    def _changed(self, subjects: frozenset[Subject], rv: int, namespace: str | None) -> None:
        for visibility in {visibility for subject in subjects for visibility in self._by_subject.get(subject, ())}:
            visibility.refresh(rv, namespace)

    def _forget(self, identity: Identity) -> None:
        for subject in subjects_of(User(name=identity.name, groups=identity.groups)):
            if not self._by_subject.get(subject, True):
                del self._by_subject[subject]


class _RbacUserVisibility:
    def __init__(self, user: User, record: RbacHistory, questions: Sequence[VisibilityCriterion]) -> None:
        self.user = user
        self._record = record
        self._questions = questions
        self._places = visible_namespaces(user, record.index, questions)
        self._callbacks: dict[int, Callable[[VisibilityChange], None]] = {}
        self._next = 0

    @property
    def namespaces(self) -> VisibleNamespaces:
        return self._places

    def change_since(self, rv: int, told: tuple[float, float]) -> VisibilityChange | None:
        if rv < self._record.since:
            return None
        first, last = told
        # who was told of that version was told it after the record began, also where no event says when
        start = max(first - _MARGIN_SECONDS, self._record.began)
        states = self._record.states_between(start, last, frozenset(subjects_of(self.user)))
        if states is None:
            return None
        seen = [visible_namespaces(self.user, state, self._questions) for state in states]
        return VisibilityChange(reduce(union, seen), reduce(intersection, seen), self._places, self._record.rv)

    def subscribe(self, callback: Callable[[VisibilityChange], None]) -> Callable[[], None]:
        number = self._next = self._next + 1
        self._callbacks[number] = callback

        def end() -> None:
            self._callbacks.pop(number, None)

        return end

    def refresh(self, rv: int, namespace: str | None) -> None:
        """Look again, in one namespace or everywhere: who is bound in each of ten thousand is told of them one by one
        when they are made."""
        before = self._places
        if namespace is None:
            self._places = visible_namespaces(self.user, self._record.index, self._questions)
        elif before is not None:
            seen = is_namespace_visible(self.user, self._record.index, self._questions, namespace)
            if seen != (namespace in before):
                self._places = before | {namespace} if seen else before - {namespace}
        if before == self._places:
            return
        change = VisibilityChange(before, before, self._places, rv)
        for callback in tuple(self._callbacks.values()):
            callback(change)


class _Everything:
    namespaces: VisibleNamespaces = None

    def change_since(self, rv: int, told: tuple[float, float]) -> VisibilityChange | None:
        return VisibilityChange(None, None, None, rv)

    def subscribe(self, callback: Callable[[VisibilityChange], None]) -> Callable[[], None]:
        return lambda: None


UNRESTRICTED: Visibility = _Everything()
