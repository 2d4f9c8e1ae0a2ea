"""Visibility by a SubjectAccessReview for each namespace, for clusters that do not authorize by RBAC alone."""

from __future__ import annotations

import asyncio
import logging
import time
from collections import OrderedDict, deque
from collections.abc import Awaitable, Callable, Hashable, Iterable, Sequence
from contextlib import suppress

from apiserver.authorization.authorizer import MASTERS, AccessAttributes, Authorizer
from apiserver.meta.errors import StatusError
from apiserver.meta.resource import Key
from apiserver.request.context import User
from apiserver.storage.visibility import EVERYTHING, Visibility, VisibilityChange, VisibleObjects
from registry.visibility.by_rbac import MARGIN_SECONDS, UNRESTRICTED, identity_of
from registry.visibility.past_visibility import PastVisibility
from registry.visibility.visible_objects import NamedObjects, VisibilityCriterion

_logger = logging.getLogger(__name__)
_INTERVAL_SECONDS = 10.0
_MAX_IDENTITIES = 1024
_CONCURRENT_REVIEWS = 32
# more than the minute between two bookmarks
_REMEMBERED_SECONDS = 90.0


class AccessReviewVisibility:
    """A VisibilitySource that asks `authorizer` for SubjectAccessReviews: one for the whole cluster, and if that is
    denied, one for each of the existing `namespaces`. Then one for each object that `related` returns for the visible
    namespaces, if rules with resourceNames can show objects: asking for every object would be too many.

    A result is valid for ten seconds from the start of its reviews, or until the next one is there if they take longer,
    and is refreshed at this interval for open watches. `authorizer` must not cache. `version` returns the
    resourceVersion of the events that a revocation causes. Earlier results are remembered for a while, so that a watch
    can follow a list, or resume.
    """

    def __init__(
        self,
        authorizer: Authorizer,
        criteria: Sequence[VisibilityCriterion],
        *,
        namespaces: Callable[[], Iterable[str]],
        version: Callable[[], int],
        related: Callable[[frozenset[str]], Iterable[Key]] = lambda namespaces: (),
        interval: float = _INTERVAL_SECONDS,
    ) -> None:
        self._authorizer = authorizer
        self._criteria = tuple(criteria)
        self._existing_namespaces = namespaces
        self._version = version
        self._related = related
        self._interval = interval
        self._by_identity: OrderedDict[Hashable, _ReviewedUserVisibility] = OrderedDict()
        self._slots = asyncio.Semaphore(_CONCURRENT_REVIEWS)

    async def for_user(self, user: User) -> Visibility:
        if MASTERS in user.groups:
            return UNRESTRICTED
        identity = _identity_of(user)
        visibility = self._by_identity.get(identity)
        if visibility is None:
            visibility = self._by_identity[identity] = _ReviewedUserVisibility(
                review=lambda: self._review(user), version=self._version, interval=self._interval
            )
            while len(self._by_identity) > _MAX_IDENTITIES:
                self._by_identity.popitem(last=False)
        self._by_identity.move_to_end(identity)
        await visibility.refresh_if_expired()
        return visibility

    async def _review(self, user: User) -> VisibleObjects:
        if await self._is_allowed(user, ""):
            return EVERYTHING
        existing = list(self._existing_namespaces())
        allowed = await asyncio.gather(*(self._is_allowed(user, namespace) for namespace in existing))
        namespaces = frozenset(namespace for namespace, is_allowed in zip(existing, allowed, strict=True) if is_allowed)
        keys = [key for key in self._related(namespaces) if key.namespace not in namespaces]
        shown = await asyncio.gather(*(self._is_shown(user, key) for key in keys))
        return VisibleObjects(namespaces, frozenset(key for key, is_shown in zip(keys, shown, strict=True) if is_shown))

    async def _is_allowed(self, user: User, namespace: str) -> bool:
        """True if the user meets one of the criteria in the namespace, or with '' for every namespace and name."""
        for criterion in self._criteria:
            name = namespace if criterion.named is NamedObjects.NAMESPACES else ""
            if await self._may_get(user, criterion, Key(namespace, name)):
                return True
        return False

    async def _is_shown(self, user: User, key: Key) -> bool:
        """True if the user may `get` a single object."""
        for criterion in self._criteria:
            if criterion.named is NamedObjects.OBJECTS and await self._may_get(user, criterion, key):
                return True
        return False

    async def _may_get(self, user: User, criterion: VisibilityCriterion, key: Key) -> bool:
        attributes = AccessAttributes(
            user=user,
            verb="get",
            group=criterion.group,
            resource=criterion.resource,
            namespace=key.namespace,
            name=key.name,
        )
        async with self._slots:
            return (await self._authorizer.authorize(attributes)).allowed


def _identity_of(user: User) -> Hashable:
    """All that a review says of the user: an authorizer may decide by the extra fields, such as a token's scopes."""
    return identity_of(user), user.uid, tuple(sorted(user.extra.items()))


class _ReviewedUserVisibility:
    def __init__(
        self, *, review: Callable[[], Awaitable[VisibleObjects]], version: Callable[[], int], interval: float
    ) -> None:
        self._review = review
        self._version = version
        self._interval = interval
        self._visible = VisibleObjects()
        self._past = deque[tuple[float, VisibleObjects]]()
        self._known_since = float("inf")
        self._refreshed_at = float("-inf")
        self._refreshing: asyncio.Future[None] | None = None
        self._callbacks: dict[int, Callable[[VisibilityChange], None]] = {}
        self._next = 0
        self._refresh_task: asyncio.Task[None] | None = None

    @property
    def visible(self) -> VisibleObjects:
        return self._visible

    def change_since(self, rv: int, sent: tuple[float, float]) -> VisibilityChange | None:
        """Before the first review, its result counts as the visibility: the client got its list from here, or moments
        ago from another replica."""
        first, last = sent
        if last < self._known_since:
            return None
        visible = PastVisibility(self._visible)
        for until, earlier in reversed(self._past):
            if until < first - MARGIN_SECONDS:
                break
            if until <= last:
                visible.record()
            visible.replace(earlier)
        visible.record()
        return VisibilityChange(visible.ever, visible.always, self._visible, self._version())

    def subscribe(self, callback: Callable[[VisibilityChange], None]) -> Callable[[], None]:
        number = self._next = self._next + 1
        self._callbacks[number] = callback
        if self._refresh_task is None:
            self._refresh_task = asyncio.create_task(self._refresh_periodically(), name="refresh-visibility")

        def end() -> None:
            self._callbacks.pop(number, None)
            if not self._callbacks and self._refresh_task is not None:
                self._refresh_task.cancel()
                self._refresh_task = None

        return end

    async def refresh_if_expired(self) -> None:
        """Sends the reviews again unless the result is still valid. Raises StatusError."""
        if time.monotonic() < self._refreshed_at + self._interval:
            return
        if self._refreshing is None:
            self._refreshing = asyncio.ensure_future(self._refresh())
            self._refreshing.add_done_callback(self._on_refreshed)
        await asyncio.shield(self._refreshing)

    def _on_refreshed(self, refreshing: asyncio.Future[None]) -> None:
        self._refreshing = None
        # retrieve the exception here, since all waiting callers may have been cancelled
        with suppress(asyncio.CancelledError):
            refreshing.exception()

    async def _refresh(self) -> None:
        started = time.monotonic()
        found = await self._review()
        before, self._visible = self._visible, found
        self._refreshed_at = started
        self._remember(before, time.monotonic())
        if before != found:
            change = VisibilityChange(before, before, found, self._version())
            for callback in tuple(self._callbacks.values()):
                callback(change)

    def _remember(self, before: VisibleObjects, until: float) -> None:
        if self._known_since > until:
            self._known_since = until
        elif before != self._visible:
            self._past.append((until, before))
        while self._past and self._past[0][0] < until - _REMEMBERED_SECONDS:
            self._known_since = self._past.popleft()[0]

    async def _refresh_periodically(self) -> None:
        while True:
            await asyncio.sleep(self._interval)
            try:
                await self.refresh_if_expired()
            except StatusError as error:
                # the last result stays valid until the next successful review
                _logger.debug("cannot review access to namespaces: %s", error)
