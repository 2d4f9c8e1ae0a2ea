"""How a browser gets a session, and what it gets without one."""

from __future__ import annotations

import json

import pytest

from tests.tenant_apiserver.ui.running_page import TENANTS, RunningPage, running_page

NAVIGATION = {"Sec-Fetch-Mode": "navigate", "Sec-Fetch-Dest": "document"}


async def test_the_url_logs_one_browser_in_once(stranger: RunningPage) -> None:
    target = stranger.login_target()
    first = await stranger.get(target)
    assert (first.status, first.headers["Location"]) == (303, "/")
    used = await stranger.get(target)
    assert used.status == 401
    assert b"This link has been used, or is too old" in used.body
    assert b"start the command again for another browser" in used.body
    assert "Set-Cookie" not in used.headers


async def test_a_browser_that_is_logged_in_may_open_the_url_again(page: RunningPage) -> None:
    again = await page.get("/login?code=used")
    assert (again.status, again.headers["Location"]) == (303, "/")
    assert "Set-Cookie" not in again.headers


async def test_the_cookie_is_only_for_requests_of_the_page(stranger: RunningPage) -> None:
    cookie = (await stranger.get(stranger.login_target())).headers["Set-Cookie"]
    pair, *attributes = [each.strip() for each in cookie.split(";")]
    name, _, token = pair.partition("=")
    assert name == f"tenant-ui-{stranger.port}"
    assert len(token) == 43
    assert sorted(attributes) == ["HttpOnly", "Path=/", "SameSite=Strict"]


@pytest.mark.parametrize("query", ["", "?code=", "?code=guess", "?code=%ff", "?code=a&code=b", f"?code={'a' * 10_000}"])
async def test_a_wrong_code_is_no_login(stranger: RunningPage, query: str) -> None:
    answer = await stranger.get(f"/login{query}")
    assert answer.status == 401
    assert "Set-Cookie" not in answer.headers


async def test_a_request_that_is_no_navigation_uses_no_code(stranger: RunningPage) -> None:
    target = stranger.login_target()
    assert (await stranger.request("HEAD", target, {})).status == 405
    assert (await stranger.get(target, {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "no-cors"})).status == 403
    assert (await stranger.get(target, {"Host": "attacker.example"})).status == 421
    assert (await stranger.get(target)).status == 303


async def test_a_login_from_a_file_leads_to_the_page_without_a_redirect(stranger: RunningPage) -> None:
    """A browser sends a strict cookie neither on a navigation from another site nor on the redirects after it."""
    answer = await stranger.get(stranger.login_target(), {"Sec-Fetch-Site": "cross-site", **NAVIGATION})
    assert answer.status == 200
    assert answer.headers["Refresh"] == "0; url=/"
    assert "Set-Cookie" in answer.headers


async def test_without_a_session_there_is_nothing(stranger: RunningPage) -> None:
    front = await stranger.get("/")
    assert front.status == 401
    assert front.headers["Content-Type"] == "text/html; charset=utf-8"
    assert b"start the command again for another browser" in front.body
    for target in ("/session", "/static/main.js", TENANTS, "/version", "/anything"):
        answer = await stranger.get(target)
        assert answer.status == 401
        assert json.loads(answer.body)["reason"] == "Unauthorized"
    assert stranger.upstream.received == []


async def test_a_session_is_no_session_of_another_page(page: RunningPage) -> None:
    async with running_page() as other:
        stolen = f"tenant-ui-{other.port}={page.cookie.partition('=')[2]}"
        for cookie in (page.cookie, stolen):
            assert (await other.get("/session", {"Cookie": cookie})).status == 401


async def test_a_cookie_that_another_port_has_set_does_not_log_the_user_out(page: RunningPage) -> None:
    own, page.cookie = page.cookie, ""
    assert (await page.get("/session", {"Cookie": f"tenant-ui-{page.port}=tossed; {own}"})).status == 200
