"""Errors of the cluster about the object that it stores become errors about the object that the client knows."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from apiserver.meta.errors import StatusError


@contextmanager
def translated_errors(translate: Callable[[StatusError], StatusError]) -> Iterator[None]:
    """Raises instead of a StatusError of the block what `translate` makes of it, which may be the same error."""
    try:
        yield
    except StatusError as error:
        translated = translate(error)
        try:
            if translated is error:
                raise
            raise translated from error
        finally:
            # the traceback of `error` and this frame would keep each other, and the written object, until a garbage
            # collection
            del translated
