"""Health endpoints, in the words that probes and people know (WIRE-I3 to WIRE-I5)."""

from __future__ import annotations

import asyncio

import pytest
from aiohttp import web

from apiserver.server.healthz import READINESS, HealthChecks
from tests.apiserver.endpoints.request_contexts import make_context


def fail() -> None:
    raise RuntimeError("the secret reason")


@pytest.fixture
def checks() -> HealthChecks:
    checks = HealthChecks()
    checks.add("log", lambda: None)
    return checks


async def get(checks: HealthChecks, target: str) -> tuple[int, str]:
    response = await checks.respond(make_context(target=target))
    assert isinstance(response, web.Response)
    assert isinstance(response.body, bytes)
    assert response.headers["Content-Type"] == "text/plain; charset=utf-8"
    assert response.headers["X-Content-Type-Options"] == "nosniff"
    return response.status, response.body.decode()


async def test_all_is_well(checks: HealthChecks) -> None:
    for path in ("/healthz", "/livez", "/readyz", "/readyz/ping"):
        assert await get(checks, path) == (200, "ok")


async def test_checks_are_listed_on_request(checks: HealthChecks) -> None:
    assert await get(checks, "/livez?verbose") == (200, "[+]ping ok\n[+]log ok\nlivez check passed\n")


async def test_a_failure_lists_the_checks_and_withholds_the_reason(checks: HealthChecks) -> None:
    checks.add("informer-sync", fail, endpoints=READINESS)
    body = "[+]ping ok\n[+]log ok\n[-]informer-sync failed: reason withheld\nreadyz check failed\n"
    assert await get(checks, "/readyz") == (500, body)
    assert await get(checks, "/livez") == (200, "ok")


async def test_a_single_check_tells_its_reason(checks: HealthChecks) -> None:
    checks.add("informer-sync", fail, endpoints=READINESS)
    assert await get(checks, "/readyz/informer-sync") == (500, "internal server error: the secret reason\n")


async def test_what_is_worth_knowing_is_told_where_checks_are_listed_and_fails_nothing(checks: HealthChecks) -> None:
    said = ["the file is refused"]
    checks.add("config", said.pop, endpoints=READINESS)
    assert await get(checks, "/readyz?verbose") == (
        200,
        "[+]ping ok\n[+]log ok\n[+]config ok: the file is refused\nreadyz check passed\n",
    )
    said += ["the file is refused"] * 2
    assert await get(checks, "/readyz") == (200, "ok")
    assert await get(checks, "/readyz/config") == (200, "ok")


async def test_checks_can_be_excluded(checks: HealthChecks) -> None:
    checks.add("informer-sync", fail)
    status, body = await get(checks, "/readyz?verbose&exclude=informer-sync&exclude=nothing")
    assert status == 200
    assert body == (
        "[+]ping ok\n[+]log ok\n[+]informer-sync excluded: ok\n"
        'warn: some health checks cannot be excluded: no matches for "nothing"\nreadyz check passed\n'
    )


async def test_a_check_that_hangs_fails(checks: HealthChecks, monkeypatch: pytest.MonkeyPatch) -> None:
    async def hang() -> None:
        await asyncio.Event().wait()

    monkeypatch.setattr("apiserver.server.healthz._CHECK_SECONDS", 0.01)
    checks.add("host", hang)
    assert (await get(checks, "/readyz/host"))[0] == 500


@pytest.mark.parametrize("path", ["/readyz/nothing", "/livez/informer-sync", "/version", "/", "/healthy"])
async def test_other_paths_are_not_answered(checks: HealthChecks, path: str) -> None:
    checks.add("informer-sync", fail, endpoints=READINESS)
    assert await checks.respond(make_context(target=path)) is None


def test_a_name_is_given_once(checks: HealthChecks) -> None:
    with pytest.raises(ValueError, match="ping"):
        checks.add("ping", fail)


def test_paths_are_told(checks: HealthChecks) -> None:
    assert checks.paths()[:3] == ["/healthz", "/healthz/log", "/healthz/ping"]
