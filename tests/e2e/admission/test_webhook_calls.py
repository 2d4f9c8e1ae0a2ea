"""How webhooks are called: time, TLS, Services. A kube-apiserver calls them for ConfigMaps, this server for Tenants."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from http.client import RemoteDisconnected
from typing import Any

import pytest
import yaml

from tests.e2e.support.clusters import E2eCluster, KubeCluster
from tests.e2e.support.processes import free_port
from tests.e2e.support.webhook_server import Reply, WebhookServer
from tests.e2e.support.webhooks import ALLOWED, DENIED, HOOK, REFUSAL, Subject, Webhooks, failing, message_of, tenants


def _slow(seconds: float, answer: Mapping[str, Any] = ALLOWED) -> Any:
    def respond(_: object) -> dict[str, Any]:
        time.sleep(seconds)
        return dict(answer)

    return respond


@pytest.mark.parametrize("kind", ["Validating", "Mutating"])
def test_a_webhook_has_its_time(webhooks: Webhooks, hook_server: WebhookServer, subject: Subject, kind: Any) -> None:
    hook_server.on(f"/{HOOK}", _slow(2.5))
    url = f"{hook_server.url}/{HOOK}?timeout=1s"
    with webhooks.in_force(kind, webhooks.hook(HOOK, timeoutSeconds=1)):
        started = time.monotonic()
        answer = webhooks.create(subject)
        assert time.monotonic() - started < 2.4
    assert (answer.status, message_of(answer)) == (500, failing(HOOK, f'Post "{url}": context deadline exceeded'))
    with webhooks.in_force(kind, webhooks.hook(HOOK, timeoutSeconds=1, failurePolicy="Ignore")):
        webhooks.create(subject).expect(201)


def test_the_request_s_own_time_bounds_the_webhook_s(
    webhooks: Webhooks, hook_server: WebhookServer, subject: Subject
) -> None:
    hook_server.on(f"/{HOOK}", _slow(2.5))
    with webhooks.in_force("Validating", webhooks.hook(HOOK)):
        started, status = time.monotonic(), 504
        try:
            status = webhooks.send("POST", subject.path, webhooks.body(subject), dryRun="All", timeout="1s").status
        except RemoteDisconnected:
            # out of time when it has just begun to answer, or to pass on our answer, a kube-apiserver cuts the
            # connection; we never do
            assert isinstance(webhooks.cluster, KubeCluster)
        assert time.monotonic() - started < 2.4
    assert status == 504
    assert [call.target for call in hook_server.calls(f"/{HOOK}")] == [f"/{HOOK}?timeout=1s"]


def test_validating_webhooks_are_asked_at_once_and_the_first_in_order_is_told(
    webhooks: Webhooks, hook_server: WebhookServer, subject: Subject
) -> None:
    names = [f"h{index}.example.com" for index in range(4)]
    for name in names[:-1]:
        hook_server.on(f"/{name}", _slow(1.0))
    hook_server.on(f"/{names[1]}", _slow(1.0, {"allowed": False, "warnings": ["late"]}))
    hook_server.on(f"/{names[3]}", {"allowed": False, "warnings": ["early"]})
    with webhooks.in_force("Validating", *map(webhooks.hook, names)):
        started = time.monotonic()
        answer = webhooks.create(subject)
        assert time.monotonic() - started < 2.5
    assert all(len(hook_server.calls(f"/{name}")) == 1 for name in names)
    assert sorted(answer.warnings) == ['299 - "early"', '299 - "late"']
    # a kube-apiserver tells of the one that was there first
    told = {names[1], names[3]} if webhooks.cluster.kind == "kube" and not subject.group else {names[1]}
    assert message_of(answer) in {f'admission webhook "{name}" denied the request without explanation' for name in told}


def test_connections_are_used_again(webhooks: Webhooks, hook_server: WebhookServer, subject: Subject) -> None:
    hook_server.on(f"/{HOOK}", ALLOWED)
    with webhooks.in_force("Validating", webhooks.hook(HOOK)):
        for _ in range(5):
            webhooks.create(subject).expect(201)
    assert len({call.connection for call in hook_server.calls(f"/{HOOK}")}) == 1


def test_a_refused_connection_is_told(webhooks: Webhooks, subject: Subject) -> None:
    port = free_port()
    for host in ("127.0.0.1", "localhost"):
        url = f"https://{host}:{port}/x"
        with webhooks.in_force("Validating", webhooks.hook(HOOK, clientConfig=webhooks.url(url))):
            answer = webhooks.create(subject)
        assert answer.status == 500
        said = message_of(answer)
        assert said.startswith(failing(HOOK, f'Post "{url}?timeout=10s": dial tcp '))
        assert said.endswith(f":{port}: connect: connection refused")


def test_a_connection_that_is_cut_is_told(webhooks: Webhooks, hook_server: WebhookServer, subject: Subject) -> None:
    hook_server.on(f"/{HOOK}", Reply(cut=True))
    with webhooks.in_force("Validating", webhooks.hook(HOOK)):
        answer = webhooks.create(subject)
    assert message_of(answer) == failing(HOOK, f'Post "{hook_server.url}/{HOOK}?timeout=10s": EOF')


@pytest.mark.parametrize(
    ("ca", "why"),
    [
        pytest.param(
            None,
            (
                "failed to call webhook: {} tls: failed to verify certificate: x509: "
                "certificate signed by unknown authority"
            ),
            id="the system's CAs",
        ),
        pytest.param(
            "bm9uZQ==",
            "could not get REST client: unable to load root certificates: unable to parse bytes as PEM block",
            id="no CA at all",
        ),
    ],
)
def test_who_is_not_vouched_for_is_not_asked(
    webhooks: Webhooks, hook_server: WebhookServer, subject: Subject, ca: str | None, why: str
) -> None:
    config = {"url": f"{hook_server.url}/{HOOK}", **({"caBundle": ca} if ca else {})}
    with webhooks.in_force("Validating", webhooks.hook(HOOK, clientConfig=config)):
        answer = webhooks.create(subject)
    failure = why.format(f'Post "{hook_server.url}/{HOOK}?timeout=10s":')
    assert message_of(answer) == f'Internal error occurred: failed calling webhook "{HOOK}": {failure}'
    assert hook_server.calls(f"/{HOOK}") == []


def test_nobody_without_tls_is_asked(webhooks: Webhooks, hook_server: WebhookServer, subject: Subject) -> None:
    with hook_server.plain() as port:
        url = f"https://127.0.0.1:{port}/x"
        with webhooks.in_force("Validating", webhooks.hook(HOOK, clientConfig=webhooks.url(url))):
            answer = webhooks.create(subject)
    why = "tls: first record does not look like a TLS handshake"
    assert message_of(answer) == failing(HOOK, f'Post "{url}?timeout=10s": {why}')


@pytest.fixture(scope="module")
def services(cluster: E2eCluster) -> Iterator[str]:
    """A namespace with Services that lead to this machine, or nowhere. The certificate is good for `hook` there."""
    client, path = cluster.session(), "/api/v1/namespaces/webhooks/services"
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


def test_a_webhook_is_found_by_its_service(
    webhooks: Webhooks, hook_server: WebhookServer, subject: Subject, services: str
) -> None:
    hook_server.on("/a/b", DENIED)
    config = webhooks.service("hook", services, path="/a/b/", port=hook_server.port)
    with webhooks.in_force("Validating", webhooks.hook(HOOK, clientConfig=config)):
        assert message_of(webhooks.create(subject)) == REFUSAL
    [call] = hook_server.calls("/a/b")
    assert (call.target, call.headers["Host"]) == ("/a/b?timeout=10s", f"hook.webhooks.svc:{hook_server.port}")


def test_a_service_must_show_a_certificate_of_its_name(
    webhooks: Webhooks, hook_server: WebhookServer, subject: Subject, services: str
) -> None:
    config = webhooks.service("other", services, path="/a", port=hook_server.port)
    with webhooks.in_force("Validating", webhooks.hook(HOOK, clientConfig=config)):
        said = message_of(webhooks.create(subject))
    url = f"https://other.webhooks.svc:{hook_server.port}/a?timeout=10s"
    assert said.startswith(failing(HOOK, f'Post "{url}": tls: failed to verify certificate: x509: certificate is '))
    assert said.endswith("other.webhooks.svc")
    assert hook_server.calls("/a") == []


@pytest.mark.parametrize(
    ("name", "why"),
    [
        pytest.param("none", 'service "none" not found', id="none"),
        pytest.param("headless", 'cannot route to service with ClusterIP "None"', id="headless"),
        pytest.param("elsewhere", 'no service port 443 found for service "elsewhere"', id="another port"),
    ],
)
def test_a_service_that_leads_nowhere_is_told(
    webhooks: Webhooks, subject: Subject, services: str, name: str, why: str
) -> None:
    with webhooks.in_force("Validating", webhooks.hook(HOOK, clientConfig=webhooks.service(name, services))):
        answer = webhooks.create(subject)
    url = f"https://{name}.webhooks.svc:443/?timeout=10s"
    assert (answer.status, message_of(answer)) == (500, failing(HOOK, f'Post "{url}": {why}'))


def test_redirects_are_not_followed_for_tenants(cluster: E2eCluster, hook_server: WebhookServer) -> None:
    """A kube-apiserver follows them, to wherever they lead."""
    webhooks, subject = Webhooks(cluster, hook_server, tenants()), tenants()
    hook_server.on("/elsewhere", ALLOWED)
    for code in (301, 302, 303, 307, 308):
        hook_server.on(f"/{HOOK}", Reply(b"", code, {"Location": f"{hook_server.url}/elsewhere"}))
        with webhooks.in_force("Validating", webhooks.hook(HOOK)):
            said = message_of(webhooks.create(subject))
        more = "but did not return more information"
        assert said == failing(HOOK, f"the server responded with the status code {code} {more}")
    assert hook_server.calls("/elsewhere") == []


def test_a_webhook_that_is_this_very_server_ends_in_time(cluster: E2eCluster, hook_server: WebhookServer) -> None:
    webhooks, subject = Webhooks(cluster, hook_server, tenants()), tenants()
    config = {**webhooks.url(f"{cluster.direct_url}{subject.path}"), "caBundle": _own_ca(cluster)}
    with webhooks.in_force("Validating", webhooks.hook(HOOK, clientConfig=config, timeoutSeconds=5)):
        started = time.monotonic()
        answer = webhooks.create(subject)
        assert time.monotonic() - started < 6
        assert answer.status == 500
        # nobody is allowed to: it comes without credentials
        assert 'cannot create resource "tenants"' in message_of(answer)
        cluster.session().get(subject.path).expect(200)


def _own_ca(cluster: E2eCluster) -> str:
    """The CA of our server's certificate, base64."""
    if cluster.kind == "embedded":
        kubeconfig = yaml.safe_load(cluster.admin.kubeconfig.read_text())
        found: str = kubeconfig["clusters"][0]["cluster"]["certificate-authority-data"]
        return found
    path = "/api/v1/namespaces/cozy-system/secrets/tenant-apiserver-serving-cert"
    secret: dict[str, Any] = cluster.session().get(path).expect(200)
    found = secret["data"]["ca.crt"]
    return found


def test_what_webhooks_cost_is_counted(cluster: E2eCluster, hook_server: WebhookServer, unique: str) -> None:
    webhooks, subject = Webhooks(cluster, hook_server, tenants()), tenants()
    name = f"{unique}.example.com"
    hook_server.on(f"/{name}", DENIED)
    with webhooks.in_force("Validating", webhooks.hook(name)):
        assert webhooks.create(subject).status == 400
    direct = cluster.direct() if cluster.kind == "kube" else cluster.session()  # type: ignore[attr-defined]
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
