"""Metrics have the labels of Kubernetes, and a registry of their own."""

from __future__ import annotations

import pytest
from aiohttp import web

from apiserver.meta.resource import Resource
from apiserver.metrics import Metrics, request_labels
from apiserver.storage.watch_cache import WatchCache
from tests.apiserver.endpoints.request_contexts import make_context

BASE = "/apis/example.org/v1"

WIDGETS = Resource(
    group="example.org", version="v1", kind="Widget", plural="widgets", singular="widget", namespaced=True
)


@pytest.mark.parametrize(
    ("method", "target", "headers", "expected"),
    [
        pytest.param("GET", f"{BASE}/namespaces/ns/widgets/w", {}, ("GET", "", "", "resource"), id="get"),
        pytest.param("GET", f"{BASE}/widgets", {}, ("LIST", "", "", "cluster"), id="list"),
        pytest.param("GET", f"{BASE}/namespaces/ns/widgets?watch=1", {}, ("WATCH", "", "", "namespace"), id="watch"),
        pytest.param(
            "POST", f"{BASE}/namespaces/ns/widgets?dryRun=All", {}, ("POST", "All", "", "resource"), id="create"
        ),
        pytest.param(
            "PATCH",
            f"{BASE}/namespaces/ns/widgets/w/status",
            {"Content-Type": "application/apply-patch+yaml"},
            ("APPLY", "", "status", "resource"),
            id="apply",
        ),
        pytest.param(
            "DELETE", f"{BASE}/namespaces/ns/widgets", {}, ("DELETECOLLECTION", "", "", "namespace"), id="collection"
        ),
    ],
)
def test_request_labels_describe_the_request(
    method: str, target: str, headers: dict[str, str], expected: tuple[str, ...]
) -> None:
    labels = request_labels(make_context(method, target, headers), served=True)
    verb, dry_run, subresource, scope = expected
    assert labels == (verb, dry_run, "example.org", "v1", "widgets", subresource, scope, "apiserver")


def test_names_of_unknown_resources_are_not_labels() -> None:
    labels = request_labels(make_context("BREW", f"{BASE}/namespaces/ns/pots/p"), served=False)
    assert labels == ("other", "", "", "", "", "", "resource", "apiserver")


def test_durations_are_counted_in_the_buckets_of_kubernetes() -> None:
    metrics = Metrics()
    labels = request_labels(make_context(), served=True)
    for seconds in (0.01, 0.3, 100):
        metrics.observe_request(labels, 200, seconds)
    names = ("verb", "dry_run", "group", "version", "resource", "subresource", "scope", "component")
    found = dict(zip(names, labels, strict=True))

    def bucket(le: str) -> float | None:
        return metrics.registry.get_sample_value("apiserver_request_duration_seconds_bucket", {**found, "le": le})

    assert [bucket(le) for le in ("0.005", "0.025", "0.4", "60.0", "+Inf")] == [0, 1, 2, 2, 3]
    assert metrics.registry.get_sample_value("apiserver_request_total", {**found, "code": "200"}) == 3


def test_only_reads_have_sizes() -> None:
    metrics = Metrics()
    for method, size in (("GET", 1500), ("PUT", 1500), ("GET", None)):
        metrics.observe_request(request_labels(make_context(method), served=True), 200, 0.1, size=size)
    sizes = {
        (sample.labels["verb"], sample.value)
        for metric in metrics.registry.collect()
        for sample in metric.samples
        if sample.name == "apiserver_response_sizes_sum"
    }
    assert sizes == {("GET", 1500)}


@pytest.mark.parametrize(("code", "counted"), [(200, None), (429, 1), (504, 1), (404, None)])
def test_requests_terminated_in_self_defence_are_counted(code: int, counted: float | None) -> None:
    metrics = Metrics()
    metrics.observe_request(request_labels(make_context(), served=True), code, 0.1)
    labels = {"verb": "GET", "group": "example.org", "version": "v1", "resource": "widgets", "subresource": ""}
    more = {"scope": "resource", "component": "apiserver", "code": str(code)}
    assert metrics.registry.get_sample_value("apiserver_request_terminations_total", labels | more) == counted


def test_a_call_without_a_response_has_the_code_error() -> None:
    metrics = Metrics()
    for code in (201, None, None):
        metrics.delegated_request("authz", code)
    name = "apiserver_delegated_authz_request_total"
    assert metrics.registry.get_sample_value(name, {"code": "201"}) == 1
    assert metrics.registry.get_sample_value(name, {"code": "<error>"}) == 2


async def test_metrics_are_served_as_text() -> None:
    metrics = Metrics()
    metrics.track_cache(WatchCache(WIDGETS))
    metrics.watch_events("example.org", "v1", "widgets").inc(2)
    metrics.observe_admission("quota", "validate", "CREATE", rejected=True, seconds=0.1)
    response = await metrics.respond(make_context(target="/metrics"))
    assert isinstance(response, web.Response)
    assert isinstance(response.body, bytes)
    lines = response.body.decode().splitlines()
    assert response.headers["Content-Type"].startswith("text/plain; version=0.0.4")
    assert 'authentication_attempts{result="success"} 0.0' in lines
    assert 'apiserver_storage_objects{resource="widgets.example.org"} 0.0' in lines
    assert 'apiserver_registered_watchers{group="example.org",resource="widgets",version="v1"} 0.0' in lines
    assert 'apiserver_watch_events_total{group="example.org",resource="widgets",version="v1"} 2.0' in lines
    assert any(line.startswith("process_cpu_seconds_total") for line in lines)
    assert await metrics.respond(make_context(target="/metrics/cadvisor")) is None


def test_two_metrics_instances_share_nothing() -> None:
    first, second = Metrics(), Metrics()
    first.stale_decision_used("tokenreviews")
    labels = {"review": "tokenreviews"}
    assert first.registry.get_sample_value("apiserver_stale_verdicts_total", labels) == 1
    assert second.registry.get_sample_value("apiserver_stale_verdicts_total", labels) is None


def test_webhook_calls_do_not_count_as_latency_of_the_server() -> None:
    metrics, labels = Metrics(), request_labels(make_context(), served=True)
    metrics.observe_request(labels, 200, 3.0, webhook_seconds=2.0)
    names = ("verb", "dry_run", "group", "version", "resource", "subresource", "scope", "component")
    found = dict(zip(names, labels, strict=True))
    sums = {
        family: metrics.registry.get_sample_value(f"apiserver_request_{family}_seconds_sum", found)
        for family in ("duration", "sli_duration")
    }
    assert sums == {"duration": 3.0, "sli_duration": 1.0}
