"""A replica that waits for its serving certificate says why, once for each reason."""

from __future__ import annotations

import logging
from typing import cast

import pytest

from apiserver.meta.errors import Forbidden
from apiserver.meta.resource import GroupResource
from apiserver.tls.certificates import KeyPair
from registry.cluster.interface import ClusterUnreachable
from tenant_apiserver.certificates.cluster_secret import ServingCertificate
from tenant_apiserver.certificates.sources import SecretCertificate
from tests.virtual_time import virtual

PAIR = KeyPair(b"certificate", b"key")


class Ensuring:
    """Fails with each of the errors, and then has the pair."""

    def __init__(self, *errors: Exception) -> None:
        self._errors = list(errors)

    async def ensure(self) -> KeyPair:
        if self._errors:
            raise self._errors.pop(0)
        return PAIR


def unreachable(cause: str) -> ClusterUnreachable:
    error = ClusterUnreachable()
    error.__cause__ = OSError(cause)
    return error


@virtual
async def test_each_reason_for_waiting_is_logged_once_with_its_cause(caplog: pytest.LogCaptureFixture) -> None:
    refused = "Cannot connect to host 10.0.0.1:443"
    errors = [
        unreachable(refused),
        unreachable(refused),
        Forbidden(GroupResource("", "secrets"), "serving-cert", "no"),
        unreachable(refused),
    ]
    with caplog.at_level(logging.WARNING):
        found = await SecretCertificate(cast(ServingCertificate, Ensuring(*errors))).obtain()
    assert found == PAIR
    lines = [record.getMessage() for record in caplog.records]
    begin = "cannot obtain the serving certificate, trying again every 2 s: "
    assert [line.removeprefix(begin) for line in lines] == [refused, 'secrets "serving-cert" is forbidden: no', refused]
