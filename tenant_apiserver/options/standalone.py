"""The flags of `standalone` alone."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from tenant_apiserver.options.flag import Flag
from tenant_apiserver.options.flag_values import address, boolean, directory, port_or_any

STANDALONE: Final = (
    Flag("--bind-address", address, "127.0.0.1", "address to listen on, which is also put into the certificate"),
    Flag("--data-dir", directory, Path("data"), "directory for the database, the PKI and the kubeconfig"),
    Flag("--ui", boolean, True, "serve the page of the tenants on 127.0.0.1, and print its URL", boolean=True),
    Flag("--ui-port", port_or_any, 0, "port of the page, 0 (the default) for any free one"),
)
