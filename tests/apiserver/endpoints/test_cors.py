"""Pages of listed origins get the headers of a kube-apiserver with --cors-allowed-origins; others get none."""

from __future__ import annotations

from collections.abc import Mapping

import pytest
from aiohttp.test_utils import TestClient, TestServer

from apiserver.authorization.authorizer import Authorizer
from tests.apiserver.endpoints.filter_fakes import WATCH, FakeAuthorizer, application
from tests.apiserver.endpoints.request_contexts import ok

DASHBOARD = "https://dashboard.example.org"
WIDGETS = "/apis/example.org/v1/widgets"
ALLOWED = ["^https://dashboard\\.example\\.org$", "//localhost:"]
PREFLIGHT = {"Access-Control-Request-Method": "GET", "Access-Control-Request-Headers": "authorization"}


async def send(
    method: str, origin: str, *, path: str = WIDGETS, authorizer: Authorizer | None = None
) -> tuple[int, Mapping[str, str]]:
    app = application(ok, authorizer=authorizer or FakeAuthorizer(), cors_allowed_origins=ALLOWED)
    headers = {**(PREFLIGHT if method == "OPTIONS" else {}), **({"Origin": origin} if origin else {})}
    async with TestClient(TestServer(app)) as client, client.request(method, path, headers=headers) as response:
        await response.read()
        return response.status, response.headers


@pytest.mark.parametrize("origin", [DASHBOARD, "http://localhost:3000"])
async def test_a_listed_origin_gets_the_headers_of_kube_apiserver(origin: str) -> None:
    status, headers = await send("GET", origin)
    assert status == 200
    assert headers["Access-Control-Allow-Origin"] == origin
    assert headers["Access-Control-Allow-Credentials"] == "true"
    assert headers["Access-Control-Expose-Headers"] == "Date"
    assert "Origin" in headers["Vary"]


async def test_a_preflight_request_is_answered_without_credentials_and_rights() -> None:
    status, headers = await send("OPTIONS", DASHBOARD, authorizer=FakeAuthorizer([]))
    assert status == 204
    assert headers["Access-Control-Allow-Origin"] == DASHBOARD
    assert headers["Access-Control-Allow-Methods"] == "POST, GET, OPTIONS, PUT, DELETE, PATCH"
    assert "Authorization" in headers["Access-Control-Allow-Headers"].split(", ")
    assert headers["Audit-ID"] == "audit-1"


async def test_a_page_can_read_why_it_is_refused() -> None:
    status, headers = await send("GET", DASHBOARD, authorizer=FakeAuthorizer([]))
    assert status == 403
    assert headers["Access-Control-Allow-Origin"] == DASHBOARD


async def test_a_watch_has_the_headers() -> None:
    _, headers = await send("GET", DASHBOARD, path=WATCH)
    assert headers["Access-Control-Allow-Origin"] == DASHBOARD


@pytest.mark.parametrize(
    "origin", ["", "https://dashboard.example.org.attacker.net", "http://dashboard.example.org", "null"]
)
async def test_other_origins_get_no_header(origin: str) -> None:
    for method in ("GET", "OPTIONS"):
        _, headers = await send(method, origin)
        assert not [name for name in headers if name.lower().startswith("access-control-")]
