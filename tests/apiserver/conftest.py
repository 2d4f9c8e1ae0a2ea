"""The TLS implementations that tests of serving run with."""

from __future__ import annotations

import pytest

from apiserver.tls.asyncio_tls import AsyncioServerTls
from apiserver.tls.openssl_tls import OpenSslServerTls
from apiserver.tls.server_context import ServerTls


@pytest.fixture(params=[OpenSslServerTls, AsyncioServerTls], ids=["openssl", "asyncio"])
def server_tls(request: pytest.FixtureRequest) -> type[ServerTls]:
    """Each implementation that `--tls-transport` selects from."""
    selected: type[ServerTls] = request.param
    return selected
