"""Health, metrics and the request timeout, as probes and scrapers meet them (J53, J55)."""

from __future__ import annotations

import ssl

import pytest

from tests.e2e.client import Client
from tests.e2e.hosts import ROOT, E2eHost, KubeHost, tenants_path

HOOKS = (
    "poststarthook/start-apiserver-admission-initializer",
    "poststarthook/generic-apiserver-start-informers",
)


def ours(host: E2eHost) -> Client:
    """Straight to our server: behind an aggregator these paths are the aggregator's own."""
    return host.direct() if isinstance(host, KubeHost) else host.session()


@pytest.mark.parametrize("name", ["healthz", "livez", "readyz"])
def test_each_check_is_told(host: E2eHost, name: str) -> None:
    answer = ours(host).get(f"/{name}", query={"verbose": "1"})
    lines = answer.content.decode().splitlines()
    assert answer.status == 200
    assert {"[+]ping ok", "[+]log ok", *(f"[+]{hook} ok" for hook in HOOKS)} <= set(lines)
    assert lines[-1] == f"{name} check passed"
    assert ("[+]informer-sync ok" in lines) == (name == "readyz")


@pytest.mark.parametrize("path", ["/healthz", "/livez", "/readyz"])
def test_probes_need_no_credentials(host: E2eHost, path: str) -> None:
    anonymous = Client(host.direct_url, ssl._create_unverified_context(), {})
    answer = anonymous.get(path)
    assert (answer.status, answer.body) == (200, b"ok")


def test_nothing_else_is_open(host: E2eHost) -> None:
    anonymous = Client(host.direct_url, ssl._create_unverified_context(), {})
    for path in ("/livez/ping", "/metrics", "/apis", tenants_path(ROOT), "/"):
        assert anonymous.get(path).status in (401, 403)


def test_metrics_have_kubernetes_names(host: E2eHost) -> None:
    client = ours(host)
    client.get(tenants_path(ROOT)).expect(200)
    answer = client.get("/metrics")
    text = answer.content.decode()
    assert answer.status == 200
    for name in ("apiserver_request_total", "apiserver_request_duration_seconds_bucket", "workqueue_depth"):
        assert f"\n{name}" in text
    assert 'resource="tenants"' in text


def test_an_ordinary_user_sees_no_metrics(host: E2eHost, unique: str) -> None:
    client = host.direct(unique) if isinstance(host, KubeHost) else host.session(unique)
    assert client.get("/metrics").expect(403)["reason"] == "Forbidden"


@pytest.mark.parametrize("timeout", ["3m", "0s"])
def test_a_timeout_of_the_client_s_is_taken(host: E2eHost, timeout: str) -> None:
    assert host.session().get(tenants_path(ROOT), query={"timeout": timeout}).status == 200


def test_a_timeout_that_is_none_is_a_bad_request(host: E2eHost) -> None:
    answer = host.session().get(tenants_path(ROOT), query={"timeout": "invalid"})
    assert answer.status == 400
    assert b"invalid timeout specified in the request URL" in answer.content


def test_every_answer_has_the_audit_id_that_was_sent(host: E2eHost) -> None:
    client = ours(host)
    for path in (tenants_path(ROOT), tenants_path(ROOT, "missing"), "/nothing"):
        assert client.get(path, headers={"Audit-ID": "e2e-audit"}).headers["Audit-ID"] == "e2e-audit"
