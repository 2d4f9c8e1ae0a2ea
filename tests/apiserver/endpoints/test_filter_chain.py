"""The whole filter chain, and the headers that every response has."""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping

import pytest
from aiohttp import web
from aiohttp.test_utils import TestClient, TestServer

from apiserver.authentication.authenticator import UnionAuthenticator
from apiserver.authorization.authorizer import (
    STALE_WARNING,
    standard_authorizer,
)
from apiserver.endpoints.filters import response_headers as headers
from apiserver.meta.errors import BadRequest
from apiserver.metrics import Metrics
from apiserver.request.context import RequestContext
from tests.apiserver.endpoints.filter_fakes import WATCH, FakeAuthorizer, application, raising
from tests.apiserver.endpoints.request_contexts import ok


def test_long_warnings_are_truncated_and_then_dropped() -> None:
    short = ["a", "b"]
    assert headers.truncated_warnings([*short, "a", "bad\nline"]) == short
    long = [f"{n:02}" + "x" * 500 for n in range(20)]
    truncated = headers.truncated_warnings(long)
    assert truncated == [text[:256] for text in long[:16]]


async def fetch(app: web.Application, target: str, **sent: str) -> tuple[int, Mapping[str, str], bytes, list[str]]:
    async with TestClient(TestServer(app)) as client, client.get(target, headers=sent) as response:
        return response.status, response.headers, await response.read(), response.headers.getall("Warning", [])


async def warning(context: RequestContext) -> web.StreamResponse:
    for text in ('say "\\hi"', "again", "again"):
        context.warn(text)
    return web.Response(body=b"{}")


async def test_every_response_has_the_common_headers() -> None:
    status, sent, _, warnings = await fetch(application(warning), "/apis/example.org/v1/widgets")
    assert status == 200
    assert sent["Audit-ID"] == "audit-1"
    assert sent["Cache-Control"] == "no-cache, private"
    assert "Date" in sent
    assert "Server" not in sent
    assert warnings == ['299 - "say \\"\\\\hi\\""', '299 - "again"']


async def test_an_error_response_has_the_common_headers() -> None:
    app = application(ok, authorizer=FakeAuthorizer([]))
    status, sent, body, _ = await fetch(app, "/apis/example.org/v1/widgets")
    assert status == 403
    assert json.loads(body)["kind"] == "Status"
    assert sent["Audit-ID"] == "audit-1"
    assert sent["X-Content-Type-Options"] == "nosniff"


async def test_a_stream_has_the_common_headers() -> None:
    async def stream(context: RequestContext) -> web.StreamResponse:
        response = web.StreamResponse(headers={"Cache-Control": "no-store"})
        await response.prepare(context.http)
        await response.write(b"{}")
        return response

    app = application(stream, authorizer=FakeAuthorizer(stale=True))
    status, sent, _, warnings = await fetch(app, WATCH)
    assert status == 200
    assert (sent["Audit-ID"], sent["Cache-Control"]) == ("audit-1", "no-store")
    assert warnings == [f'299 - "{STALE_WARNING}"']


async def test_while_draining_new_watches_are_sent_elsewhere() -> None:
    """client-go's reflector repeats a watch that was refused so, from where it was; other requests are served."""
    assert (await fetch(application(ok), WATCH))[0] == 200
    app = application(ok, is_draining=lambda: True)
    status, sent, body, _ = await fetch(app, WATCH)
    assert (status, sent["Retry-After"]) == (429, "1")
    refused = json.loads(body)
    assert (refused["reason"], refused["message"]) == ("TooManyRequests", "apiserver is shutting down")
    assert refused["details"]["retryAfterSeconds"] == 1
    assert (await fetch(app, "/apis/example.org/v1/widgets"))[0] == 200


async def test_a_client_without_credentials_reaches_only_health_checks() -> None:
    app = application(ok, authenticator=UnionAuthenticator([]), authorizer=standard_authorizer(FakeAuthorizer()))
    assert (await fetch(app, "/readyz"))[0] == 200
    status, _, body, _ = await fetch(app, "/version")
    assert status == 403
    assert json.loads(body)["message"] == 'forbidden: User "system:anonymous" cannot get path "/version"'


async def test_a_failure_in_the_middle_of_a_stream_aborts_the_connection() -> None:
    async def broken(context: RequestContext) -> web.StreamResponse:
        response = web.StreamResponse()
        response.enable_chunked_encoding()
        await response.prepare(context.http)
        await response.write(b"half")
        raise RuntimeError("broken")

    metrics = Metrics()
    async with TestClient(TestServer(application(broken, metrics=metrics))) as client:
        response = await client.get(WATCH)
        with pytest.raises(Exception, match=r"(?i)payload|disconnected|connection|transfer"):
            await response.read()
    aborted = {"verb": "WATCH", "group": "example.org", "version": "v1", "resource": "widgets", "subresource": ""}
    aborts = metrics.registry.get_sample_value("apiserver_request_aborts_total", {**aborted, "scope": "cluster"})
    assert aborts == 1


async def test_requests_are_counted_by_verb_resource_and_scope() -> None:
    metrics = Metrics()
    app = application(raising(BadRequest("no")), metrics=metrics)
    await fetch(app, "/apis/example.org/v1/namespaces/ns/widgets/w")
    await fetch(app, "/apis/example.org/v1/gadgets/made-up")
    counted = {
        (sample.labels["verb"], sample.labels["resource"], sample.labels["scope"], sample.labels["code"])
        for metric in metrics.registry.collect()
        for sample in metric.samples
        if sample.name == "apiserver_request_total"
    }
    assert counted == {("GET", "widgets", "resource", "400"), ("GET", "", "resource", "400")}


async def test_the_access_log_holds_no_credentials(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "apiserver.access")
    await fetch(
        application(ok), "/apis/example.org/v1/widgets?limit=1", Authorization="Bearer sesame", **{"User-Agent": "t"}
    )
    [line] = [vars(record) for record in caplog.records if record.name == "apiserver.access"]
    assert (line["verb"], line["uri"], line["status"]) == ("list", "/apis/example.org/v1/widgets?limit=1", 200)
    assert (line["audit_id"], line["user"], line["user_agent"]) == ("audit-1", "alice", "t")
    assert "sesame" not in str(line)


async def test_probes_that_succeed_are_not_logged(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "apiserver.access")
    await fetch(application(ok), "/readyz")
    assert [record for record in caplog.records if record.name == "apiserver.access"] == []
