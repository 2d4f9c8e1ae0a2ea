"""Requests are counted by the names of resources that the cluster has, and by no others."""

from __future__ import annotations

from pathlib import Path

import pytest
from aiohttp import web

from apiserver.request.context import Handler, RequestContext
from apiserver.request.request_info import Query, RequestInfo, parse_request_info
from tenant_apiserver.proxy.known_resources import KnownResources
from tests.tenant_apiserver.proxy.proxied_upstream import RunningProxy, proxied_upstream

NOT_FOUND = b"HTTP/1.1 404 Not Found\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{}"


def _info(path: str) -> RequestInfo:
    return parse_request_info("GET", path, Query(""))


async def test_a_request_is_counted_by_a_resource_that_was_served_once(proxy: RunningProxy) -> None:
    """From its first request on; then with every status."""
    served, registry = proxy.upstream.answer, proxy.process.metrics.registry
    labels = {"verb": "LIST", "dry_run": "", "scope": "cluster", "subresource": "", "component": "apiserver"}
    pods = {**labels, "group": "", "version": "v1", "resource": "pods"}
    unknown = {**labels, "group": "", "version": "", "resource": ""}
    async with proxy.session() as session:
        for path, answer in (("pods", served), ("pods", NOT_FOUND), ("invented", NOT_FOUND)):
            proxy.upstream.answer = answer
            await (await session.get(f"/api/v1/{path}")).read()
    assert registry.get_sample_value("apiserver_request_total", {**pods, "code": "200"}) == 1
    assert registry.get_sample_value("apiserver_request_total", {**pods, "code": "404"}) == 1
    assert registry.get_sample_value("apiserver_request_total", {**unknown, "code": "404"}) == 1


@pytest.mark.parametrize("status", [200, 201, 101])
def test_a_success_of_the_cluster_is_learned(status: int) -> None:
    known = KnownResources()
    known.learn(_info("/api/v1/pods"), status)
    assert known.has(_info("/api/v1/pods"))


def test_a_redirect_of_the_cluster_is_not_learned() -> None:
    known = KnownResources()
    known.learn(_info("/api/v1/invented"), 301)
    assert not known.has(_info("/api/v1/invented"))


def test_an_own_answer_is_learned_in_a_version_that_the_cluster_serves() -> None:
    """A merged watch of an old version is a 200 with an ERROR event, in any version."""
    known = KnownResources(lambda *names: names == ("", "v1", "configmaps"))
    for version in ("v1", "v777"):
        known.learn_own(_info(f"/api/{version}/configmaps"), 200)
    assert known.has(_info("/api/v1/configmaps"))
    assert not known.has(_info("/api/v777/configmaps"))


async def test_an_own_answer_of_an_invented_version_is_not_counted_by_it(tmp_path: Path) -> None:
    async def answer(context: RequestContext) -> web.StreamResponse:
        return web.Response(text="own")

    async def own_answer(context: RequestContext) -> Handler | None:
        return answer

    async with proxied_upstream(tmp_path, own_answer=own_answer) as proxy:
        proxy.upstream.answer = NOT_FOUND.replace(b"404 Not Found", b"403 Forbidden")
        async with proxy.session() as session:
            assert (await session.get("/api/v777/configmaps")).status == 200
        metrics = proxy.process.metrics.registry.collect()
        assert not [sample for each in metrics for sample in each.samples if sample.labels.get("version") == "v777"]


def test_the_names_are_bounded() -> None:
    known = KnownResources()
    known.learn(_info("/api/v1/namespaces/a/pods/b/Odd%20Name"), 200)
    assert not known.has(_info("/api/v1/namespaces/a/pods/b/Odd%20Name"))
    for number in range(1000):
        known.learn(_info(f"/apis/custom.metrics.k8s.io/v1beta1/namespaces/a/pods/b/metric-{number}"), 200)
    found = [
        known.has(_info(f"/apis/custom.metrics.k8s.io/v1beta1/namespaces/a/pods/b/metric-{number}"))
        for number in range(1000)
    ]
    assert 200 < sum(found) <= 300
    assert known.has(_info("/api/v1/namespaces"))
