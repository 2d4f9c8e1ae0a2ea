"""Each filter in front of a fake handler, and the whole filter chain."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import json
import logging
import weakref
from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Any

import pytest
from aiohttp import web
from aiohttp.test_utils import TestClient, TestServer

from apiserver.authentication.authenticator import UnionAuthenticator
from apiserver.authentication.request_header import RequestHeaderConfig
from apiserver.authorization.authorizer import (
    STALE_WARNING,
    AccessAttributes,
    AccessDenied,
    Decision,
    standard_authorizer,
)
from apiserver.endpoints.filters import response_headers as headers
from apiserver.endpoints.filters.authentication import Authentication, RequestAuthenticator
from apiserver.endpoints.filters.authorization import Authorization
from apiserver.endpoints.filters.chain import FilterConfig, build_filters
from apiserver.endpoints.filters.error_response import ErrorResponses, status_error_of
from apiserver.endpoints.filters.impersonation import Impersonation, RejectImpersonation
from apiserver.endpoints.filters.max_in_flight import MaxInFlight
from apiserver.endpoints.filters.request_deadline import RequestDeadline, requested_timeout
from apiserver.endpoints.responsewriters import StreamedResponse
from apiserver.meta.errors import BadRequest, ServiceUnavailable, StatusError, Timeout, TooManyRequests, Unauthorized
from apiserver.metrics import Metrics
from apiserver.request import request_info
from apiserver.request.bytes_in_flight import BytesInFlight
from apiserver.request.context import Handler, RequestContext, User, compose
from apiserver.request.request_info import Query
from tests.apiserver.endpoints.request_contexts import ALICE, FakeConnection, make_context, ok

WATCH = "/apis/example.org/v1/widgets?watch=true"
ADMIN = User("admin", groups=("system:masters",))


class FakeAuthorizer:
    """Allows the requests in `allowed`, written 'verb resource[/subresource] [namespace/]name'; all if it is None."""

    def __init__(self, allowed: Sequence[str] | None = None, *, stale: bool = False) -> None:
        self.allowed = allowed
        self.stale = stale
        self.questions: list[str] = []

    async def authorize(self, attributes: AccessAttributes) -> Decision:
        resource = attributes.resource + (f"/{attributes.subresource}" if attributes.subresource else "")
        namespace = f"{attributes.namespace}/" if attributes.namespace else ""
        question = f"{attributes.verb} {resource} {namespace}{attributes.name}"
        self.questions.append(question)
        allowed = self.allowed is None or question in self.allowed
        return Decision(allowed=allowed, reason="by the fake", stale=self.stale)


class FixedAuthenticator:
    """Authenticates every request as `user`."""

    def __init__(self, user: User = ALICE) -> None:
        self.user = user

    async def authenticate(self, context: RequestContext) -> User:
        return self.user


class FailingAuthenticator:
    def __init__(self, error: StatusError) -> None:
        self._error = error

    async def authenticate(self, context: RequestContext) -> User:
        raise self._error


class Gate:
    """A handler that returns once `open` is set."""

    def __init__(self) -> None:
        self.entered = asyncio.Event()
        self.open = asyncio.Event()
        self.finished = asyncio.Event()

    async def __call__(self, context: RequestContext) -> web.StreamResponse:
        self.entered.set()
        await self.open.wait()
        self.finished.set()
        return web.Response()


def json_body(response: web.StreamResponse) -> dict[str, Any]:
    assert isinstance(response, web.Response)
    assert isinstance(response.body, bytes)
    parsed: dict[str, Any] = json.loads(response.body)
    return parsed


def raising(error: BaseException) -> Handler:
    async def handler(context: RequestContext) -> web.StreamResponse:
        raise error

    return handler


# error responses


async def test_a_status_error_becomes_its_status() -> None:
    response = await ErrorResponses()(make_context(), raising(TooManyRequests("slow down", retry_after=3)))
    assert (response.status, response.headers["Retry-After"]) == (429, "3")
    assert json_body(response)["reason"] == "TooManyRequests"


async def test_after_a_504_the_connection_is_closed() -> None:
    response = await ErrorResponses()(make_context(), raising(Timeout("too slow")))
    assert (response.status, response.keep_alive) == (504, False)


class Body(bytearray):
    """Can be referenced weakly."""


async def test_what_a_rejected_request_has_held_is_freed_at_once() -> None:
    """ATTACK-19: bodies that wait for a garbage collection would be hundreds of MiB."""
    held: list[weakref.ref[Body]] = []

    async def reject(_: RequestContext) -> web.StreamResponse:
        body = Body(b"content")
        held.append(weakref.ref(body))
        raise BadRequest("no")

    gc.disable()
    try:
        assert (await ErrorResponses()(make_context(), reject)).status == 400
        assert held[0]() is None
    finally:
        gc.enable()


async def test_an_unexpected_exception_is_logged_and_leaks_nothing(caplog: pytest.LogCaptureFixture) -> None:
    response = await ErrorResponses()(make_context(), raising(RuntimeError("the password is hunter2")))
    assert response.status == 500
    assert "hunter2" not in json.dumps(json_body(response))
    [record] = caplog.records
    assert record.exc_info is not None
    assert vars(record)["audit_id"] == "audit-1"


async def test_a_lost_connection_is_not_logged(caplog: pytest.LogCaptureFixture) -> None:
    with pytest.raises(ConnectionResetError):
        await ErrorResponses()(make_context(), raising(ConnectionResetError()))
    assert caplog.records == []


@pytest.mark.parametrize(
    ("raised", "code", "reason"),
    [
        pytest.param(web.HTTPNotFound(), 404, "NotFound", id="404"),
        pytest.param(web.HTTPMethodNotAllowed("GET", ["PUT"]), 405, "MethodNotAllowed", id="405"),
        pytest.param(web.HTTPRequestEntityTooLarge(1, 2), 413, "RequestEntityTooLarge", id="413"),
        pytest.param(web.HTTPBadRequest(), 400, "BadRequest", id="400"),
        pytest.param(web.HTTPExpectationFailed(), 417, "", id="417"),
        pytest.param(web.HTTPInternalServerError(), 500, "InternalError", id="500"),
    ],
)
def test_errors_of_aiohttp_become_statuses(raised: web.HTTPException, code: int, reason: str) -> None:
    error = status_error_of(raised)
    assert (error.code, error.reason) == (code, reason)


# deadline


async def test_a_read_that_takes_too_long_is_a_504() -> None:
    with pytest.raises(Timeout, match=r"^Timeout: request did not complete within the allotted timeout$"):
        await RequestDeadline(limit=0.01)(make_context(), Gate())


async def test_a_write_has_a_shorter_deadline() -> None:
    with pytest.raises(Timeout, match="requested timeout - context deadline exceeded"):
        await RequestDeadline(write_limit=0.01)(make_context("PUT"), Gate())


async def test_a_client_may_request_a_shorter_timeout() -> None:
    context = make_context(target="/apis/example.org/v1/widgets?timeout=10ms")
    with pytest.raises(Timeout):
        await RequestDeadline()(context, Gate())


async def test_the_context_of_a_write_has_its_deadline() -> None:
    context, gate = make_context("PUT", target="/apis/example.org/v1/widgets/a?timeout=5s"), Gate()
    gate.open.set()
    assert context.deadline == context.received_at + 34
    await RequestDeadline()(context, gate)
    assert context.deadline == context.received_at + 5


async def test_a_watch_is_exempt_from_the_request_deadline() -> None:
    gate = Gate()
    gate.open.set()
    await RequestDeadline(limit=-1)(make_context(target=f"{WATCH}&timeout=nonsense"), gate)
    assert gate.finished.is_set()


async def test_a_timeout_error_of_a_handler_is_not_converted() -> None:
    with pytest.raises(TimeoutError, match="mine"):
        await RequestDeadline()(make_context(), raising(TimeoutError("mine")))


async def test_a_write_continues_after_its_client_disconnects() -> None:
    gate = Gate()
    request = asyncio.create_task(_call(RequestDeadline(), make_context("PUT"), gate))
    await gate.entered.wait()
    request.cancel()
    with pytest.raises(asyncio.CancelledError):
        await request
    gate.open.set()
    await gate.finished.wait()


async def test_a_read_ends_when_its_client_disconnects() -> None:
    gate = Gate()
    request = asyncio.create_task(_call(RequestDeadline(), make_context(), gate))
    await gate.entered.wait()
    request.cancel()
    with pytest.raises(asyncio.CancelledError):
        await request
    gate.open.set()
    await asyncio.sleep(0)
    assert not gate.finished.is_set()


async def _call(deadline: RequestDeadline, context: RequestContext, handler: Handler) -> web.StreamResponse:
    return await deadline(context, handler)


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        pytest.param("30s", 30, id="seconds"),
        pytest.param("0m1.5s", 1.5, id="a fraction"),
        pytest.param("250000us", 0.25, id="microseconds"),
        pytest.param("250000\u00b5s", 0.25, id="microseconds with their sign"),
        pytest.param("0", 60, id="zero"),
        pytest.param("2m", 60, id="too much"),
        pytest.param("-5s", 60, id="negative"),
    ],
)
def test_a_timeout_is_a_go_duration(text: str, seconds: float) -> None:
    assert requested_timeout(text, 60.0) == pytest.approx(seconds)


@pytest.mark.parametrize("text", ["", "30", "s", "1.s.", "nan", "1e3s", "1s ", "٣s"])
def test_an_invalid_timeout_is_rejected(text: str) -> None:
    with pytest.raises(BadRequest, match="invalid timeout specified in the request URL - time: invalid duration"):
        requested_timeout(text, 60.0)


# authentication


@pytest.mark.parametrize(
    "connection",
    ["X-Remote-User, close", "Authorization", "close,IMPERSONATE-USER", "x-remote-extra-scopes", "X-Custom-User"],
)
async def test_connection_must_not_name_identity_headers(connection: str) -> None:
    config = RequestHeaderConfig(username_headers=("X-Custom-User",))
    with pytest.raises(BadRequest):
        await Authentication(FixedAuthenticator(), config=lambda: config)(
            make_context(headers={"Connection": connection}), ok
        )


async def test_a_long_connection_header_is_a_bad_request() -> None:
    """ATTACK-19: looking for identity headers in it would take long, before anyone is authenticated."""
    fields = [("Connection", "a," * 100)] * 6
    with pytest.raises(BadRequest, match="at most 1024 characters"):
        await Authentication(FixedAuthenticator(), config=RequestHeaderConfig)(make_context(headers=fields), ok)


async def test_connection_may_name_other_headers() -> None:
    context = make_context(headers={"Connection": "keep-alive, Upgrade"})
    await Authentication(FixedAuthenticator(), config=RequestHeaderConfig)(context, ok)
    assert context.user == ALICE


@pytest.mark.parametrize(
    ("authenticator", "result"),
    [
        pytest.param(FixedAuthenticator(), "success", id="a user"),
        pytest.param(UnionAuthenticator([]), "success", id="anonymous"),
        pytest.param(FailingAuthenticator(Unauthorized()), "failure", id="a rejected token"),
        pytest.param(FailingAuthenticator(ServiceUnavailable("no cluster")), "error", id="an unreachable cluster"),
    ],
)
async def test_authentication_attempts_are_counted_by_result(authenticator: RequestAuthenticator, result: str) -> None:
    results: list[str] = []
    filter = Authentication(authenticator, config=RequestHeaderConfig, observe=results.append)
    with contextlib.suppress(StatusError):
        await filter(make_context(), ok)
    assert results == [result]


# impersonation


async def test_impersonation_is_rejected_behind_an_aggregator() -> None:
    with pytest.raises(StatusError) as raised:
        await RejectImpersonation()(make_context(headers={"Impersonate-Uid": "1"}, user=ADMIN), ok)
    assert raised.value.code == 403


async def test_a_request_without_impersonation_needs_no_permission() -> None:
    authorizer = FakeAuthorizer([])
    context = make_context(user=ALICE)
    await Impersonation(authorizer)(context, ok)
    assert authorizer.questions == []
    assert (context.user, context.impersonator) == (ALICE, None)


async def test_impersonation_requires_permission_for_every_part_of_the_identity() -> None:
    authorizer = FakeAuthorizer()
    context = make_context(
        headers=[
            ("Impersonate-User", "bob"),
            ("Impersonate-Group", "devs"),
            ("Impersonate-Group", "ops"),
            ("Impersonate-Uid", "7"),
            ("Impersonate-Extra-Acme%2fScope", "one"),
        ],
        user=ALICE,
    )
    await Impersonation(authorizer)(context, ok)
    assert authorizer.questions == [
        "impersonate users bob",
        "impersonate groups devs",
        "impersonate groups ops",
        "impersonate uids 7",
        "impersonate userextras/acme/scope one",
    ]
    assert context.impersonator == ALICE
    assert context.user == User("bob", "7", ("devs", "ops", "system:authenticated"), {"acme/scope": ("one",)})


@pytest.mark.parametrize(
    ("name", "groups"),
    [
        pytest.param("bob", ("system:authenticated",), id="a user"),
        pytest.param(
            "system:serviceaccount:ns:robot",
            ("system:serviceaccounts", "system:serviceaccounts:ns", "system:authenticated"),
            id="a service account",
        ),
        pytest.param("system:anonymous", ("system:unauthenticated",), id="anonymous"),
    ],
)
async def test_an_impersonated_user_has_the_groups_that_come_with_it(name: str, groups: tuple[str, ...]) -> None:
    context = make_context(headers={"Impersonate-User": name}, user=ADMIN)
    await Impersonation(FakeAuthorizer())(context, ok)
    assert context.user.groups == groups


async def test_impersonating_a_service_account_requires_permission_in_its_namespace() -> None:
    authorizer = FakeAuthorizer(["impersonate serviceaccounts a/owner"])
    handler = Impersonation(authorizer)
    await handler(make_context(headers={"Impersonate-User": "system:serviceaccount:a:owner"}, user=ALICE), ok)
    with pytest.raises(AccessDenied):
        await handler(make_context(headers={"Impersonate-User": "system:serviceaccount:b:owner"}, user=ALICE), ok)


async def test_impersonating_a_forbidden_group_is_a_403_that_names_the_caller() -> None:
    context = make_context(headers={"Impersonate-User": "bob", "Impersonate-Group": "system:masters"}, user=ALICE)
    with pytest.raises(AccessDenied) as raised:
        await Impersonation(FakeAuthorizer(["impersonate users bob"]))(context, ok)
    assert raised.value.message == (
        'groups "system:masters" is forbidden: User "alice" cannot impersonate resource "groups" in API group "" '
        "at the cluster scope: by the fake"
    )
    assert context.user == ALICE


@pytest.mark.parametrize("header", ["Impersonate-Group", "Impersonate-Uid", "Impersonate-Extra-x", "Impersonate-Other"])
async def test_impersonation_headers_without_a_user_are_rejected(header: str) -> None:
    with pytest.raises(BadRequest, match=r"^requested .* without impersonating a user name$"):
        await Impersonation(FakeAuthorizer())(make_context(headers={header: "x"}, user=ADMIN), ok)


# requests in flight


async def test_requests_over_the_limit_get_a_retry_after() -> None:
    metrics, gate = Metrics(), Gate()
    inflight = max_in_flight(1, metrics)
    first = asyncio.create_task(_inflight(inflight, make_context(user=ALICE), gate))
    await gate.entered.wait()
    assert metrics.registry.get_sample_value("apiserver_current_inflight_requests", {"request_kind": "readOnly"}) == 1
    with pytest.raises(TooManyRequests) as raised:
        await inflight(make_context("PUT", user=ALICE), ok)
    assert raised.value.retry_after == 1
    assert metrics.registry.get_sample_value("apiserver_dropped_requests_total") == 1
    for exempt in (make_context(target=WATCH, user=ALICE), make_context(user=ADMIN)):
        assert (await inflight(exempt, ok)).status == 200
    gate.open.set()
    await first
    assert (await inflight(make_context("PUT", user=ALICE), ok)).status == 200


def max_in_flight(
    limit: int,
    metrics: Metrics,
    *,
    bytes_in_flight: BytesInFlight | None = None,
    connection: FakeConnection | None = None,
) -> MaxInFlight:
    return MaxInFlight(
        limit,
        metrics,
        bytes_in_flight=bytes_in_flight or BytesInFlight(),
        connection=connection or FakeConnection(),
    )


async def _inflight(inflight: MaxInFlight, context: RequestContext, handler: Handler) -> web.StreamResponse:
    return await inflight(context, handler)


async def test_one_user_cannot_use_the_whole_limit() -> None:
    """ATTACK-13: one user can use three quarters of the limit; the rest is left for others."""
    inflight, gate = max_in_flight(4, Metrics()), Gate()
    running = [asyncio.create_task(_inflight(inflight, make_context(user=ALICE), gate)) for _ in range(3)]
    await gate.entered.wait()
    with pytest.raises(TooManyRequests):
        await inflight(make_context(user=ALICE), ok)
    assert (await inflight(make_context(user=User("bob")), ok)).status == 200
    gate.open.set()
    await asyncio.gather(*running)
    assert (await inflight(make_context(user=ALICE), ok)).status == 200


async def test_the_watches_of_a_user_are_limited() -> None:
    """ATTACK-13: a user can open four watches per slot of the limit; those of other users do not count."""
    metrics, gate = Metrics(), Gate()
    inflight = max_in_flight(1, metrics)
    running = [asyncio.create_task(_inflight(inflight, make_context(target=WATCH, user=ALICE), gate)) for _ in range(4)]
    await gate.entered.wait()
    with pytest.raises(TooManyRequests):
        await inflight(make_context(target=WATCH, user=ALICE), ok)
    assert metrics.registry.get_sample_value("apiserver_dropped_requests_total") == 1
    for other in (make_context(target=WATCH, user=User("bob")), make_context(target=WATCH, user=ADMIN)):
        assert (await inflight(other, ok)).status == 200
    # watches do not use the slots of requests
    assert (await inflight(make_context(user=ALICE), ok)).status == 200
    gate.open.set()
    await asyncio.gather(*running)
    assert (await inflight(make_context(target=WATCH, user=ALICE), ok)).status == 200


async def test_a_failed_request_frees_its_slot() -> None:
    inflight = max_in_flight(1, Metrics())
    for _ in range(3):
        with pytest.raises(BadRequest):
            await inflight(make_context(user=ALICE), raising(BadRequest("no")))


async def test_a_connection_belongs_to_whoever_has_authenticated_on_it() -> None:
    connection = FakeConnection()
    inflight = max_in_flight(1, Metrics(), connection=connection)
    impersonated = make_context(user=User("bob"))
    impersonated.impersonator = ALICE
    for context in (make_context(user=ALICE), impersonated, make_context(target="/livez", user=ADMIN)):
        await inflight(context, ok)
    assert connection.owners == ["alice", "alice", "admin"]


async def test_the_large_heads_and_the_bodies_of_a_user_are_limited() -> None:
    bytes_in_flight = BytesInFlight(per_user=100)
    inflight, gate = max_in_flight(9, Metrics(), bytes_in_flight=bytes_in_flight, connection=FakeConnection(60)), Gate()
    running = asyncio.create_task(_inflight(inflight, make_context(target=WATCH, user=ALICE), gate))
    await gate.entered.wait()
    with pytest.raises(TooManyRequests):
        await inflight(make_context(user=ALICE), ok)
    assert (await inflight(make_context(user=User("bob")), ok)).status == 200
    gate.open.set()
    await running

    async def read_body(context: RequestContext) -> web.StreamResponse:
        for size in (30, 11):
            context.reservation.add(size)
        raise AssertionError("a body of 41 bytes was accepted")

    with pytest.raises(TooManyRequests):
        await inflight(make_context("PUT", user=ALICE), read_body)
    assert (await inflight(make_context(user=ALICE), ok)).status == 200


async def test_a_streamed_response_counts_until_it_is_sent() -> None:
    """ATTACK-19: otherwise one user could have any number of lists that are sent to slow clients."""
    gate = Gate()

    async def body() -> AsyncIterator[bytes]:
        yield b"a" * 100
        await gate.open.wait()
        yield b"b"

    async def stream(_: RequestContext) -> web.StreamResponse:
        return StreamedResponse(body=body(), memory=60, status=200, headers={})

    app = application(stream, bytes_in_flight=BytesInFlight(per_user=100))
    async with TestClient(TestServer(app)) as client:
        first = await client.get("/apis/g/v1/widgets")
        assert first.status == 200
        assert (await client.get("/apis/g/v1/widgets")).status == 429
        gate.open.set()
        assert await first.read() == b"a" * 100 + b"b"
        assert (await (await client.get("/apis/g/v1/widgets")).read()).endswith(b"b")


async def test_a_client_that_disconnects_while_a_response_is_streamed_frees_its_slot(
    caplog: pytest.LogCaptureFixture,
) -> None:
    ended = asyncio.Event()

    async def body() -> AsyncIterator[bytes]:
        try:
            while True:
                yield b"a" * 100_000
                await asyncio.sleep(0)
        finally:
            ended.set()

    async def stream(_: RequestContext) -> web.StreamResponse:
        return StreamedResponse(body=body(), memory=60, status=200, headers={})

    async with TestClient(TestServer(application(stream, max_requests_inflight=1))) as client:
        for _ in range(3):
            ended.clear()
            response = await client.get("/apis/g/v1/widgets")
            assert response.status == 200
            response.close()
            async with asyncio.timeout(5):
                await ended.wait()
    assert [record for record in caplog.records if record.levelno >= logging.WARNING] == []


# authorization


async def test_the_authorization_decision_is_an_audit_annotation() -> None:
    context = make_context(user=ALICE)
    await Authorization(FakeAuthorizer())(context, ok)
    assert context.annotations == {
        "authorization.k8s.io/decision": "allow",
        "authorization.k8s.io/reason": "by the fake",
    }


async def test_a_denied_request_never_reaches_its_handler() -> None:
    context = make_context(user=ALICE)
    with pytest.raises(AccessDenied):
        await Authorization(FakeAuthorizer([]))(context, raising(AssertionError("reached")))
    assert context.annotations["authorization.k8s.io/decision"] == "forbid"


# headers


def test_long_warnings_are_truncated_and_then_dropped() -> None:
    short = ["a", "b"]
    assert headers.truncated_warnings([*short, "a", "bad\nline"]) == short
    long = [f"{n:02}" + "x" * 500 for n in range(20)]
    truncated = headers.truncated_warnings(long)
    assert truncated == [text[:256] for text in long[:16]]


# the whole chain


def application(handler: Handler, **changes: Any) -> web.Application:
    settings: dict[str, Any] = {
        "authenticator": FixedAuthenticator(),
        "authorizer": FakeAuthorizer(),
        "request_headers": RequestHeaderConfig,
        "metrics": Metrics(),
        "served": lambda info: info.resource == "widgets",
        "max_requests_inflight": 10,
        "bytes_in_flight": BytesInFlight(),
        "connection": FakeConnection(),
        "impersonation": False,
        **changes,
    }
    call = compose(build_filters(FilterConfig(**settings)), handler)

    async def entry(http: web.Request) -> web.StreamResponse:
        query = Query(http.query_string)
        info = request_info.parse_request_info(http.method, http.path, query)
        return await call(RequestContext(http=http, info=info, query=query, audit_id="audit-1"))

    app = web.Application()
    app.router.add_route("*", "/{path:.*}", entry)
    headers.install(app)
    return app


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
