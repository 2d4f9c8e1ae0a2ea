"""The configuration of clients whose server has no TLS."""

from __future__ import annotations

import atexit
import tempfile
from functools import cache
from pathlib import Path

from apiserver.tls.certificates import make_ca
from registry.cluster.kubernetes_asyncio_shim import Configuration


def plain_http(url: str) -> Configuration:
    """With a file of one CA: a client makes three TLS contexts before it needs one, and each would read the hundred of
    the system, which takes longer than most tests."""
    configuration = Configuration(host=url)
    configuration.ssl_ca_cert = str(_one_ca())
    return configuration


@cache
def _one_ca() -> Path:
    with tempfile.NamedTemporaryFile(suffix=".crt", delete=False) as file:
        file.write(make_ca("unused").certificate)
    atexit.register(Path(file.name).unlink, missing_ok=True)
    return Path(file.name)
