"""A self-signed serving certificate in a Secret of the cluster, with its CA written to the APIServices.

Every replica runs this code. All steps are idempotent and guarded by resourceVersions, so no leader is needed.
"""

from __future__ import annotations

import asyncio
import base64
import logging
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import Enum
from typing import Any

from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.serialization import Encoding
from cryptography.x509 import Certificate

from apiserver.meta.errors import ServiceUnavailable, StatusError
from apiserver.meta.resource import Object
from apiserver.patch.media_types import MERGE_PATCH
from apiserver.tls import certificates
from apiserver.tls.certificates import KeyPair
from registry.cluster.interface import APISERVICES, SECRETS, ClusterClient

SECRET_NAME = "tenant-apiserver-serving-cert"
_CA_NAME = "tenant-apiserver-ca"
_FIELD_MANAGER = "tenant-apiserver"
_PERIOD_SECONDS = 15.0
_ATTEMPTS = 5

_logger = logging.getLogger(__name__)


class Renewal(Enum):
    """The part of the Secret to renew; a new CA requires a new certificate."""

    NOTHING = 0
    CERTIFICATE = 1
    EVERYTHING = 2


@dataclass(frozen=True, slots=True)
class CertificateMaterial:
    """The contents of the Secret. `bundle` is the CA followed by earlier CAs that have not expired, so that replicas
    that still serve an older certificate stay trusted."""

    ca: KeyPair
    bundle: bytes
    serving: KeyPair


@dataclass(frozen=True, slots=True, kw_only=True)
class ServiceReference:
    """The Service that the APIServices refer to."""

    namespace: str
    name: str

    @property
    def dns_names(self) -> list[str]:
        """Names in the serving certificate; the first one is the name that the aggregator verifies (WIRE-C2)."""
        full = f"{self.name}.{self.namespace}"
        return [f"{full}.svc", full, f"{full}.svc.cluster.local", "localhost", "127.0.0.1"]


def parse_material(secret: Object | None) -> CertificateMaterial | None:
    """Parses the contents of the Secret; None if it is missing or unusable."""
    data = (secret or {}).get("data") or {}
    try:
        bundle, ca_key, certificate, key = (
            base64.b64decode(data[name], validate=True) for name in ("ca.crt", "ca.key", "tls.crt", "tls.key")
        )
        ca_certificate = _pem(certificates.parse_bundle(bundle)[:1])
        pairs = KeyPair(ca_certificate, ca_key), KeyPair(certificate, key)
        if not all(certificates.is_matching_pair(pair) for pair in pairs):
            return None
    except (KeyError, TypeError, ValueError, UnsupportedAlgorithm):
        return None
    return CertificateMaterial(ca=pairs[0], bundle=bundle, serving=pairs[1])


def plan_renewal(secret: Object | None, now: datetime, names: Sequence[str]) -> Renewal:
    """Decides what to renew: anything past two thirds of its lifetime, or a certificate that does not cover `names`."""
    material = parse_material(secret)
    if material is None or certificates.should_renew(material.ca.certificate, now):
        return Renewal.EVERYTHING
    certificate = material.serving.certificate
    matches = certificates.valid_for_names(certificate, names) and certificates.issued_by(
        certificate, material.ca.certificate
    )
    if not matches or certificates.should_renew(certificate, now):
        return Renewal.CERTIFICATE
    return Renewal.NOTHING


def renew(
    material: CertificateMaterial | None, renewal: Renewal, now: datetime, names: Sequence[str]
) -> CertificateMaterial:
    """Returns `material` with the parts that `renewal` names replaced by new ones."""
    if material is not None and renewal is Renewal.NOTHING:
        return material
    if material is not None and renewal is Renewal.CERTIFICATE:
        return CertificateMaterial(material.ca, material.bundle, certificates.make_serving(material.ca, names, now=now))
    ca = certificates.make_ca(_CA_NAME, now=now)
    earlier = certificates.parse_bundle(material.bundle) if material is not None else []
    valid = _pem([each for each in earlier if each.not_valid_after_utc > now])
    return CertificateMaterial(ca, ca.certificate + valid, certificates.make_serving(ca, names, now=now))


class ServingCertificate:
    """Maintains the Secret, and the caBundle of those named APIServices that refer to our Service."""

    def __init__(
        self,
        *,
        cluster: ClusterClient,
        service: ServiceReference,
        api_services: Sequence[str],
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self._cluster = cluster
        self._service = service
        self._api_services = tuple(api_services)
        self._now = now
        self._sleep = sleep
        self._foreign: set[str] = set()

    async def ensure(self) -> KeyPair:
        """Returns the key pair to serve with, after its CA is in the APIServices. Raises StatusError,
        ClusterUnreachable."""
        material = await self._stored()
        for name in self._api_services:
            await self._write_ca_bundle(name, material.bundle)
        return material.serving

    async def follow(self, replace: Callable[[KeyPair], None]) -> None:
        """Calls `ensure` periodically and passes each key pair to `replace`, which may raise ValueError or OSError."""
        failing = False
        while True:
            await self._sleep(_PERIOD_SECONDS)
            try:
                replace(await self.ensure())
                failing = False
            except (StatusError, ValueError, OSError) as error:
                if not failing:
                    _logger.warning("cannot check or renew the serving certificate, keeping the current one: %s", error)
                failing = True

    async def _stored(self) -> CertificateMaterial:
        """Reads the Secret and renews it if due. If several replicas renew at once, the first write wins."""
        for _ in range(_ATTEMPTS):
            if (material := await self._renew_if_due()) is not None:
                return material
        raise ServiceUnavailable(
            f"Secret {self._service.namespace}/{SECRET_NAME} keeps being changed by others", retry_after=1
        )

    async def _renew_if_due(self) -> CertificateMaterial | None:
        """Returns None if another writer changed the Secret at the same time."""
        names, now = self._service.dns_names, self._now()
        secret = await self._get_secret()
        material = parse_material(secret)
        renewal = plan_renewal(secret, now, names)
        if material is not None and renewal is Renewal.NOTHING:
            return material
        fresh = await asyncio.to_thread(renew, material, renewal, now, names)
        try:
            await self._write(secret, fresh)
        except StatusError as error:
            if error.code == 409:
                return None
            raise
        part = "a serving certificate" if renewal is Renewal.CERTIFICATE else "a CA and a serving certificate"
        _logger.info("stored %s in Secret %s/%s", part, self._service.namespace, SECRET_NAME)
        return fresh

    async def _get_secret(self) -> Object | None:
        try:
            return await self._cluster.get(SECRETS, self._service.namespace, SECRET_NAME)
        except StatusError as error:
            if error.code == 404:
                return None
            raise

    async def _write(self, secret: Object | None, material: CertificateMaterial) -> None:
        data = {
            "ca.crt": material.bundle,
            "ca.key": material.ca.key,
            "tls.crt": material.serving.certificate,
            "tls.key": material.serving.key,
        }
        encoded = {name: base64.b64encode(content).decode() for name, content in data.items()}
        if secret is not None:
            changed = {**secret, "data": {**(secret.get("data") or {}), **encoded}}
            await self._cluster.update(SECRETS, changed, field_manager=_FIELD_MANAGER)
            return
        metadata = {"name": SECRET_NAME, "namespace": self._service.namespace}
        created = {"apiVersion": "v1", "kind": "Secret", "type": "kubernetes.io/tls", "metadata": metadata}
        await self._cluster.create(SECRETS, {**created, "data": encoded}, field_manager=_FIELD_MANAGER)

    async def _write_ca_bundle(self, name: str, bundle: bytes) -> None:
        """Writes the bundle to an APIService, unless it is missing or refers to another Service."""
        try:
            found = await self._cluster.get(APISERVICES, "", name)
        except StatusError as error:
            if error.code == 404:
                return
            raise
        if not self._is_ours(found):
            return
        encoded = base64.b64encode(bundle).decode()
        spec = found["spec"]
        if spec.get("caBundle") == encoded and not spec.get("insecureSkipTLSVerify"):
            return
        # the uid and resourceVersion make the patch fail if the APIService was changed to another Service meanwhile
        own = {key: found["metadata"][key] for key in ("uid", "resourceVersion")}
        patch: dict[str, Any] = {"metadata": own, "spec": {"caBundle": encoded, "insecureSkipTLSVerify": None}}
        try:
            await self._cluster.patch(
                APISERVICES, "", name, patch, content_type=MERGE_PATCH, field_manager=_FIELD_MANAGER
            )
        except StatusError as error:
            # another replica was faster, or the owner changed the object: the next period reads it again
            if error.code != 409:
                raise

    def _is_ours(self, api_service: Object) -> bool:
        name = api_service["metadata"]["name"]
        service = (api_service.get("spec") or {}).get("service") or {}
        ours = (service.get("namespace"), service.get("name")) == (self._service.namespace, self._service.name)
        if ours:
            self._foreign.discard(name)
        elif name not in self._foreign:
            self._foreign.add(name)
            where = f"{service.get('namespace')}/{service.get('name')}" if service else "the API server itself"
            _logger.warning("APIService %s refers to %s, not to our Service: leaving it unchanged", name, where)
        return ours


def _pem(chain: Sequence[Certificate]) -> bytes:
    return b"".join(each.public_bytes(Encoding.PEM) for each in chain)
