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
    """Reload the pair whenever its files change, until cancelled. An incomplete pair is read again later."""
    loaded = None
    while True:
        current = await asyncio.to_thread(_file_versions, certificate, key)
        if current is not None and current != loaded:
            try:
                tls.replace_certificate(await asyncio.to_thread(read_pair, certificate, key))
                loaded = current
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
    loaded = None
    while True:
        current = await asyncio.to_thread(_file_versions, path)
        if current is not None and current != loaded:
            try:
                changed(await asyncio.to_thread(path.read_bytes))
                loaded = current
            except (OSError, ValueError) as error:
                _LOG.warning("%s cannot be reloaded: %s", path.name, error)
        await sleep(_POLL_SECONDS)


def _file_versions(*paths: Path) -> tuple[tuple[int, int, int], ...] | None:
    """A value that changes with the files, None if one is missing. It includes the inodes, because Kubernetes updates a
    mounted Secret by replacing a symbolic link."""
    try:
        stats = [path.stat() for path in paths]
    except OSError:
        return None
    return tuple((stat.st_mtime_ns, stat.st_size, stat.st_ino) for stat in stats)
