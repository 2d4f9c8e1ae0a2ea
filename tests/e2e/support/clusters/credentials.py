"""Identities of a test: kubeconfig files, and what raw HTTPS needs from them."""

from __future__ import annotations

import base64
import ssl
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml
from multidict import CIMultiDict

from apiserver.tls.certificates import KeyPair


@dataclass(frozen=True, slots=True)
class Identity:
    """A user with credentials: `kubeconfig` for kubectl, `tls` and `headers` for raw HTTPS to the same server."""

    user: str
    server: str
    kubeconfig: Path
    tls: ssl.SSLContext
    token: str = ""
    impersonated: tuple[str, tuple[str, ...]] | None = None
    """The user and groups that its requests impersonate."""

    @property
    def headers(self) -> Mapping[str, str]:
        """A multi-dict, since a header may occur more than once."""
        headers = CIMultiDict({"Authorization": f"Bearer {self.token}"} if self.token else {})
        if self.impersonated is not None:
            user, groups = self.impersonated
            headers.add("Impersonate-User", user)
            for group in groups:
                headers.add("Impersonate-Group", group)
        return headers


def with_certificate(directory: Path, user: str, *, server: str, ca: Path, pair: KeyPair) -> Identity:
    """An identity with a client certificate; its files are written into `directory`."""
    credential = {"client-certificate-data": _base64(pair.certificate), "client-key-data": _base64(pair.key)}
    return from_kubeconfig(_write(directory, user, server, ca, credential))


def with_token(directory: Path, user: str, *, server: str, ca: Path, token: str) -> Identity:
    """An identity with a bearer token."""
    return from_kubeconfig(_write(directory, user, server, ca, {"token": token}))


def from_kubeconfig(path: Path) -> Identity:
    """The identity in a kubeconfig with one cluster and one user with inline credentials."""
    document = yaml.load(path.read_text(), Loader=yaml.CSafeLoader)
    cluster, user = document["clusters"][0]["cluster"], document["users"][0]
    tls = tls_context(base64.b64decode(cluster["certificate-authority-data"]).decode())
    credential = user["user"]
    if "client-certificate-data" in credential:
        certificate, key = path.with_suffix(".crt"), path.with_suffix(".key")
        certificate.write_bytes(base64.b64decode(credential["client-certificate-data"]))
        key.write_bytes(base64.b64decode(credential["client-key-data"]))
        tls.load_cert_chain(certificate, key)
    impersonated = (credential["as"], tuple(credential.get("as-groups", ()))) if "as" in credential else None
    return Identity(user["name"], cluster["server"], path, tls, credential.get("token", ""), impersonated)


def client_certificate_context(pair: KeyPair, directory: Path) -> ssl.SSLContext:
    """A context that presents this certificate, whatever its issuer, and verifies no server certificate."""
    files = directory / "client.crt", directory / "client.key"
    for path, content in zip(files, (pair.certificate, pair.key), strict=True):
        path.write_bytes(content)
    context = ssl._create_unverified_context()
    context.load_cert_chain(*files)
    return context


def tls_context(ca: str) -> ssl.SSLContext:
    """A context that trusts one CA (PEM) and presents no certificate."""
    return ssl.create_default_context(cadata=ca)


def _write(directory: Path, user: str, server: str, ca: Path, credential: dict[str, str]) -> Path:
    document: dict[str, Any] = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [
            {"name": "e2e", "cluster": {"server": server, "certificate-authority-data": _base64(ca.read_bytes())}}
        ],
        "users": [{"name": user, "user": credential}],
        "contexts": [{"name": "e2e", "context": {"cluster": "e2e", "user": user}}],
        "current-context": "e2e",
    }
    directory.mkdir(parents=True, exist_ok=True)
    path = directory / "kubeconfig"
    path.write_text(yaml.safe_dump(document))
    return path


def _base64(content: bytes) -> str:
    return base64.b64encode(content).decode()
