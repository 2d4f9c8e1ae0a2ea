"""Requests that a page of another origin makes a browser send, and those of the user."""

from __future__ import annotations

import re

import pytest
from multidict import CIMultiDict, CIMultiDictProxy

from tenant_apiserver.ui.same_origin import has_wrong_host, new_hostname, refusal

HOST = ("Host", "127.0.0.1:8001")
OWN_NAME = "tenants-0123456789abcdef.localhost"
OWN = ("Origin", "http://127.0.0.1:8001")
MARK = ("X-Tenant-UI", "1")
NAVIGATION = (("Sec-Fetch-Mode", "navigate"), ("Sec-Fetch-Dest", "document"))
LIST = "/apis/apps.cozystack.io/v1alpha1/tenants"

Pairs = tuple[tuple[str, str], ...]


def _headers(*pairs: tuple[str, str]) -> CIMultiDictProxy[str]:
    return CIMultiDictProxy(CIMultiDict([HOST, *pairs]))


def _site(value: str) -> tuple[str, str]:
    return "Sec-Fetch-Site", value


@pytest.mark.parametrize(
    ("hosts", "wrong"),
    [
        (("127.0.0.1:8001",), False),
        (("localhost:8001",), False),
        (("LOCALHOST:8001",), False),
        (("[::1]:8001",), False),
        ((f"{OWN_NAME}:8001",), False),
        ((OWN_NAME,), True),
        ((f"{OWN_NAME}:8002",), True),
        ((f"x.{OWN_NAME}:8001",), True),
        (("tenants-ffffffffffffffff.localhost:8001",), True),
        (("127.0.0.1",), True),
        (("127.0.0.1:8002",), True),
        (("attacker.example:8001",), True),
        (("localhost.attacker.example:8001",), True),
        (("127.0.0.1:8001.attacker.example",), True),
        (("127.0.0.1.:8001",), True),
        (("0.0.0.0:8001",), True),
        (("",), True),
        ((), True),
        (("127.0.0.1:8001", "attacker.example"), True),
        (("attacker.example", "127.0.0.1:8001"), True),
    ],
)
def test_only_the_names_of_loopback_with_the_port_are_hosts(hosts: tuple[str, ...], wrong: bool) -> None:
    headers = CIMultiDictProxy(CIMultiDict(("Host", each) for each in hosts))
    assert has_wrong_host(headers, 8001, OWN_NAME) is wrong


@pytest.mark.parametrize(
    ("host", "wrong"),
    [
        ("127.0.0.1", False),
        ("127.0.0.1:80", False),
        ("localhost", False),
        ("[::1]", False),
        (OWN_NAME, False),
        ("127.0.0.1:8001", True),
        ("127.0.0.1:", True),
        ("attacker.example", True),
        ("attacker.example:80", True),
        ("", True),
    ],
)
def test_browsers_leave_out_port_80(host: str, wrong: bool) -> None:
    headers = CIMultiDictProxy(CIMultiDict([("Host", host)]))
    assert has_wrong_host(headers, 80, OWN_NAME) is wrong


def test_the_origin_of_port_80_is_that_of_the_host() -> None:
    pairs = [("Host", "localhost"), ("Origin", "http://localhost"), _site("same-origin"), MARK]
    assert refusal("POST", LIST, CIMultiDictProxy(CIMultiDict(pairs))) == ""


def test_no_two_starts_have_the_same_name() -> None:
    """A service worker, for example, that an earlier server of a port has left in a browser is of another origin."""
    names = {new_hostname() for _ in range(100)}
    assert len(names) == 100
    assert all(re.fullmatch(r"tenants-[0-9a-f]{16}\.localhost", each) for each in names)


@pytest.mark.parametrize(
    ("method", "path", "pairs"),
    [
        pytest.param("GET", LIST, (_site("same-origin"),), id="a read of the page"),
        pytest.param("GET", LIST, (), id="a read of a program"),
        pytest.param("GET", "/", (_site("none"), *NAVIGATION), id="an address that is typed"),
        pytest.param("GET", "/login", (_site("none"), *NAVIGATION), id="the URL from the terminal"),
        pytest.param("GET", "/login", (_site("cross-site"), *NAVIGATION), id="the URL from a file"),
        pytest.param("POST", LIST, (_site("same-origin"), OWN, MARK), id="a write of the page"),
        pytest.param("DELETE", LIST, (OWN, MARK), id="a write of a browser without fetch metadata"),
    ],
)
def test_the_page_and_its_user_pass(method: str, path: str, pairs: Pairs) -> None:
    assert refusal(method, path, _headers(*pairs)) == ""


@pytest.mark.parametrize(
    ("method", "path", "pairs"),
    [
        pytest.param("GET", LIST, (_site("cross-site"),), id="fetch of another site"),
        pytest.param("GET", LIST, (_site("same-site"),), id="fetch of another port"),
        pytest.param("GET", LIST, (_site("none"), *NAVIGATION), id="the API in the address bar"),
        pytest.param("GET", LIST, (_site("same-origin"), _site("cross-site")), id="two values"),
        pytest.param("GET", LIST, (("Origin", "http://127.0.0.1:6666"),), id="origin of another port"),
        pytest.param("GET", LIST, (("Origin", "null"),), id="origin of a sandboxed frame"),
        pytest.param("GET", LIST, (OWN, ("Origin", "https://attacker.example")), id="two origins"),
        pytest.param("GET", "/static/main.js", (_site("cross-site"),), id="script of another site"),
        pytest.param("GET", "/", (_site("cross-site"), *NAVIGATION), id="a link of another site"),
        pytest.param("GET", "/", (_site("same-site"), *NAVIGATION), id="a link of another port"),
        pytest.param(
            "GET",
            "/login",
            (_site("cross-site"), ("Sec-Fetch-Mode", "no-cors"), ("Sec-Fetch-Dest", "image")),
            id="image",
        ),
        pytest.param(
            "GET",
            "/login",
            (_site("cross-site"), ("Sec-Fetch-Mode", "navigate"), ("Sec-Fetch-Dest", "iframe")),
            id="frame",
        ),
        pytest.param("GET", LIST, (("Upgrade", "websocket"), ("Connection", "Upgrade")), id="an upgrade"),
        pytest.param("POST", LIST, (_site("same-origin"), OWN), id="a write without the mark"),
        pytest.param("POST", LIST, (_site("same-origin"), OWN, MARK, MARK), id="a write with two marks"),
        pytest.param("POST", LIST, (_site("same-origin"), MARK), id="a write without an origin"),
        pytest.param("POST", LIST, (_site("same-site"), OWN, MARK), id="a write of another port"),
        pytest.param("POST", LIST, (_site("none"), OWN, MARK), id="a write of nobody"),
        pytest.param("POST", LIST, (("Origin", "http://localhost:8001"), MARK), id="a write of another name"),
        pytest.param("POST", LIST, (("Origin", "https://127.0.0.1:8001"), MARK), id="a write of another scheme"),
        pytest.param("POST", "/login", (_site("cross-site"), *NAVIGATION), id="a form that logs in"),
        pytest.param("OPTIONS", LIST, (("Origin", "https://attacker.example"),), id="a preflight"),
    ],
)
def test_everything_else_is_refused(method: str, path: str, pairs: Pairs) -> None:
    assert refusal(method, path, _headers(*pairs))
