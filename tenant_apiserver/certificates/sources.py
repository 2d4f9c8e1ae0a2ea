"""Sources of the serving certificate: files named by flags, a directory with a local CA, or a Secret in the cluster."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

from apiserver.meta.errors import StatusError
from apiserver.tls.certificates import KeyPair
from apiserver.tls.file_reload import follow_files
from apiserver.tls.server_context import ServerTls
from registry.cluster.interface import reason_for_log
from tenant_apiserver.certificates.cluster_secret import ServingCertificate
from tenant_apiserver.certificates.local_pki import LocalPki
from tenant_apiserver.certificates.pem_files import read_serving_pair

_RETRY_SECONDS = 2.0
_RENEWAL_SECONDS = 3600.0

_logger = logging.getLogger("tenant_apiserver")


class CertificateSource(Protocol):
    """Provides the serving certificate and keeps it current."""

    async def obtain(self) -> KeyPair:
        """Returns the first key pair. Raises OSError or ValueError if it cannot be read."""
        ...

    async def follow(self, tls: ServerTls) -> None:
        """Replaces the listener's key pair whenever it changes, until cancelled."""
        ...


class FileCertificate:
    """The files of --tls-cert-file and --tls-private-key-file, reloaded when they change."""

    def __init__(self, certificate: Path, key: Path) -> None:
        self._certificate = certificate
        self._key = key

    async def obtain(self) -> KeyPair:
        return await asyncio.to_thread(read_serving_pair, self._certificate, self._key)

    async def follow(self, tls: ServerTls) -> None:
        await follow_files(self._certificate, self._key, tls)


class SelfManagedCertificate:
    """A certificate signed by the CA in --cert-dir or in the data directory of `standalone`, renewed before it
    expires."""

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
                _logger.warning("cannot renew the serving certificate, keeping the current one: %s", error)


class SecretCertificate:
    """The certificate in a Secret that all replicas share; `obtain` waits until the cluster is reachable."""

    def __init__(self, certificate: ServingCertificate) -> None:
        self._certificate = certificate

    async def obtain(self) -> KeyPair:
        logged = ""
        while True:
            try:
                return await self._certificate.ensure()
            except StatusError as error:
                reason = reason_for_log(error)
                if reason != logged:
                    text = "cannot obtain the serving certificate, trying again every %d s: %s"
                    _logger.warning(text, _RETRY_SECONDS, reason)
                    logged = reason
            await asyncio.sleep(_RETRY_SECONDS)

    async def follow(self, tls: ServerTls) -> None:
        await self._certificate.follow(tls.replace_certificate)
