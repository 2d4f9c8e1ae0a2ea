"""Creating and inspecting certificates."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from cryptography import x509
from cryptography.x509.oid import ExtendedKeyUsageOID

from apiserver.tls import certificates

NOW = datetime(2026, 1, 1, tzinfo=UTC)
CA = certificates.make_ca("test-ca", now=NOW)


def test_a_client_certificate_names_user_and_groups() -> None:
    pair = certificates.make_client(CA, "alice", ["a", "b"], now=NOW)
    [certificate] = certificates.parse_bundle(pair.certificate)
    assert certificate.subject.rfc4514_string() == "CN=alice,O=b,O=a"
    usage = certificate.extensions.get_extension_for_class(x509.ExtendedKeyUsage).value
    assert list(usage) == [ExtendedKeyUsageOID.CLIENT_AUTH]


def test_a_serving_certificate_is_valid_for_names_and_addresses() -> None:
    pair = certificates.make_serving(CA, ["localhost", "127.0.0.1"], now=NOW)
    assert certificates.valid_for_names(pair.certificate, ["127.0.0.1", "localhost"])
    assert not certificates.valid_for_names(pair.certificate, ["localhost", "example.org"])


def test_a_client_certificate_is_valid_for_no_name() -> None:
    assert not certificates.valid_for_names(certificates.make_client(CA, "alice").certificate, ["alice"])


def test_issued_by_checks_the_signature_and_not_the_name() -> None:
    pair = certificates.make_client(CA, "alice", now=NOW)
    namesake = certificates.make_ca("test-ca", now=NOW)
    assert certificates.issued_by(pair.certificate, namesake.certificate + CA.certificate)
    assert not certificates.issued_by(pair.certificate, namesake.certificate)


@pytest.mark.parametrize(
    ("age", "due"),
    [
        pytest.param(timedelta(days=1), False, id="young"),
        pytest.param(timedelta(days=59), False, id="just before two thirds"),
        pytest.param(timedelta(days=61), True, id="just after two thirds"),
        pytest.param(timedelta(days=100), True, id="expired"),
    ],
)
def test_a_certificate_is_renewed_after_two_thirds_of_its_life(age: timedelta, due: bool) -> None:
    pair = certificates.make_client(CA, "alice", now=NOW, lifetime=timedelta(days=90))
    assert certificates.should_renew(pair.certificate, NOW + age) is due


def test_expiry_is_that_of_the_first_certificate() -> None:
    pair = certificates.make_client(CA, "alice", now=NOW, lifetime=timedelta(days=1))
    assert certificates.expiry(pair.certificate + CA.certificate) == NOW + timedelta(days=1)


def test_a_bundle_without_certificates_is_an_error() -> None:
    with pytest.raises(ValueError, match="no certificate"):
        certificates.expiry(b"nothing here")


def test_text_around_certificates_is_ignored() -> None:
    bundle = b"# the old one\n" + CA.certificate + b"\n# the new one\n" + CA.certificate
    assert len(certificates.parse_bundle(bundle)) == 2


def test_a_damaged_certificate_is_an_error() -> None:
    damaged = CA.certificate.replace(b"M", b"%", 1)
    with pytest.raises(ValueError, match="PEM"):
        certificates.parse_bundle(damaged)


def test_repr_does_not_show_the_private_key() -> None:
    assert "PRIVATE" not in repr(CA)
