"""Health endpoints, metrics, request timeouts and audit IDs (WIRE-J53, WIRE-J55)."""

from __future__ import annotations

import ssl
import uuid

import pytest

from tests.e2e.support.clusters.cluster import GROUP_VERSION, ROOT, E2eCluster, tenants_path
from tests.e2e.support.clusters.control_plane import TOKEN
from tests.e2e.support.clusters.kube import KubeCluster
from tests.e2e.support.http.https_client import Client
from tests.e2e.support.tenants import manifest

HOOKS = (
    "poststarthook/start-apiserver-admission-initializer",
    "poststarthook/generic-apiserver-start-informers",
)

# the metric names that dashboards and alerts for Kubernetes use
NAMES = (
    "apiserver_request_total{",
    "apiserver_request_duration_seconds_bucket{",
    "apiserver_request_sli_duration_seconds_bucket{",
    "apiserver_response_sizes_bucket{",
    "apiserver_current_inflight_requests{",
    "apiserver_longrunning_requests{",
    "apiserver_watch_events_total{",
    "apiserver_registered_watchers{",
    "apiserver_storage_objects{",
    "apiserver_admission_controller_admission_duration_seconds_bucket{",
    'authentication_attempts{result="success"}',
    "workqueue_depth{",
    "workqueue_adds_total{",
    'rest_client_requests_total{code="200"',
    "apiserver_tls_handshake_errors_total ",
    "process_resident_memory_bytes ",
)


@pytest.mark.parametrize("name", ["healthz", "livez", "readyz"])
def test_each_check_is_listed(cluster: E2eCluster, name: str) -> None:
    answer = cluster.direct_client().get(f"/{name}", query={"verbose": "1"})
    lines = answer.content.decode().splitlines()
    assert answer.status == 200
    assert {"[+]ping ok", "[+]log ok", *(f"[+]{hook} ok" for hook in HOOKS)} <= set(lines)
    assert lines[-1] == f"{name} check passed"
    assert ("[+]informer-sync ok" in lines) == (name == "readyz")


@pytest.mark.parametrize("path", ["/healthz", "/livez", "/readyz"])
def test_probes_need_no_credentials(cluster: E2eCluster, path: str) -> None:
    anonymous = Client(cluster.direct_url, ssl._create_unverified_context(), {})
    answer = anonymous.get(path)
    assert (answer.status, answer.body) == (200, b"ok")


def test_other_paths_need_credentials(cluster: E2eCluster) -> None:
    anonymous = Client(cluster.direct_url, ssl._create_unverified_context(), {})
    for path in ("/livez/ping", "/metrics", "/apis", tenants_path(ROOT), "/"):
        assert anonymous.get(path).status in (401, 403)


def test_metrics_have_kubernetes_names(cluster: E2eCluster, unique: str) -> None:
    client = cluster.direct_client()
    client.get(tenants_path(ROOT)).expect(200)
    # this watch ends immediately, because the version is expired
    assert client.get(tenants_path(ROOT), query={"watch": "true", "resourceVersion": "1"}).status == 200
    client.request("POST", tenants_path(ROOT), manifest(unique), query={"dryRun": "All"}).expect(201)
    answer = client.get("/metrics")
    text = answer.content.decode()
    assert answer.status == 200
    for name in NAMES:
        assert f"\n{name}" in text, name
    assert 'resource="tenants"' in text


def test_delegated_reviews_are_counted(kube: KubeCluster, unique: str) -> None:
    token = {"Authorization": f"Bearer {TOKEN}"}
    assert kube.anonymous_client().get(tenants_path(ROOT, "root"), headers=token).status == 403
    assert kube.anonymous_client().get(tenants_path(ROOT), headers={"Authorization": f"Bearer {unique}"}).status == 401
    text = kube.direct_client().get("/metrics").content.decode()
    counted = dict(line.rsplit(" ", 1) for line in text.splitlines() if not line.startswith("#"))
    for name in (
        'apiserver_delegated_authn_request_total{code="201"}',
        'apiserver_delegated_authz_request_total{code="201"}',
        'authentication_attempts{result="failure"}',
    ):
        assert float(counted[name]) >= 1, name


def test_an_ordinary_user_sees_no_metrics(cluster: E2eCluster, unique: str) -> None:
    client = cluster.direct_client(unique)
    assert client.get("/metrics").expect(403)["reason"] == "Forbidden"


@pytest.mark.parametrize("timeout", ["3m", "0s"])
def test_a_timeout_of_the_client_is_accepted(cluster: E2eCluster, timeout: str) -> None:
    assert cluster.client().get(tenants_path(ROOT), query={"timeout": timeout}).status == 200


def test_an_invalid_timeout_is_a_bad_request(cluster: E2eCluster) -> None:
    answer = cluster.client().get(tenants_path(ROOT), query={"timeout": "invalid"})
    assert answer.status == 400
    assert b"invalid timeout specified in the request URL" in answer.content


def test_a_missing_audit_id_is_generated_and_a_long_one_is_truncated(cluster: E2eCluster, unique: str) -> None:
    anonymous = Client(cluster.direct_url, ssl._create_unverified_context(), {})
    for client, path in (
        (cluster.direct_client(), GROUP_VERSION),
        (anonymous, GROUP_VERSION),
        (cluster.direct_client(), "/nothing"),
    ):
        made = [client.get(path).headers["Audit-ID"] for _ in range(2)]
        assert len({str(uuid.UUID(each)) for each in made}) == 2
    long = unique + "x" * 100
    assert cluster.direct_client().get(GROUP_VERSION, headers={"Audit-ID": long}).headers["Audit-ID"] == long[:64]


def test_every_response_has_the_audit_id_of_the_request(cluster: E2eCluster) -> None:
    client = cluster.direct_client()
    for path in (tenants_path(ROOT), tenants_path(ROOT, "missing"), "/nothing"):
        assert client.get(path, headers={"Audit-ID": "e2e-audit"}).headers["Audit-ID"] == "e2e-audit"
