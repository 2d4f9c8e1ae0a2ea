"""The serving certificate in a Secret: when it is renewed, which APIServices get its CA, and races of replicas."""

from __future__ import annotations

import asyncio
import base64
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from apiserver.meta.resource import Key
from apiserver.tls import certificates
from apiserver.tls.certificates import KeyPair
from registry.cluster.interface import APISERVICES, SECRETS, ClusterResource
from tenant_apiserver.certificates.cluster_secret import (
    SECRET_NAME,
    CertificateMaterial,
    Renewal,
    ServiceReference,
    ServingCertificate,
    parse_material,
    plan_renewal,
    renew,
)
from tests.fake_cluster import FakeCluster

NOW = datetime(2026, 1, 1, tzinfo=UTC)
SERVICE = ServiceReference(namespace="cozy-system", name="tenant-apiserver")
OURS = "v1alpha1.apps.cozystack.io"


def api_service(name: str = OURS, **spec: Any) -> dict[str, Any]:
    service = {"namespace": SERVICE.namespace, "name": SERVICE.name, "port": 443}
    return {"metadata": {"name": name}, "spec": {"service": service, **spec}}


def serving_certificate(cluster: FakeCluster, now: datetime = NOW, **changes: Any) -> ServingCertificate:
    return ServingCertificate(cluster=cluster, service=SERVICE, api_services=[OURS], now=lambda: now, **changes)


def bundle_in(cluster: FakeCluster, name: str = OURS) -> bytes:
    found = cluster.peek(APISERVICES, "", name)
    assert found is not None
    return base64.b64decode(found["spec"].get("caBundle") or "")


def stored(cluster: FakeCluster) -> CertificateMaterial:
    material = parse_material(cluster.peek(SECRETS, SERVICE.namespace, SECRET_NAME))
    assert material is not None
    return material


def secret_of(material: CertificateMaterial, **changes: bytes) -> dict[str, Any]:
    data = {
        "ca.crt": material.bundle,
        "ca.key": material.ca.key,
        "tls.crt": material.serving.certificate,
        "tls.key": material.serving.key,
        **{name.replace("_", "."): content for name, content in changes.items()},
    }
    return {
        "metadata": {"name": SECRET_NAME, "namespace": SERVICE.namespace},
        "data": {name: base64.b64encode(content).decode() for name, content in data.items()},
    }


@pytest.fixture(scope="module")
def material() -> CertificateMaterial:
    return renew(None, Renewal.EVERYTHING, NOW, SERVICE.dns_names)


@pytest.mark.parametrize(
    ("age", "expected"),
    [
        pytest.param(timedelta(0), Renewal.NOTHING, id="fresh"),
        pytest.param(timedelta(days=200), Renewal.NOTHING, id="before two thirds of its lifetime"),
        pytest.param(timedelta(days=250), Renewal.CERTIFICATE, id="after two thirds of the certificate's lifetime"),
        pytest.param(timedelta(days=400), Renewal.CERTIFICATE, id="certificate expired"),
        pytest.param(timedelta(days=2500), Renewal.EVERYTHING, id="after two thirds of the CA's lifetime"),
    ],
)
def test_the_age_of_certificates_determines_what_is_renewed(
    material: CertificateMaterial, age: timedelta, expected: Renewal
) -> None:
    assert plan_renewal(secret_of(material), NOW + age, SERVICE.dns_names) is expected


def test_a_missing_secret_is_created_completely() -> None:
    assert plan_renewal(None, NOW, SERVICE.dns_names) is Renewal.EVERYTHING


def test_another_service_name_requires_a_new_certificate(material: CertificateMaterial) -> None:
    elsewhere = ServiceReference(namespace="cozy-system", name="renamed")
    assert plan_renewal(secret_of(material), NOW, elsewhere.dns_names) is Renewal.CERTIFICATE


@pytest.mark.parametrize("field", ["ca.crt", "ca.key", "tls.crt", "tls.key"])
@pytest.mark.parametrize("content", [pytest.param(b"", id="empty"), pytest.param(b"not PEM", id="not PEM")])
def test_an_unreadable_secret_is_renewed_completely(material: CertificateMaterial, field: str, content: bytes) -> None:
    secret = secret_of(material)
    secret["data"][field] = base64.b64encode(content).decode()
    assert plan_renewal(secret, NOW, SERVICE.dns_names) is Renewal.EVERYTHING


def test_a_key_that_does_not_match_its_certificate_is_renewed(material: CertificateMaterial) -> None:
    other = certificates.make_serving(material.ca, SERVICE.dns_names, now=NOW)
    assert plan_renewal(secret_of(material, tls_key=other.key), NOW, SERVICE.dns_names) is Renewal.EVERYTHING


def test_a_certificate_of_another_ca_is_renewed(material: CertificateMaterial) -> None:
    other = certificates.make_serving(certificates.make_ca("other", now=NOW), SERVICE.dns_names, now=NOW)
    secret = secret_of(material, tls_crt=other.certificate, tls_key=other.key)
    assert plan_renewal(secret, NOW, SERVICE.dns_names) is Renewal.CERTIFICATE


def test_the_first_dns_name_is_the_one_that_the_aggregator_verifies() -> None:
    assert SERVICE.dns_names[0] == "tenant-apiserver.cozy-system.svc"


def test_the_old_ca_stays_trusted_until_it_expires(material: CertificateMaterial) -> None:
    later = NOW + timedelta(days=2500)
    successor = renew(material, Renewal.EVERYTHING, later, SERVICE.dns_names)
    assert successor.bundle.startswith(successor.ca.certificate)
    assert certificates.issued_by(material.serving.certificate, successor.bundle)
    last = renew(successor, Renewal.EVERYTHING, later + timedelta(days=2500), SERVICE.dns_names)
    assert not certificates.issued_by(material.serving.certificate, last.bundle)


async def test_the_first_start_creates_the_secret_and_sets_the_ca_bundle(cluster: FakeCluster) -> None:
    """R-340."""
    cluster.add(APISERVICES, api_service(insecureSkipTLSVerify=True))
    pair = await serving_certificate(cluster).ensure()
    assert pair == stored(cluster).serving
    assert certificates.issued_by(pair.certificate, bundle_in(cluster))
    found = cluster.peek(APISERVICES, "", OURS)
    assert found is not None
    assert "insecureSkipTLSVerify" not in found["spec"]


async def test_a_second_pass_writes_nothing(cluster: FakeCluster) -> None:
    cluster.add(APISERVICES, api_service())
    first = await serving_certificate(cluster).ensure()
    cluster.clear_writes()
    assert await serving_certificate(cluster).ensure() == first
    assert cluster.writes == []


async def test_an_api_service_that_refers_to_another_service_is_never_changed(
    cluster: FakeCluster, caplog: pytest.LogCaptureFixture
) -> None:
    cluster.add(APISERVICES, api_service(service={"namespace": "cozy-system", "name": "cozystack-api"}))
    certificate = serving_certificate(cluster)
    await certificate.ensure()
    await certificate.ensure()
    assert bundle_in(cluster) == b""
    assert [record.getMessage() for record in caplog.records if record.levelname == "WARNING"] == [
        f"APIService {OURS} refers to cozy-system/cozystack-api, not to our Service: leaving it unchanged"
    ]


async def test_a_local_api_service_is_never_changed(cluster: FakeCluster) -> None:
    cluster.add(APISERVICES, {"metadata": {"name": OURS}, "spec": {"group": "apps.cozystack.io"}})
    await serving_certificate(cluster).ensure()
    assert {write.resource for write in cluster.writes} == {SECRETS}


async def test_if_two_replicas_start_together_one_creates_the_secret(cluster: FakeCluster) -> None:
    cluster.add(APISERVICES, api_service())
    arrived = asyncio.Barrier(2)
    waited: set[asyncio.Task[Any] | None] = set()

    async def together(verb: str, res: ClusterResource, key: Key) -> None:
        task = asyncio.current_task()
        if verb == "create" and task not in waited:
            waited.add(task)
            await arrived.wait()

    cluster.before = together
    pairs = await asyncio.gather(serving_certificate(cluster).ensure(), serving_certificate(cluster).ensure())
    assert pairs[0] == pairs[1] == stored(cluster).serving
    assert bundle_in(cluster) == stored(cluster).bundle


async def test_a_renewal_that_loses_the_race_uses_the_certificate_of_the_winner(
    cluster: FakeCluster, material: CertificateMaterial
) -> None:
    cluster.add(APISERVICES, api_service())
    cluster.add(SECRETS, secret_of(material))
    later = NOW + timedelta(days=300)
    winner: list[KeyPair] = []

    async def overtake(verb: str, res: ClusterResource, key: Key) -> None:
        if verb == "update" and not winner:
            cluster.before = None
            winner.append(await serving_certificate(cluster, later).ensure())

    cluster.before = overtake
    assert await serving_certificate(cluster, later).ensure() == winner[0]
    assert stored(cluster).ca == material.ca


async def test_following_reloads_the_certificate_and_survives_an_outage(
    cluster: FakeCluster, caplog: pytest.LogCaptureFixture
) -> None:
    cluster.add(APISERVICES, api_service())
    outage = [False, True, True, False]
    served: list[KeyPair] = []

    async def sleep(seconds: float) -> None:
        if not outage:
            raise asyncio.CancelledError
        cluster.unreachable = outage.pop(0)

    with pytest.raises(asyncio.CancelledError):
        await serving_certificate(cluster, sleep=sleep).follow(served.append)
    assert served == [stored(cluster).serving] * 2
    assert (
        len(
            [
                record
                for record in caplog.records
                if "cannot check or renew the serving certificate" in record.getMessage()
            ]
        )
        == 1
    )
