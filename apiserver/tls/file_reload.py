"""Reloads certificates and CA bundles when their files change."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from pathlib import Path

from apiserver.tls.certificates import KeyPair
from apiserver.tls.server_context import ServerTls

_LOG = logging.getLogger("apiserver.tls")
_POLL_SECONDS = 5.0

Sleep = Callable[[float], Awaitable[object]]


async def follow_files(certificate: Path, key: Path, tls: ServerTls, *, sleep: Sleep = asyncio.sleep) -> None:
    """Reload the pair whenever its files change, until cancelled. A pair that is half written is read again later."""
    seen = None
    while True:
        now = await asyncio.to_thread(_stamp, certificate, key)
        if now is not None and now != seen:
            try:
                tls.replace_certificate(await asyncio.to_thread(read_pair, certificate, key))
                seen = now
            except (OSError, ValueError) as error:
                _LOG.warning("the serving certificate cannot be reloaded: %s", error)
        await sleep(_POLL_SECONDS)


def read_pair(certificate: Path, key: Path) -> KeyPair:
    """Raises OSError."""
    return KeyPair(certificate.read_bytes(), key.read_bytes())


async def follow_file(path: Path, changed: Callable[[bytes], None], *, sleep: Sleep = asyncio.sleep) -> None:
    """Call `changed` with the content of a file whenever it changes, until cancelled.

    `changed` may raise ValueError to reject the content; it is then called again at the next poll.
    """
    seen = None
    while True:
        now = await asyncio.to_thread(_stamp, path)
        if now is not None and now != seen:
            try:
                changed(await asyncio.to_thread(path.read_bytes))
                seen = now
            except (OSError, ValueError) as error:
                _LOG.warning("%s cannot be reloaded: %s", path.name, error)
        await sleep(_POLL_SECONDS)


def _stamp(*paths: Path) -> tuple[tuple[int, int, int], ...] | None:
    """A value that differs once a file changed, None if one is missing. Kubernetes replaces mounted Secrets by a
    symbolic link, so the inode counts too."""
    try:
        stats = [path.stat() for path in paths]
    except OSError:
        return None
    return tuple((stat.st_mtime_ns, stat.st_size, stat.st_ino) for stat in stats)
