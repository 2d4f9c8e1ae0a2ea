"""Kubeconfig files for the embedded cluster, with the server, its CA and a client certificate inline."""

from __future__ import annotations

import base64
from pathlib import Path
from typing import Any

import yaml


def render(*, server: str, ca: bytes, certificate: bytes, key: bytes, user: str, namespace: str) -> str:
    """Renders a kubeconfig with one cluster, user and context; `ca`, `certificate` and `key` are PEM."""
    document: dict[str, Any] = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "standalone", "cluster": {"server": server, "certificate-authority-data": _base64(ca)}}],
        "users": [
            {
                "name": user,
                "user": {"client-certificate-data": _base64(certificate), "client-key-data": _base64(key)},
            }
        ],
        "contexts": [
            {"name": "standalone", "context": {"cluster": "standalone", "user": user, "namespace": namespace}}
        ],
        "current-context": "standalone",
    }
    return yaml.safe_dump(document, sort_keys=False)


def server_of(path: Path) -> str:
    """The server URL in a kubeconfig that `render` produced."""
    document = yaml.load(path.read_text(), Loader=yaml.CSafeLoader)
    return str(document["clusters"][0]["cluster"]["server"])


def _base64(data: bytes) -> str:
    return base64.b64encode(data).decode()
