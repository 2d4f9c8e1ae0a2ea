"""Invalid client certificates and other invalid credentials at our own server (WIRE-A2, WIRE-A4, WIRE-A10, WIRE-A21,
WIRE-A24)."""

from __future__ import annotations

import http.client
import json
import socket
import ssl
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from cryptography.x509.oid import NameOID
from OpenSSL import SSL

from apiserver.tls.certificates import make_ca, make_client, parse_bundle
from tests.e2e.support.clusters import credentials
from tests.e2e.support.clusters.cluster import ROOT, E2eCluster, tenants_path
from tests.e2e.support.clusters.control_plane import FRONT_PROXY, TOKEN, TOKEN_USER
from tests.e2e.support.clusters.credentials import client_certificate_context
from tests.e2e.support.clusters.embedded import EmbeddedCluster
from tests.e2e.support.clusters.kube import KubeCluster
from tests.e2e.support.clusters.processes import Process, free_port, run_command, wait_until
from tests.e2e.support.http.https_client import Client, Response

LIST = tenants_path(ROOT)
ONE = tenants_path(ROOT, "root")
# a CA that no cluster trusts
UNTRUSTED_CA = make_ca("untrusted")


def response_unless(status: int, answer: Response) -> Response | None:
    return answer if answer.status != status else None


def acceptable_cas(url: str) -> set[str]:
    """The common names of the CAs in the certificate request of the TLS handshake."""
    parts = urlsplit(url)
    assert parts.hostname is not None
    with socket.create_connection((parts.hostname, parts.port), timeout=30) as plain:
        plain.setblocking(True)
        connection = SSL.Connection(SSL.Context(SSL.TLS_CLIENT_METHOD), plain)
        connection.set_connect_state()
        connection.do_handshake()
        names = connection.get_client_ca_list(as_cryptography=True)
        connection.shutdown()
    return {str(name.get_attributes_for_oid(NameOID.COMMON_NAME)[0].value) for name in names}


def assert_unauthorized(answer: Response) -> None:
    expected = {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Failure",
        "message": "Unauthorized",
        "reason": "Unauthorized",
        "code": 401,
    }
    assert answer.expect(401) == expected
    assert "WWW-Authenticate" not in answer.headers
    assert "Audit-ID" in answer.headers


@pytest.mark.parametrize("name", ["admin", FRONT_PROXY])
def test_a_certificate_of_an_unknown_ca_is_unauthorized(cluster: E2eCluster, tmp_path: Path, name: str) -> None:
    tls = client_certificate_context(make_client(UNTRUSTED_CA, name, ["system:masters"]), tmp_path)
    for path in (LIST, "/healthz", "/metrics"):
        assert_unauthorized(Client(cluster.direct_url, tls, {}).get(path))
    spoofed = {"X-Remote-User": "admin", "X-Remote-Group": "system:masters"}
    assert_unauthorized(Client(cluster.direct_url, tls, spoofed).get(LIST))


def test_a_valid_token_takes_precedence_over_an_untrusted_certificate(kube: KubeCluster, tmp_path: Path) -> None:
    tls = client_certificate_context(make_client(UNTRUSTED_CA, "admin", ["system:masters"]), tmp_path)
    client = Client(kube.direct_url, tls, {"Authorization": f"Bearer {TOKEN}"})
    assert f'User "{TOKEN_USER}" cannot get' in client.get(ONE).expect(403)["message"]


def test_a_bad_token_is_unauthorized_and_not_anonymous(cluster: E2eCluster, unique: str) -> None:
    tls = ssl._create_unverified_context()
    for scheme in ("Bearer", "bearer", "BEARER"):
        assert_unauthorized(Client(cluster.direct_url, tls, {"Authorization": f"{scheme} {unique}"}).get(LIST))


@pytest.mark.parametrize("value", ["Bearer", "Bearer ", "Basic YWRtaW46YWRtaW4="])
def test_a_header_without_a_bearer_token_is_anonymous(cluster: E2eCluster, value: str) -> None:
    client = Client(cluster.direct_url, ssl._create_unverified_context(), {"Authorization": value})
    status = client.get(ONE).expect(403)
    assert 'User "system:anonymous" cannot get' in status["message"]
    assert client.get("/healthz").status == 200


def test_the_handshake_names_the_client_cas(cluster: E2eCluster) -> None:
    if isinstance(cluster, KubeCluster):
        configured = cluster.client().get(
            "/api/v1/namespaces/kube-system/configmaps/extension-apiserver-authentication"
        )
        data = configured.expect(200)["data"]
        bundles = [data["client-ca-file"], data["requestheader-client-ca-file"]]
    else:
        assert isinstance(cluster, EmbeddedCluster)
        bundles = [(cluster.data / "pki" / "ca.crt").read_text()]
    cas = [ca for bundle in bundles for ca in parse_bundle(bundle.encode())]
    names = {str(ca.subject.get_attributes_for_oid(NameOID.COMMON_NAME)[0].value) for ca in cas}
    # an earlier test may have changed them, which the server learns a moment later
    cluster.wait_until("the handshake names them", lambda: acceptable_cas(cluster.direct_url) == names)


def test_a_front_proxy_request_without_a_user_is_unauthorized(kube: KubeCluster) -> None:
    assert_unauthorized(kube.front_proxy_client().get(LIST))
    assert_unauthorized(kube.front_proxy_client().get(LIST, headers={"X-Remote-Group": "system:masters"}))


SPOOFED = {"X-Remote-User": "admin", "X-Remote-Group": "system:masters"}


def test_a_front_proxy_with_a_disallowed_name_is_unauthorized(kube: KubeCluster) -> None:
    assert kube.front_proxy_client().get(LIST, headers=SPOOFED).status == 200
    assert_unauthorized(kube.front_proxy_client("another-proxy").get(LIST, headers=SPOOFED))


def test_a_client_certificate_with_the_name_of_the_front_proxy_is_no_front_proxy(kube: KubeCluster) -> None:
    """The client CA and the front-proxy CA are not interchangeable (R-252)."""
    status = kube.direct_client(FRONT_PROXY).get(ONE, headers=SPOOFED).expect(403)
    assert f'User "{FRONT_PROXY}" cannot get' in status["message"]


def test_a_client_ca_added_to_the_cluster_is_trusted_without_a_restart(
    kube: KubeCluster, tmp_path: Path, unique: str
) -> None:
    added = make_ca(unique)
    tls = client_certificate_context(make_client(added, unique), tmp_path)
    client = Client(kube.direct_url, tls, {})
    assert_unauthorized(client.get(LIST))
    assert unique not in acceptable_cas(kube.direct_url)
    path = "/api/v1/namespaces/kube-system/configmaps/extension-apiserver-authentication"
    bundle = kube.client().get(path).expect(200)["data"]["client-ca-file"]
    patch = {"data": {"client-ca-file": bundle + added.certificate.decode()}}
    kube.client().request("PATCH", path, patch, content_type="application/merge-patch+json").expect(200)
    status = wait_until("the CA is trusted", lambda: response_unless(401, client.get(ONE))).expect(403)
    assert f'User "{unique}" cannot get' in status["message"]
    assert unique in acceptable_cas(kube.direct_url)


def start_without_rights(kube: KubeCluster, directory: Path, unique: str, *more: str) -> tuple[Process, int]:
    port = free_port()
    kubeconfig = kube.identity(unique).kubeconfig
    flags = [f"--kubeconfig={kubeconfig}", f"--cert-dir={directory / 'pki'}", "--bind-address=127.0.0.1"]
    return run_command("serve", *flags, f"--secure-port={port}", *more, log=directory / "log"), port


def test_a_server_that_may_not_read_the_authentication_configmap_does_not_start(
    kube: KubeCluster, tmp_path: Path, unique: str
) -> None:
    process, _ = start_without_rights(kube, tmp_path, unique)
    try:
        wait_until("the command ends", lambda: process.ended, seconds=60)
    finally:
        status = process.stop()
    assert status == 1, process.tail()
    (line,) = process.log().splitlines()
    assert 'configmaps "extension-apiserver-authentication" is forbidden' in line
    assert f'User "{unique}"' in line


def test_a_server_that_tolerates_lookup_failures_starts_and_is_not_ready(
    kube: KubeCluster, tmp_path: Path, unique: str
) -> None:
    process, port = start_without_rights(kube, tmp_path, unique, "--authentication-tolerate-lookup-failure")
    client = Client(f"https://127.0.0.1:{port}", ssl._create_unverified_context(), {})

    def is_alive() -> bool:
        try:
            return client.get("/livez").status == 200
        except OSError:
            return False

    try:
        wait_until("the server is serving", is_alive, processes=[process])
        answer = client.get("/readyz")
        assert answer.status == 500
        assert b"[-]informer-sync failed" in answer.content
    finally:
        status = process.stop()
    assert status == 0, process.tail()


@pytest.fixture
def audited(tmp_path: Path) -> Iterator[Path]:
    """The data directory of a server that writes an audit log beside it during the test."""
    data = tmp_path / "data"
    process = run_command(
        "standalone",
        f"--data-dir={data}",
        "--bind-address=127.0.0.1",
        f"--secure-port={free_port()}",
        f"--audit-log-path={tmp_path / 'audit.log'}",
        log=tmp_path / "log",
    )
    try:
        wait_until("the server is serving", lambda: "Serving on" in process.log(), processes=[process])
        yield data
    finally:
        process.stop()


def audit_events(log: Path) -> list[dict[str, Any]]:
    """The events in complete lines of the log."""
    return [json.loads(line) for line in log.read_text().splitlines(keepends=True) if line.endswith("\n")]


def test_the_audit_log_records_every_stage_and_rejected_callers(audited: Path, tmp_path: Path, unique: str) -> None:
    admin = credentials.from_kubeconfig(audited / "kubeconfig")
    client = Client(admin.server, admin.tls, {"X-Forwarded-For": "198.51.100.7", "User-Agent": "audited/1"})
    wait_until("the root tenant's namespace is served", lambda: client.get(LIST).status == 200)
    client.get(LIST, headers={"Audit-ID": f"{unique}-list"}).expect(200)
    query = {"watch": "true", "timeoutSeconds": "1"}
    assert client.get(LIST, query=query, headers={"Audit-ID": f"{unique}-watch"}).status == 200
    anonymous = Client(admin.server, ssl._create_unverified_context(), {})
    anonymous.get(LIST, headers={"Audit-ID": f"{unique}-anonymous"}).expect(403)
    forged = {"Audit-ID": f"{unique}-token", "Authorization": "Bearer sesame-open"}
    assert_unauthorized(anonymous.get(LIST, headers=forged))
    log = tmp_path / "audit.log"
    expected = {
        "list": [("RequestReceived", None), ("ResponseComplete", 200)],
        "watch": [("RequestReceived", None), ("ResponseStarted", 200), ("ResponseComplete", 200)],
        "anonymous": [("RequestReceived", None), ("ResponseComplete", 403)],
        "token": [("ResponseStarted", 401)],
    }

    def stages(request: str) -> list[tuple[str, int | None]]:
        matching = [event for event in audit_events(log) if event["auditID"] == f"{unique}-{request}"]
        return [(event["stage"], event.get("responseStatus", {}).get("code")) for event in matching]

    # the client has the response before the event of its end is written
    wait_until("every stage is written", lambda: {request: stages(request) for request in expected} == expected)
    assert "sesame" not in log.read_text()
    events = audit_events(log)
    listed, rejected, unknown = (
        [event for event in events if event["auditID"] == f"{unique}-{request}"][-1]
        for request in ("list", "anonymous", "token")
    )
    assert listed["user"]["username"] == admin.user
    assert (listed["sourceIPs"], listed["userAgent"]) == (["198.51.100.7", "127.0.0.1"], "audited/1")
    assert listed["annotations"]["authorization.k8s.io/decision"] == "allow"
    assert listed["objectRef"] == {
        "resource": "tenants",
        "namespace": ROOT,
        "apiGroup": "apps.cozystack.io",
        "apiVersion": "v1alpha1",
    }
    assert rejected["user"] == {"username": "system:anonymous", "groups": ["system:unauthenticated"]}
    assert rejected["annotations"]["authorization.k8s.io/decision"] == "forbid"
    assert rejected["responseStatus"]["reason"] == "Forbidden"
    assert unknown["user"] == {}
    assert unknown["responseStatus"]["message"] == "Authentication failed, attempted: bearer"


def test_failed_handshakes_are_counted(cluster: E2eCluster) -> None:
    name = "apiserver_tls_handshake_errors_total"
    client = cluster.direct_client()

    def error_count() -> float:
        lines = client.get("/metrics").content.decode().splitlines()
        return next(float(line.split()[1]) for line in lines if line.startswith(f"{name} "))

    before = error_count()
    parts = urlsplit(cluster.direct_url)
    assert parts.hostname is not None
    plain = http.client.HTTPConnection(parts.hostname, parts.port, timeout=30)
    plain.request("GET", "/healthz")
    answer = plain.getresponse()
    assert (answer.status, answer.read()) == (400, b"Client sent an HTTP request to an HTTPS server.\n")
    plain.close()
    wait_until("the failure is counted", lambda: error_count() > before)
