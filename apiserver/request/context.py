"""The context of a request, which filters, handlers, admission and storage share."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field

from aiohttp import web

from apiserver.request.bytes_in_flight import UNLIMITED, Reservation
from apiserver.request.request_info import Query, RequestInfo

WRITE_SECONDS = 34.0
"""The timeout of a write."""
# At most 4096 characters of warnings are sent (WIRE-I11), and each warning has at least one.
_MAX_WARNINGS = 4096


@dataclass(frozen=True, slots=True)
class User:
    """An authenticated user. `groups` keep the order of the credential; the keys of `extra` are decoded."""

    name: str
    uid: str = ""
    groups: tuple[str, ...] = ()
    extra: Mapping[str, tuple[str, ...]] = field(default_factory=dict)


ANONYMOUS = User(name="system:anonymous", groups=("system:unauthenticated",))


@dataclass(slots=True, kw_only=True)
class RequestContext:
    """The state of one request. Filters fill it in; after them only warnings and annotations change."""

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
    """The timeout of the request in seconds."""
    reservation: Reservation = UNLIMITED
    """The memory that the request may use for its body."""
    webhook_seconds: float = 0.0
    """The seconds spent in webhooks so far."""

    @property
    def deadline(self) -> float:
        """The end of the timeout on the monotonic clock."""
        return self.received_at + self.timeout

    def warn(self, text: str) -> None:
        """Adds a Warning header to the response, unless the text was added before (WIRE-I11)."""
        if len(self.warnings) < _MAX_WARNINGS and text not in self.warnings:
            self.warnings.append(text)


Handler = Callable[[RequestContext], Awaitable[web.StreamResponse]]
Filter = Callable[[RequestContext, Handler], Awaitable[web.StreamResponse]]


def compose(filters: Sequence[Filter], handler: Handler) -> Handler:
    """Wraps `handler` in `filters`; the first filter runs first."""
    for each in reversed(filters):
        handler = _wrap(each, handler)
    return handler


def _wrap(outer: Filter, inner: Handler) -> Handler:
    return lambda context: outer(context, inner)
