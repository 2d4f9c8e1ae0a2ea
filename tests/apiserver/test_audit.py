"""Audit events of level Metadata, and the file to which they are written (WIRE-I16 to WIRE-I18)."""

from __future__ import annotations

import json
import os
import stat
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from apiserver import audit
from apiserver.audit import AuditLog
from apiserver.authentication.request_header import RequestHeaderConfig
from apiserver.endpoints.filters.audit import Audit
from apiserver.endpoints.filters.authentication import Authentication
from apiserver.meta.errors import Conflict, Unauthorized
from apiserver.meta.resource import GroupResource
from apiserver.metrics import Metrics
from apiserver.request.context import RequestContext, User
from apiserver.tls.certificates import make_ca, make_client
from tests.apiserver.endpoints.request_contexts import ALICE, Tls, make_context, ok

MALLORY = Tls(make_client(make_ca("nobody"), "mallory"))


class RecordingSink:
    def __init__(self) -> None:
        self.written: list[dict[str, Any]] = []

    def __call__(self, document: audit.AuditEvent) -> None:
        self.written.append(json.loads(json.dumps(document)))

    @property
    def stages(self) -> list[tuple[str, int | None]]:
        return [(each["stage"], each.get("responseStatus", {}).get("code")) for each in self.written]


async def test_an_event_has_user_and_request_but_no_content() -> None:
    sink = RecordingSink()
    context = make_context(
        "PUT",
        "/apis/example.org/v1/namespaces/ns/widgets/w/status?dryRun=All",
        {"Authorization": "Bearer sesame", "User-Agent": "t" * 1100, "X-Forwarded-For": "198.51.100.7, 192.0.2.9"},
        user=User("bob", groups=("g",)),
    )
    context.impersonator = ALICE
    context.annotations["authorization.k8s.io/decision"] = "allow"
    await Audit(sink, Metrics())(context, ok)
    received, complete = sink.written
    assert "responseStatus" not in received
    stamps = {complete.pop(key) for key in ("requestReceivedTimestamp", "stageTimestamp")}
    assert all(len(each) == len("2026-01-01T00:00:00.000000Z") for each in stamps)
    assert complete == {
        "kind": "Event",
        "apiVersion": "audit.k8s.io/v1",
        "level": "Metadata",
        "auditID": "audit-1",
        "stage": "ResponseComplete",
        "requestURI": "/apis/example.org/v1/namespaces/ns/widgets/w/status?dryRun=All",
        "verb": "update",
        "user": {"username": "alice", "groups": ["system:authenticated"]},
        "impersonatedUser": {"username": "bob", "groups": ["g"]},
        "sourceIPs": ["198.51.100.7", "192.0.2.9", "192.0.2.1"],
        "userAgent": "t" * 1024 + "...TRUNCATED",
        "objectRef": {
            "resource": "widgets",
            "namespace": "ns",
            "name": "w",
            "apiGroup": "example.org",
            "apiVersion": "v1",
            "subresource": "status",
        },
        "responseStatus": {"metadata": {}, "code": 200},
        "annotations": {"authorization.k8s.io/decision": "allow"},
    }


async def test_the_event_of_a_rejected_request_has_its_reason() -> None:
    async def reject(context: RequestContext) -> web.StreamResponse:
        raise Conflict(GroupResource("example.org", "widgets"), "w")

    sink = RecordingSink()
    with pytest.raises(Conflict):
        await Audit(sink, Metrics())(make_context(), reject)
    status = sink.written[-1]["responseStatus"]
    assert (status["status"], status["reason"], status["code"]) == ("Failure", "Conflict", 409)


async def test_an_unexpected_exception_is_a_panic_event_without_its_text() -> None:
    async def fail(context: RequestContext) -> web.StreamResponse:
        raise RuntimeError("hunter2")

    sink = RecordingSink()
    with pytest.raises(RuntimeError):
        await Audit(sink, Metrics())(make_context(), fail)
    assert sink.stages == [("RequestReceived", None), ("Panic", 500)]
    assert "hunter2" not in json.dumps(sink.written)


@pytest.mark.parametrize(
    ("headers", "expected"),
    [
        pytest.param({}, ["192.0.2.1"], id="the peer"),
        pytest.param({"X-Forwarded-For": "192.0.2.1"}, ["192.0.2.1"], id="the peer in X-Forwarded-For"),
        pytest.param({"X-Real-Ip": "2001:DB8::1"}, ["2001:db8::1", "192.0.2.1"], id="a real IP"),
        pytest.param({"X-Forwarded-For": "nonsense,10.0.0.1"}, ["10.0.0.1", "192.0.2.1"], id="invalid addresses"),
    ],
)
def test_source_ips_are_taken_from_headers_and_peer(headers: dict[str, str], expected: list[str]) -> None:
    assert audit.source_ips(make_context(headers=headers)) == expected


def test_each_event_is_appended_as_a_line(tmp_path: Path) -> None:
    path = tmp_path / "audit.log"
    for number in range(2):
        log = AuditLog(path)
        log.write({"n": number})
        log.close()
    assert [json.loads(line) for line in path.read_text().splitlines()] == [{"n": 0}, {"n": 1}]
    assert stat.S_IMODE(os.stat(path).st_mode) == 0o600


def test_a_full_file_is_rotated(tmp_path: Path) -> None:
    path = tmp_path / "audit.log"
    log = AuditLog(path, max_bytes=20, backups=2)
    for number in range(7):
        log.write({"number": number})
    log.close()
    files = sorted(each.name for each in tmp_path.iterdir())
    assert files == ["audit.log", "audit.log.1", "audit.log.2"]
    kept = [json.loads((tmp_path / name).read_text())["number"] for name in reversed(files)]
    assert kept == [4, 5, 6]


def test_an_event_that_cannot_be_written_is_counted(tmp_path: Path) -> None:
    lost: list[int] = []
    log = AuditLog(tmp_path / "audit.log", on_event_lost=lambda: lost.append(1))
    log.write({"bad": object()})
    log.write({"good": 1})
    log.close()
    assert lost == [1]
    assert (tmp_path / "audit.log").read_text() == '{"good":1}\n'


@pytest.mark.parametrize(
    ("headers", "tls", "message"),
    [
        pytest.param({"Authorization": "Bearer sesame"}, None, "Authentication failed, attempted: bearer", id="token"),
        pytest.param({"Authorization": "basic Zm9v"}, None, "Authentication failed, attempted: basic", id="password"),
        pytest.param({}, MALLORY, "Authentication failed, attempted: x509", id="certificate"),
        pytest.param(
            {"Authorization": "Bearer sesame"}, MALLORY, "Authentication failed, attempted: bearer, x509", id="both"
        ),
        pytest.param(
            {"X-Remote-User": "admin"}, None, "Authentication failed, no credentials provided", id="a forged identity"
        ),
        pytest.param(
            {"Authorization": "Bearer"}, None, "Authentication failed, no credentials provided", id="no token"
        ),
    ],
)
async def test_an_unauthenticated_request_leaves_one_event(
    headers: dict[str, str], tls: Tls | None, message: str
) -> None:
    class Refusing:
        async def authenticate(self, context: RequestContext) -> User:
            raise Unauthorized

    sink, metrics = RecordingSink(), Metrics()
    on_failure = Audit(sink, metrics).authentication_failed
    authentication = Authentication(Refusing(), config=RequestHeaderConfig, on_failure=on_failure)
    with pytest.raises(Unauthorized):
        await authentication(make_context(headers=headers, tls=tls), ok)
    (event,) = sink.written
    assert (event["stage"], event["user"]) == ("ResponseStarted", {})
    assert event["responseStatus"] == {"metadata": {}, "message": message, "code": 401}
    assert "sesame" not in json.dumps(event)
