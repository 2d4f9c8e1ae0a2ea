"""A real cainjector of cert-manager: it writes the CA of a Certificate into the objects that its annotation names.

CAINJECTOR names its program, which `go build .` makes in the folder cmd/cainjector of cert-manager.
"""

from __future__ import annotations

import base64
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives.serialization import Encoding

from tests.e2e.support.clusters.kube import KubeCluster
from tests.e2e.support.clusters.processes import Process, wait_until

PROGRAM = "CAINJECTOR"
_CERTIFICATES = "/apis/cert-manager.io/v1/namespaces/cozy-system/certificates"
_SECRETS = "/api/v1/namespaces/cozy-system/secrets"
_WEBHOOKS = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations"
_INJECT, _ISSUED_FOR = "cert-manager.io/inject-ca-from", "cert-manager.io/certificate-name"
_MERGE_PATCH = "application/merge-patch+json"


def program() -> Path | None:
    """The real cainjector, if there is one."""
    found = os.environ.get(PROGRAM)
    return Path(found) if found else None


class CaInjector:
    """Knows Certificate cozy-system/`name`, whose Secret has the CA that `issue` gives it. A webhook configuration that
    selects nothing has the annotation, too: it shows how far the program has come."""

    def __init__(self, kube: KubeCluster, name: str) -> None:
        self._kube = kube
        self._client = kube.client()
        self._name = name
        self._process: Process | None = None

    @contextmanager
    def running(self, ca: bytes) -> Iterator[None]:
        """The program runs with the default of its feature gates, and `ca` is the one of the Certificate."""
        secret = {
            "metadata": {"name": f"{self._name}-cert", "annotations": {_ISSUED_FOR: self._name}},
            "data": {"ca.crt": _base64(ca)},
        }
        spec = {"secretName": f"{self._name}-cert", "issuerRef": {"name": f"{self._name}-ca"}, "dnsNames": [self._name]}
        self._client.request("POST", _SECRETS, secret).expect(201)
        self._client.request(
            "POST",
            _CERTIFICATES,
            {"apiVersion": "cert-manager.io/v1", "kind": "Certificate", "metadata": {"name": self._name}, "spec": spec},
        ).expect(201)
        self._client.request("POST", _WEBHOOKS, self._shown()).expect(201)
        found = program()
        assert found is not None
        environment = {"KUBECONFIG": str(self._kube.admin.kubeconfig)}
        log = self._kube.directory / "cainjector.log"
        self._process = Process("cainjector", [found, "--leader-elect=false"], log=log, environment=environment)
        try:
            self._wait_until_injected(ca)
            yield
        finally:
            self._process.stop()
            for path in (f"{_WEBHOOKS}/{self._name}", f"{_CERTIFICATES}/{self._name}", f"{_SECRETS}/{self._name}-cert"):
                self._client.request("DELETE", path)

    def issue(self, ca: bytes) -> None:
        """The Secret has another CA from now on; returns when the program has acted on it."""
        patch = {"data": {"ca.crt": _base64(ca)}}
        self._client.request("PATCH", f"{_SECRETS}/{self._name}-cert", patch, content_type=_MERGE_PATCH).expect(200)
        self._wait_until_injected(ca)

    def _wait_until_injected(self, ca: bytes) -> None:
        assert self._process is not None

        def is_injected() -> bool:
            found = self._client.get(f"{_WEBHOOKS}/{self._name}").expect(200)
            bundle = base64.b64decode(found["webhooks"][0]["clientConfig"].get("caBundle", ""))
            return certificates_of(ca) <= certificates_of(bundle)

        wait_until("cainjector has written the CA", is_injected, seconds=120, processes=[self._process])

    def _shown(self) -> dict[str, object]:
        webhook = {
            "name": "shown.example.org",
            "admissionReviewVersions": ["v1"],
            "sideEffects": "None",
            "clientConfig": {"url": "https://127.0.0.1:1/"},
            "rules": [],
        }
        annotations = {_INJECT: f"cozy-system/{self._name}"}
        return {"metadata": {"name": self._name, "annotations": annotations}, "webhooks": [webhook]}


def certificates_of(bundle: bytes) -> set[bytes]:
    """The certificates of a bundle in PEM: cainjector orders them, and keeps those that were in it before."""
    return {each.public_bytes(Encoding.DER) for each in x509.load_pem_x509_certificates(bundle)} if bundle else set()


def _base64(content: bytes) -> str:
    return base64.b64encode(content).decode()
