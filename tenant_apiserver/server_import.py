"""The import of a server's modules without garbage collections. For `__main__`, before a command imports its server."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def without_collections() -> Iterator[None]:
    """An import makes hundreds of thousands of objects and hardly any garbage: collections would be 6.5 % of its
    instructions. Its objects are excluded from later ones."""
    gc.disable()
    try:
        yield
        gc.freeze()
    finally:
        gc.enable()
