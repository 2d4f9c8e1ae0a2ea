"""The import of a server's modules leaves the process as it was."""

from __future__ import annotations

import gc
import os
import subprocess
import sys
from collections.abc import Iterator

import pytest

from tenant_apiserver.server_import import cheaper_import

_CAS_OF_A_NEW_CONTEXT = """
import os, ssl
from tenant_apiserver.server_import import cheaper_import
expected = ssl.create_default_context().cert_store_stats()
with cheaper_import():
    from aiohttp import connector
assert ssl.create_default_context().cert_store_stats() == expected
print(connector._SSL_CONTEXT_VERIFIED.cert_store_stats()["x509_ca"], "SSL_CERT_FILE" in os.environ)
"""


@pytest.fixture(autouse=True)
def _collector() -> Iterator[None]:
    yield
    gc.unfreeze()


def test_only_connections_without_a_context_of_their_own_trust_nobody() -> None:
    environment = {name: value for name, value in os.environ.items() if name != "SSL_CERT_FILE"}
    ended = subprocess.run(
        [sys.executable, "-c", _CAS_OF_A_NEW_CONTEXT], env=environment, capture_output=True, text=True, timeout=60
    )
    assert (ended.stdout, ended.stderr) == ("0 False\n", "")


def test_a_file_of_cas_that_the_user_names_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", "/etc/own.pem")
    with cheaper_import():
        pass
    assert os.environ["SSL_CERT_FILE"] == "/etc/own.pem"


def test_garbage_is_collected_afterwards() -> None:
    with cheaper_import():
        assert not gc.isenabled()
    assert gc.isenabled()
    assert gc.get_freeze_count() > 0


def test_garbage_is_collected_after_an_import_that_fails() -> None:
    with pytest.raises(ImportError), cheaper_import():
        raise ImportError("no such module")
    assert gc.isenabled()
