"""Where the serving certificate comes from: files that are given, a directory of our own, or a Secret of the host."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

from apiserver.meta.errors import StatusError
from apiserver.tls.certificates import KeyPair
from apiserver.tls.file_reload import follow_files, read_pair
from apiserver.tls.server_context import ServerTls
from tenant_apiserver.certificates.cluster_secret import ServingCertificate
from tenant_apiserver.certificates.local_pki import LocalPki

_RETRY_SECONDS = 2.0
_RENEWAL_SECONDS = 3600.0

_logger = logging.getLogger("tenant_apiserver")


class CertificateSource(Protocol):
    async def obtain(self) -> KeyPair:
        """What to serve with. Raises OSError or ValueError if it cannot be read."""
        ...

    async def follow(self, tls: ServerTls) -> None:
        """Keep the listener's pair up to date, for ever."""
        ...


class FileCertificate:
    """--tls-cert-file and --tls-private-key-file, read again when they change."""

    def __init__(self, certificate: Path, key: Path) -> None:
        self._certificate = certificate
        self._key = key

    async def obtain(self) -> KeyPair:
        return await asyncio.to_thread(read_pair, self._certificate, self._key)

    async def follow(self, tls: ServerTls) -> None:
        await follow_files(self._certificate, self._key, tls)


class SelfManagedCertificate:
    """--cert-dir, and the data directory of the embedded host: a CA and what it signs, renewed in time."""

    def __init__(self, pki: LocalPki, names: Sequence[str]) -> None:
        self._pki = pki
        self._names = tuple(names)

    async def obtain(self) -> KeyPair:
        return await asyncio.to_thread(self._pki.serving, self._names)

    async def follow(self, tls: ServerTls) -> None:
        while True:
            await asyncio.sleep(_RENEWAL_SECONDS)
            try:
                tls.replace_certificate(await self.obtain())
            except (OSError, ValueError) as error:
                _logger.warning("the serving certificate cannot be renewed: %s", error)


class SecretCertificate:
    """The Secret that all replicas share; the host must be there before the first certificate is."""

    def __init__(self, certificate: ServingCertificate) -> None:
        self._certificate = certificate

    async def obtain(self) -> KeyPair:
        while True:
            try:
                return await self._certificate.ensure()
            except StatusError as error:
                _logger.warning("no serving certificate yet: %s", error)
            await asyncio.sleep(_RETRY_SECONDS)

    async def follow(self, tls: ServerTls) -> None:
        await self._certificate.follow(tls.replace_certificate)
