"""Calls of the cluster's review endpoints (TokenReview, SubjectAccessReview) with timeouts and retries (WIRE-A28)."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from apiserver.meta.errors import ServiceUnavailable, StatusError
from apiserver.meta.resource import Object

ReviewCall = Callable[[Object], Awaitable[Object]]
"""Posts a review and returns the response of the cluster. Raises StatusError."""


class ReviewRefused(ServiceUnavailable):
    """The cluster does not let this server review. That is no outage: no earlier decision stands in for it."""


_RETRIED = (429, 500, 504)
_CREATED = 201


@dataclass(frozen=True, slots=True, kw_only=True)
class ReviewBackoff:
    """`steps` attempts of `attempt_timeout` seconds each; the delay between them grows from `initial_delay` by
    `factor`."""

    attempt_timeout: float = 10.0
    initial_delay: float = 0.5
    factor: float = 1.5
    jitter: float = 0.2
    steps: int = 5


def count_responses(review: ReviewCall, count: Callable[[int | None], None]) -> ReviewCall:
    """Wraps `review` so that `count` is called with the status code of each response, None if there was none."""

    async def post_and_count(body: Object) -> Object:
        code: int | None = None
        try:
            response = await review(body)
            code = _CREATED
            return response
        except ServiceUnavailable:
            raise
        except StatusError as error:
            code = error.code
            raise
        finally:
            count(code)

    return post_and_count


async def post_with_retries(review: ReviewCall, body: Object, backoff: ReviewBackoff) -> Object:
    """Posts a review, with retries. Raises StatusError; ServiceUnavailable if an attempt times out.

    A 503 is not retried: the caller may have a cached decision, and otherwise the client gets a Retry-After.
    """
    delay = backoff.initial_delay
    for left in reversed(range(backoff.steps)):
        try:
            async with asyncio.timeout(backoff.attempt_timeout):
                return await review(body)
        except TimeoutError as error:
            raise ServiceUnavailable("the cluster does not answer", retry_after=1) from error
        except StatusError as error:
            if error.code not in _RETRIED or not left:
                raise
            wait = max(delay, float(error.retry_after))
        await asyncio.sleep(wait * (1 + random.random() * backoff.jitter))
        delay *= backoff.factor
    raise ValueError("a backoff needs at least one step")
