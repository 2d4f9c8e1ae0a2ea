"""Limits the duration of requests to 60 s, writes to 34 s, or less if the query has `timeout`; that of watches and
streams is not limited."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Mapping
from typing import Final

from aiohttp import web

from apiserver.meta.errors import BadRequest, Timeout
from apiserver.request.context import WRITE_SECONDS, Handler, RequestContext

_LIMIT: Final = 60.0
_WRITES = frozenset({"create", "update", "patch", "delete", "deletecollection"})
# Go accepts both the micro sign and the Greek mu
_UNITS: Mapping[str, float] = {
    "ns": 1e-9,
    "us": 1e-6,
    "\u00b5s": 1e-6,
    "\u03bcs": 1e-6,
    "ms": 1e-3,
    "s": 1.0,
    "m": 60.0,
    "h": 3600.0,
}
# possessive: every way to divide a long number would be tried otherwise, before the user is known (ATTACK-19)
_NUMBER = r"(?:[0-9]++\.?+[0-9]*+|\.[0-9]++)"
_UNIT = "(?:ns|us|\u00b5s|\u03bcs|ms|s|m|h)"
_TERM = re.compile(f"(?P<number>{_NUMBER})(?P<unit>{_UNIT})")
_DURATION = re.compile(f"(?P<sign>[+-]?)(?P<terms>0|(?:{_NUMBER}{_UNIT})+)", re.ASCII)


class RequestDeadline:
    """Ends requests that take too long with a 504 (WIRE-D29, WIRE-D72, WIRE-I9).

    A write whose client disconnects continues until it finishes or reaches its deadline.
    """

    def __init__(self, *, limit: float = _LIMIT, write_limit: float = WRITE_SECONDS) -> None:
        self._limit = limit
        self._write_limit = write_limit
        self._abandoned: set[asyncio.Task[web.StreamResponse]] = set()

    async def __call__(self, context: RequestContext, next: Handler) -> web.StreamResponse:
        info = context.info
        if info.is_long_running:
            return await next(context)
        limit = self._limit
        if "timeout" in context.query:
            limit = requested_timeout(context.query.get("timeout"), limit)
        if info.is_resource and info.verb in _WRITES:
            return await self._write(context, next, min(limit, self._write_limit))
        return await _with_timeout(context, next, limit, "the allotted timeout")

    async def _write(self, context: RequestContext, next: Handler, limit: float) -> web.StreamResponse:
        context.timeout = limit
        task = asyncio.ensure_future(
            _with_timeout(context, next, limit, "requested timeout - context deadline exceeded")
        )
        try:
            return await asyncio.shield(task)
        except asyncio.CancelledError:
            self._abandoned.add(task)
            task.add_done_callback(self._forget)
            raise

    def _forget(self, task: asyncio.Task[web.StreamResponse]) -> None:
        self._abandoned.discard(task)
        if not task.cancelled():
            # no one waits for the result; this keeps asyncio from logging the exception
            task.exception()


async def _with_timeout(context: RequestContext, next: Handler, limit: float, timeout_name: str) -> web.StreamResponse:
    deadline = asyncio.timeout(limit)
    try:
        async with deadline:
            return await next(context)
    except TimeoutError:
        if not deadline.expired():
            raise
        raise Timeout(f"request did not complete within {timeout_name}") from None
    finally:
        # The deadline knows its task, and a task keeps the frames of its exception: this one, with the deadline, and
        # those with the request's body. All would stay until a garbage collection.
        del deadline


def requested_timeout(text: str, limit: float) -> float:
    """The query parameter `timeout`, a Go duration, in seconds, or `limit` if it is greater or not positive. Raises
    BadRequest (WIRE-D72)."""
    found = _DURATION.fullmatch(text)
    if found is None:
        raise BadRequest(f'invalid timeout specified in the request URL - time: invalid duration "{text}"')
    seconds = sum(float(term["number"]) * _UNITS[term["unit"]] for term in _TERM.finditer(found["terms"]))
    if found["sign"] == "-":
        seconds = -seconds
    return seconds if 0 < seconds <= limit else limit
