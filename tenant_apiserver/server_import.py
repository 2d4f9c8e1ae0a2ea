"""Makes the import of a server's modules cheaper. For `__main__`, before a command imports its server."""

from __future__ import annotations

import gc
import os
from collections.abc import Iterator
from contextlib import contextmanager

_SYSTEM_CAS = "SSL_CERT_FILE"


@contextmanager
def cheaper_import() -> Iterator[None]:
    """Imports inside take a sixth less processor time. Afterwards, their objects are excluded from collection."""
    gc.disable()
    try:
        with _no_system_cas():
            import aiohttp  # noqa: F401
        yield
        gc.freeze()
    finally:
        gc.enable()


@contextmanager
def _no_system_cas() -> Iterator[None]:
    """aiohttp reads the system's CAs twice when it is imported, for the contexts of connections that have none of their
    own. All of ours have one, and one without would trust no certificate."""
    before = os.environ.get(_SYSTEM_CAS)
    os.environ[_SYSTEM_CAS] = os.devnull
    try:
        yield
    finally:
        if before is None:
            del os.environ[_SYSTEM_CAS]
        else:
            os.environ[_SYSTEM_CAS] = before
