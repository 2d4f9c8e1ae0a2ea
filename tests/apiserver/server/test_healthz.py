"""The health endpoints return the texts of kube-apiserver (WIRE-I3 to WIRE-I5)."""

from __future__ import annotations

import asyncio
import logging

import pytest
from aiohttp import web

from apiserver.authorization.authorizer import NO_OPINION, AccessAttributes, Authorizer, Decision
from apiserver.meta.errors import ServiceUnavailable
from apiserver.request.context import ANONYMOUS, User
from apiserver.server.healthz import READINESS, HealthChecks
from tests.apiserver.endpoints.request_contexts import make_context

SCRAPER = User("scraper")


class MetricsReaders:
    """Allows SCRAPER to get /metrics, and nothing else."""

    asked = 0

    async def authorize(self, attributes: AccessAttributes) -> Decision:
        self.asked += 1
        allowed = (attributes.user, attributes.verb, attributes.path) == (SCRAPER, "get", "/metrics")
        return Decision(allowed=True) if allowed else NO_OPINION


class Unreachable:
    async def authorize(self, attributes: AccessAttributes) -> Decision:
        raise ServiceUnavailable("no answer")


def fail() -> None:
    raise RuntimeError("the secret reason")


@pytest.fixture
def checks() -> HealthChecks:
    checks = HealthChecks()
    checks.add("log", lambda: None)
    return checks


async def get(
    checks: HealthChecks, target: str, *, user: User = SCRAPER, authorizer: Authorizer | None = None
) -> tuple[int, str]:
    context = make_context(target=target, user=user)
    response = await checks.respond(context, authorizer=authorizer or MetricsReaders())
    assert isinstance(response, web.Response)
    assert isinstance(response.body, bytes)
    assert response.headers["Content-Type"] == "text/plain; charset=utf-8"
    assert response.headers["X-Content-Type-Options"] == "nosniff"
    return response.status, response.body.decode()


async def test_passing_checks_answer_ok(checks: HealthChecks) -> None:
    for path in ("/healthz", "/livez", "/readyz", "/readyz/ping"):
        assert await get(checks, path) == (200, "ok")


async def test_checks_are_listed_on_request(checks: HealthChecks) -> None:
    assert await get(checks, "/livez?verbose") == (200, "[+]ping ok\n[+]log ok\nlivez check passed\n")


async def test_a_failing_endpoint_lists_the_checks_and_withholds_the_reason(checks: HealthChecks) -> None:
    checks.add("informer-sync", fail, endpoints=READINESS)
    body = "[+]ping ok\n[+]log ok\n[-]informer-sync failed: reason withheld\nreadyz check failed\n"
    assert await get(checks, "/readyz") == (500, body)
    assert await get(checks, "/livez") == (200, "ok")


async def test_the_path_of_a_single_check_returns_its_error(checks: HealthChecks) -> None:
    checks.add("informer-sync", fail, endpoints=READINESS)
    assert await get(checks, "/readyz/informer-sync") == (500, "internal server error: the secret reason\n")


async def test_the_note_of_a_passing_check_is_listed_verbosely(checks: HealthChecks) -> None:
    notes = ["the file is invalid"]
    checks.add("config", notes.pop, endpoints=READINESS)
    assert await get(checks, "/readyz?verbose") == (
        200,
        "[+]ping ok\n[+]log ok\n[+]config ok: the file is invalid\nreadyz check passed\n",
    )
    notes += ["the file is invalid"] * 2
    assert await get(checks, "/readyz") == (200, "ok")
    assert await get(checks, "/readyz/config") == (200, "ok")


@pytest.mark.parametrize("user", [ANONYMOUS, User("someone")], ids=["anonymous", "another user"])
async def test_only_who_may_get_metrics_sees_reasons_and_notes(checks: HealthChecks, user: User) -> None:
    checks.add("admission-policies", lambda: "policy-of-bob does not compile", endpoints=READINESS)
    body = "[+]ping ok\n[+]log ok\n[+]admission-policies ok\nreadyz check passed\n"
    assert await get(checks, "/readyz?verbose", user=user) == (200, body)
    checks.add("informer-sync", fail, endpoints=READINESS)
    body = "[+]ping ok\n[+]log ok\n[+]admission-policies ok\n[-]informer-sync failed: reason withheld\n"
    assert await get(checks, "/readyz", user=user) == (500, f"{body}readyz check failed\n")
    withheld = (500, "internal server error: reason withheld\n")
    assert await get(checks, "/readyz/informer-sync", user=user) == withheld


async def test_texts_are_withheld_if_the_right_cannot_be_reviewed(checks: HealthChecks) -> None:
    checks.add("config", lambda: "the file is invalid", endpoints=READINESS)
    status, body = await get(checks, "/readyz?verbose", authorizer=Unreachable())
    assert (status, "[+]config ok\n" in body) == (200, True)
    checks.add("informer-sync", fail, endpoints=READINESS)
    withheld = (500, "internal server error: reason withheld\n")
    assert await get(checks, "/readyz/informer-sync", authorizer=Unreachable()) == withheld


async def test_no_review_is_sent_if_there_is_no_text(checks: HealthChecks) -> None:
    """Probes of the kubelet and of the aggregator cost the cluster nothing."""
    reviewed = MetricsReaders()
    for target in ("/readyz", "/readyz?verbose", "/livez/ping"):
        assert (await get(checks, target, authorizer=reviewed))[0] == 200
    assert reviewed.asked == 0


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
    checks.add("cluster", hang)
    assert (await get(checks, "/readyz/cluster"))[0] == 500


@pytest.mark.parametrize("path", ["/readyz/nothing", "/livez/informer-sync", "/version", "/", "/healthy"])
async def test_other_paths_are_not_answered(checks: HealthChecks, path: str) -> None:
    checks.add("informer-sync", fail, endpoints=READINESS)
    assert await checks.respond(make_context(target=path), authorizer=MetricsReaders()) is None


def test_a_name_is_registered_once(checks: HealthChecks) -> None:
    with pytest.raises(ValueError, match="ping"):
        checks.add("ping", fail)


def test_the_paths_of_all_checks_are_listed(checks: HealthChecks) -> None:
    assert checks.paths()[:3] == ["/healthz", "/healthz/log", "/healthz/ping"]


async def test_the_former_name_of_a_check_still_works(checks: HealthChecks) -> None:
    """A probe that was configured for an earlier version keeps working; only the new name is listed."""
    checks.add("cluster", fail, endpoints=READINESS, former_name="host")
    assert (await get(checks, "/readyz/host"))[0] == (await get(checks, "/readyz/cluster"))[0] == 500
    assert await get(checks, "/readyz?exclude=host") == (200, "ok")
    assert "/readyz/cluster" in checks.paths()
    assert "/readyz/host" not in checks.paths()
    with pytest.raises(ValueError, match="already exists"):
        checks.add("host", fail)


async def test_a_check_that_fails_is_logged_once_and_again_when_it_passes(
    checks: HealthChecks, caplog: pytest.LogCaptureFixture
) -> None:
    """Probes come every few seconds."""
    errors = ["no cluster"]

    def reach() -> None:
        if errors:
            raise RuntimeError(errors[0])

    checks.add("cluster", reach, endpoints=READINESS)
    with caplog.at_level(logging.INFO, logger="apiserver.health"):
        for _ in range(3):
            await get(checks, "/readyz")
        assert await checks.failing("readyz") == ["cluster: no cluster"]
        errors.clear()
        for _ in range(2):
            await get(checks, "/readyz")
    assert await checks.failing("readyz") == []
    assert [each.getMessage() for each in caplog.records] == ["readyz check failed", "readyz check passes again"]
