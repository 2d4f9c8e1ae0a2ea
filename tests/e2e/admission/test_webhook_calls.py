"""Webhook calls: timeouts, TLS and Services, by kube-apiserver for ConfigMaps and by our server for Tenants."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator, Mapping
from http.client import RemoteDisconnected
from typing import Any

import pytest
import yaml

from tests.e2e.support.admission.webhook_server import RawReply, Responder, WebhookServer
from tests.e2e.support.admission.webhooks import (
    ALLOWED,
    DENIAL_MESSAGE,
    DENIED,
    HOOK,
    AdmittedResource,
    Webhooks,
    call_failure_message,
    status_message,
    tenant_resource,
)
from tests.e2e.support.clusters.cluster import E2eCluster
from tests.e2e.support.clusters.kube import KubeCluster
from tests.e2e.support.clusters.processes import free_port
from tests.e2e.support.http.pace import Pace, is_within

# a webhook without a timeout of its own has ten seconds
DEFAULT_SECONDS = 10.0
_PATIENCE_SECONDS = 60.0


@pytest.fixture
def silent_responder() -> Iterator[Responder]:
    """A responder that returns nothing before the end of the test."""
    over = threading.Event()

    def respond(_: object) -> Mapping[str, Any]:
        over.wait(_PATIENCE_SECONDS)
        return ALLOWED

    yield respond
    over.set()


def _together(arrived: threading.Barrier, answer: Mapping[str, Any], *, late: bool = False) -> Responder:
    """A responder that waits until all parties of the barrier have been called, and a second longer if it is `late`."""

    def respond(_: object) -> Mapping[str, Any]:
        arrived.wait(_PATIENCE_SECONDS)
        time.sleep(1.0 if late else 0.0)
        return answer

    return respond


@pytest.mark.parametrize("kind", ["Validating", "Mutating"])
def test_a_webhook_call_times_out(
    webhooks: Webhooks,
    hook_server: WebhookServer,
    admitted: AdmittedResource,
    silent_responder: Responder,
    kind: Any,
) -> None:
    hook_server.respond_with(f"/{HOOK}", silent_responder)
    url = f"{hook_server.url}/{HOOK}?timeout=1s"
    with webhooks.in_force(kind, webhooks.hook(HOOK, timeoutSeconds=1)):
        started = time.monotonic()
        answer = webhooks.create(admitted)
        assert is_within(DEFAULT_SECONDS, time.monotonic() - started, webhooks.cluster.client())
    assert (answer.status, status_message(answer)) == (
        500,
        call_failure_message(HOOK, f'Post "{url}": context deadline exceeded'),
    )
    with webhooks.in_force(kind, webhooks.hook(HOOK, timeoutSeconds=1, failurePolicy="Ignore")):
        webhooks.create(admitted).expect(201)


def test_the_request_timeout_limits_the_webhook_timeout(
    webhooks: Webhooks, hook_server: WebhookServer, admitted: AdmittedResource, silent_responder: Responder
) -> None:
    hook_server.respond_with(f"/{HOOK}", silent_responder)
    with webhooks.in_force("Validating", webhooks.hook(HOOK)):
        started, status = time.monotonic(), 504
        try:
            status = webhooks.send("POST", admitted.path, webhooks.body(admitted), dryRun="All", timeout="2s").status
        except RemoteDisconnected:
            # a kube-apiserver that times out after it has begun to send a response closes the connection;
            # our server never does
            assert isinstance(webhooks.cluster, KubeCluster)
        assert is_within(DEFAULT_SECONDS, time.monotonic() - started, webhooks.cluster.client())
    assert status == 504
    assert [call.target for call in hook_server.calls(f"/{HOOK}")] == [f"/{HOOK}?timeout=2s"]


def test_validating_webhooks_are_called_concurrently_and_the_first_denial_in_order_is_returned(
    webhooks: Webhooks, hook_server: WebhookServer, admitted: AdmittedResource
) -> None:
    names = [f"h{index}.example.com" for index in range(4)]
    arrived = threading.Barrier(len(names))
    for name in names[:-1]:
        hook_server.respond_with(f"/{name}", _together(arrived, ALLOWED, late=True))
    hook_server.respond_with(f"/{names[1]}", _together(arrived, {"allowed": False, "warnings": ["late"]}, late=True))
    hook_server.respond_with(f"/{names[3]}", _together(arrived, {"allowed": False, "warnings": ["early"]}))
    with webhooks.in_force("Validating", *map(webhooks.hook, names)):
        answer = webhooks.create(admitted)
    assert not arrived.broken
    assert all(len(hook_server.calls(f"/{name}")) == 1 for name in names)
    assert sorted(answer.warnings) == ['299 - "early"', '299 - "late"']
    # kube-apiserver returns the denial that arrived first
    denying = {names[1], names[3]} if webhooks.cluster.kind == "kube" and not admitted.group else {names[1]}
    assert status_message(answer) in {
        f'admission webhook "{name}" denied the request without explanation' for name in denying
    }


def test_connections_are_reused(webhooks: Webhooks, hook_server: WebhookServer, admitted: AdmittedResource) -> None:
    hook_server.respond_with(f"/{HOOK}", ALLOWED)
    with webhooks.in_force("Validating", webhooks.hook(HOOK)):
        for _ in range(5):
            webhooks.create(admitted).expect(201)
    assert len({call.connection for call in hook_server.calls(f"/{HOOK}")}) == 1


def test_a_refused_connection_is_reported(webhooks: Webhooks, admitted: AdmittedResource) -> None:
    # it remains bound to a socket that does not listen
    port = free_port()
    for host in ("127.0.0.1", "localhost"):
        url = f"https://{host}:{port}/x"
        with webhooks.in_force("Validating", webhooks.hook(HOOK, clientConfig=webhooks.url(url))):
            answer = webhooks.create(admitted)
        assert answer.status == 500
        message = status_message(answer)
        assert message.startswith(call_failure_message(HOOK, f'Post "{url}?timeout=10s": dial tcp '))
        assert message.endswith(f":{port}: connect: connection refused")


def test_a_closed_connection_is_reported(
    webhooks: Webhooks, hook_server: WebhookServer, admitted: AdmittedResource
) -> None:
    hook_server.respond_with(f"/{HOOK}", RawReply(cut=True))
    with webhooks.in_force("Validating", webhooks.hook(HOOK)):
        answer = webhooks.create(admitted)
    assert status_message(answer) == call_failure_message(HOOK, f'Post "{hook_server.url}/{HOOK}?timeout=10s": EOF')


@pytest.mark.parametrize(
    ("ca", "why"),
    [
        pytest.param(
            None,
            (
                "failed to call webhook: {} tls: failed to verify certificate: x509: "
                "certificate signed by unknown authority"
            ),
            id="the system CAs",
        ),
        pytest.param(
            "bm9uZQ==",
            "could not get REST client: unable to load root certificates: unable to parse bytes as PEM block",
            id="an invalid CA bundle",
        ),
    ],
)
def test_a_webhook_with_an_untrusted_certificate_is_not_called(
    webhooks: Webhooks, hook_server: WebhookServer, admitted: AdmittedResource, ca: str | None, why: str
) -> None:
    config = {"url": f"{hook_server.url}/{HOOK}", **({"caBundle": ca} if ca else {})}
    with webhooks.in_force("Validating", webhooks.hook(HOOK, clientConfig=config)):
        answer = webhooks.create(admitted)
    failure = why.format(f'Post "{hook_server.url}/{HOOK}?timeout=10s":')
    assert status_message(answer) == f'Internal error occurred: failed calling webhook "{HOOK}": {failure}'
    assert hook_server.calls(f"/{HOOK}") == []


def test_a_webhook_without_tls_is_not_called(
    webhooks: Webhooks, hook_server: WebhookServer, admitted: AdmittedResource
) -> None:
    with hook_server.serve_plain_http() as port:
        url = f"https://127.0.0.1:{port}/x"
        with webhooks.in_force("Validating", webhooks.hook(HOOK, clientConfig=webhooks.url(url))):
            answer = webhooks.create(admitted)
    why = "tls: first record does not look like a TLS handshake"
    assert status_message(answer) == call_failure_message(HOOK, f'Post "{url}?timeout=10s": {why}')


@pytest.fixture(scope="module")
def services(cluster: E2eCluster) -> Iterator[str]:
    """A namespace with Services that lead to this machine or nowhere; the certificate is valid for `hook` in it."""
    client, path = cluster.client(), "/api/v1/namespaces/webhooks/services"
    client.request("POST", "/api/v1/namespaces", {"metadata": {"name": "webhooks"}}).expect(201)
    here = {"type": "ExternalName", "externalName": "localhost"}
    specs: Mapping[str, dict[str, Any]] = {
        "hook": here,
        "other": here,
        "headless": {"clusterIP": "None", "ports": [{"port": 443}]},
        "elsewhere": {"ports": [{"port": 80}]},
    }
    for name, spec in specs.items():
        body = {"apiVersion": "v1", "kind": "Service", "metadata": {"name": name}, "spec": spec}
        client.request("POST", path, body).expect(201)
    yield "webhooks"
    client.request("DELETE", "/api/v1/namespaces/webhooks")


def test_a_webhook_is_called_through_its_service(
    webhooks: Webhooks, hook_server: WebhookServer, admitted: AdmittedResource, services: str
) -> None:
    hook_server.respond_with("/a/b", DENIED)
    config = webhooks.service("hook", services, path="/a/b/", port=hook_server.port)
    with webhooks.in_force("Validating", webhooks.hook(HOOK, clientConfig=config)):
        assert status_message(webhooks.create(admitted)) == DENIAL_MESSAGE
    [call] = hook_server.calls("/a/b")
    assert (call.target, call.headers["Host"]) == ("/a/b?timeout=10s", f"hook.webhooks.svc:{hook_server.port}")


def test_the_certificate_of_a_service_must_match_its_name(
    webhooks: Webhooks, hook_server: WebhookServer, admitted: AdmittedResource, services: str
) -> None:
    config = webhooks.service("other", services, path="/a", port=hook_server.port)
    with webhooks.in_force("Validating", webhooks.hook(HOOK, clientConfig=config)):
        message = status_message(webhooks.create(admitted))
    url = f"https://other.webhooks.svc:{hook_server.port}/a?timeout=10s"
    assert message.startswith(
        call_failure_message(HOOK, f'Post "{url}": tls: failed to verify certificate: x509: certificate is ')
    )
    assert message.endswith("other.webhooks.svc")
    assert hook_server.calls("/a") == []


@pytest.mark.parametrize(
    ("name", "why"),
    [
        pytest.param("none", 'service "none" not found', id="a missing service"),
        pytest.param("headless", 'cannot route to service with ClusterIP "None"', id="a headless service"),
        pytest.param("elsewhere", 'no service port 443 found for service "elsewhere"', id="another port"),
    ],
)
def test_an_unroutable_service_is_reported(
    webhooks: Webhooks, admitted: AdmittedResource, services: str, name: str, why: str
) -> None:
    with webhooks.in_force("Validating", webhooks.hook(HOOK, clientConfig=webhooks.service(name, services))):
        answer = webhooks.create(admitted)
    url = f"https://{name}.webhooks.svc:443/?timeout=10s"
    assert (answer.status, status_message(answer)) == (500, call_failure_message(HOOK, f'Post "{url}": {why}'))


def test_redirects_are_not_followed_for_tenants(cluster: E2eCluster, hook_server: WebhookServer) -> None:
    """kube-apiserver follows them to any address."""
    webhooks, admitted = Webhooks(cluster, hook_server, tenant_resource()), tenant_resource()
    hook_server.respond_with("/elsewhere", ALLOWED)
    for code in (301, 302, 303, 307, 308):
        hook_server.respond_with(f"/{HOOK}", RawReply(b"", code, {"Location": f"{hook_server.url}/elsewhere"}))
        with webhooks.in_force("Validating", webhooks.hook(HOOK)):
            message = status_message(webhooks.create(admitted))
        more = "but did not return more information"
        assert message == call_failure_message(HOOK, f"the server responded with the status code {code} {more}")
    assert hook_server.calls("/elsewhere") == []


def test_a_webhook_that_calls_our_own_server_fails_in_time(cluster: E2eCluster, hook_server: WebhookServer) -> None:
    webhooks, admitted = Webhooks(cluster, hook_server, tenant_resource()), tenant_resource()
    config = {**webhooks.url(f"{cluster.direct_url}{admitted.path}"), "caBundle": _own_ca(cluster)}
    with webhooks.in_force("Validating", webhooks.hook(HOOK, clientConfig=config, timeoutSeconds=5)):
        pace, started = Pace(cluster.client()), time.monotonic()
        answer = webhooks.create(admitted)
        elapsed = time.monotonic() - started
        assert elapsed < 5 + pace.limit(1)
        assert answer.status == 500
        # the call has no credentials, so it is forbidden
        assert 'cannot create resource "tenants"' in status_message(answer)
        cluster.client().get(admitted.path).expect(200)


def _own_ca(cluster: E2eCluster) -> str:
    """The CA of our server's certificate, base64-encoded."""
    if cluster.kind == "embedded":
        kubeconfig = yaml.load(cluster.admin.kubeconfig.read_text(), Loader=yaml.CSafeLoader)
        found: str = kubeconfig["clusters"][0]["cluster"]["certificate-authority-data"]
        return found
    path = "/api/v1/namespaces/cozy-system/secrets/tenant-apiserver-serving-cert"
    secret: dict[str, Any] = cluster.client().get(path).expect(200)
    found = secret["data"]["ca.crt"]
    return found


def test_webhook_calls_are_counted_in_metrics(cluster: E2eCluster, hook_server: WebhookServer, unique: str) -> None:
    webhooks, admitted = Webhooks(cluster, hook_server, tenant_resource()), tenant_resource()
    name = f"{unique}.example.com"
    hook_server.respond_with(f"/{name}", DENIED)
    with webhooks.in_force("Validating", webhooks.hook(name)):
        assert webhooks.create(admitted).status == 400
    direct = cluster.direct_client()
    counted = [line for line in direct.get("/metrics").content.decode().splitlines() if name in line]
    about = f'name="{name}",operation="CREATE"'
    assert (
        f'apiserver_admission_webhook_request_total{{code="400",{about},rejected="true",type="validating"}} 1.0'
        in counted
    )
    [rejection] = [line for line in counted if line.startswith("apiserver_admission_webhook_rejection_count{")]
    assert 'error_type="no_error"' in rejection
    assert 'rejection_code="400"' in rejection
    durations = "apiserver_admission_webhook_admission_duration_seconds_count{"
    assert any(line.startswith(durations) and line.endswith(" 1.0") for line in counted)
