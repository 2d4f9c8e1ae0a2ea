"""What a request carries through filters, handlers, admission and storage."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field

from aiohttp import web

from apiserver.request.request_info import Query, RequestInfo

WRITE_SECONDS = 34.0
"""How long a write may take."""
# Each takes at least one of the 4096 characters of warnings that are sent (WIRE-I11): more are never seen by anybody.
_MOST_WARNINGS = 4096


@dataclass(frozen=True, slots=True)
class User:
    """An authenticated caller. `groups` are in the order in which they were given; `extra` keys are decoded."""

    name: str
    uid: str = ""
    groups: tuple[str, ...] = ()
    extra: Mapping[str, tuple[str, ...]] = field(default_factory=dict)


ANONYMOUS = User(name="system:anonymous", groups=("system:unauthenticated",))


@dataclass(slots=True, kw_only=True)
class RequestContext:
    """One request on its way. Filters fill it in; from the handlers inwards only warnings and annotations change."""

    http: web.Request
    info: RequestInfo
    query: Query
    audit_id: str
    user: User = ANONYMOUS
    impersonator: User | None = None
    received_at: float = field(default_factory=time.monotonic)
    warnings: list[str] = field(default_factory=list)
    annotations: dict[str, str] = field(default_factory=dict)
    """Audit annotations."""
    timeout: float = WRITE_SECONDS
    """Seconds that the request may take."""
    webhook_seconds: float = 0.0
    """What webhooks took of them."""

    @property
    def deadline(self) -> float:
        """When the request has to be done, on the monotonic clock."""
        return self.received_at + self.timeout

    def warn(self, text: str) -> None:
        """Tell the caller something in a Warning header, once (WIRE-I11)."""
        if len(self.warnings) < _MOST_WARNINGS and text not in self.warnings:
            self.warnings.append(text)


Handler = Callable[[RequestContext], Awaitable[web.StreamResponse]]
Filter = Callable[[RequestContext, Handler], Awaitable[web.StreamResponse]]


def compose(filters: Sequence[Filter], handler: Handler) -> Handler:
    """`handler` behind `filters`; the first filter runs first."""
    for each in reversed(filters):
        handler = _behind(each, handler)
    return handler


def _behind(outer: Filter, inner: Handler) -> Handler:
    return lambda context: outer(context, inner)
