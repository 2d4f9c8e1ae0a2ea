"""Parsing of methods and paths into RequestInfo, one line per case."""

from __future__ import annotations

from dataclasses import asdict

import pytest

from apiserver.meta.errors import BadRequest
from apiserver.request.request_info import Query, parse_request_info

TENANTS = "/apis/apps.example.org/v1/namespaces/a/things"


@pytest.mark.parametrize(
    ("method", "target", "expected"),
    [
        pytest.param(
            "GET", "/healthz", {"verb": "get", "is_resource": False}, id="a health path is a non-resource request"
        ),
        pytest.param(
            "GET", "/apis/g/v1", {"verb": "get", "is_resource": False}, id="a group version is a non-resource request"
        ),
        pytest.param(
            "GET", "/apis/g/v1/", {"verb": "get", "is_resource": False}, id="a group version with a trailing slash"
        ),
        pytest.param("GET", "/api/v1", {"verb": "get", "is_resource": False}, id="the core group version"),
        pytest.param(
            "GET", TENANTS, {"verb": "list", "namespace": "a", "resource": "things", "name": ""}, id="a collection"
        ),
        pytest.param("GET", f"{TENANTS}/x", {"verb": "get", "name": "x", "subresource": ""}, id="an object"),
        pytest.param("GET", f"{TENANTS}/x/status", {"verb": "get", "subresource": "status"}, id="a subresource"),
        pytest.param("POST", TENANTS, {"verb": "create"}, id="create"),
        pytest.param("PUT", f"{TENANTS}/x", {"verb": "update"}, id="update"),
        pytest.param("PATCH", f"{TENANTS}/x", {"verb": "patch"}, id="patch"),
        pytest.param("DELETE", f"{TENANTS}/x", {"verb": "delete"}, id="delete"),
        pytest.param("DELETE", TENANTS, {"verb": "deletecollection"}, id="delete of a collection"),
        pytest.param("GET", f"{TENANTS}?watch=true", {"verb": "watch"}, id="watch"),
        pytest.param("GET", f"{TENANTS}?watch", {"verb": "watch"}, id="an empty watch parameter is true"),
        pytest.param("GET", f"{TENANTS}?watch=0", {"verb": "list"}, id="watch=0 is a list"),
        pytest.param("GET", f"{TENANTS}?watch=%zz", {"verb": "list"}, id="a parameter with an invalid escape is none"),
        pytest.param("GET", f"{TENANTS}?watch=False", {"verb": "list"}, id="watch=False is a list"),
        pytest.param("GET", f"{TENANTS}/x?watch=1", {"verb": "get", "name": "x"}, id="watch=1 with a name is a get"),
        pytest.param("GET", f"{TENANTS}/x/status?watch=1", {"verb": "get"}, id="watch=1 with a subresource is a get"),
        pytest.param("DELETE", f"{TENANTS}?watch=1", {"verb": "deletecollection"}, id="only a list becomes a watch"),
        pytest.param(
            "GET",
            f"{TENANTS}?watch=1&fieldSelector=metadata.name%3Dx",
            {"verb": "watch", "name": "x", "collection_path": True},
            id="a watch of one name",
        ),
        pytest.param(
            "GET",
            "/apis/g/v1/watch/namespaces/a/things",
            {"verb": "watch", "namespace": "a", "resource": "things"},
            id="the deprecated watch prefix",
        ),
        pytest.param(
            "GET",
            "/apis/g/v1/watch/namespaces/a/things/x?watch=0",
            {"verb": "watch", "name": "x"},
            id="the deprecated watch of one object",
        ),
        pytest.param(
            "PUT", "/apis/g/v1/watch/namespaces/a/things/x", {"verb": "watch"}, id="the watch prefix with any method"
        ),
        pytest.param(
            "GET", f"{TENANTS}?fieldSelector=metadata.name%3Dx", {"verb": "list", "name": "x"}, id="a list of one name"
        ),
        pytest.param(
            "GET",
            f"{TENANTS}?fieldSelector=metadata.name!=x",
            {"verb": "list", "name": ""},
            id="an inequality names none",
        ),
        pytest.param(
            "GET", f"{TENANTS}?fieldSelector=metadata.name=a/b", {"name": ""}, id="an invalid path segment names none"
        ),
        pytest.param(
            "GET", f"{TENANTS}/a%2Fstatus", {"name": "a", "subresource": "status"}, id="an escaped slash is a slash"
        ),
        pytest.param(
            "GET",
            f"{TENANTS}/a%2F..%2Fb",
            {"name": "a", "subresource": "..", "extra_parts": ("b",)},
            id="dots are no directories",
        ),
        pytest.param("GET", f"{TENANTS}/a%2F", {"verb": "get", "name": "a"}, id="an escaped slash at the end"),
        pytest.param("GET", f"{TENANTS}/a%252Fb", {"name": "a%2Fb"}, id="decoded once"),
        pytest.param("GET", f"{TENANTS}/%ffb", {"name": "\ufffdb"}, id="a byte that is not UTF-8"),
        pytest.param("GET", f"{TENANTS}/\udcffb", {"name": "\ufffdb"}, id="such a byte without an escape"),
        pytest.param(
            "GET", f"{TENANTS}/%c3%a4", {"name": "\u00e4", "path": f"{TENANTS}/\u00e4"}, id="a letter in UTF-8"
        ),
        pytest.param(
            "GET", "/api/v1/namespaces/a", {"resource": "namespaces", "namespace": "a", "name": "a"}, id="a namespace"
        ),
        pytest.param(
            "PUT",
            "/api/v1/namespaces/a/finalize",
            {"resource": "namespaces", "subresource": "finalize", "name": "a"},
            id="a namespace's subresource",
        ),
        pytest.param(
            "GET", "/apis/g/v1/namespaces", {"resource": "namespaces", "verb": "list", "namespace": ""}, id="namespaces"
        ),
        pytest.param("OPTIONS", TENANTS, {"verb": "options"}, id="another method is its own verb"),
        pytest.param(
            "GET",
            f"{TENANTS}/x/a/b",
            {"subresource": "a", "extra_parts": ("b",)},
            id="path segments after the subresource",
        ),
    ],
)
def test_method_and_path_are_parsed_into_request_info(method: str, target: str, expected: dict[str, object]) -> None:
    path, _, query = target.partition("?")
    info = asdict(parse_request_info(method, path, Query(query)))
    assert {key: info[key] for key in expected} == expected


@pytest.mark.parametrize("escape", ["%", "%f", "%zz", "%u0061"])
def test_an_invalid_escape_is_a_value_error(escape: str) -> None:
    with pytest.raises(ValueError, match="invalid escape"):
        parse_request_info("GET", f"{TENANTS}/{escape}", Query())


def test_a_path_of_many_segments_is_not_split_completely() -> None:
    """ATTACK-19"""
    info = parse_request_info("GET", f"{TENANTS}/x/a" + "/b" * 1000, Query())
    assert (info.name, info.subresource) == ("x", "a")
    assert 0 < len(info.extra_parts) < 5


def test_parameters_beyond_the_first_hundred_are_not_parsed() -> None:
    """ATTACK-19"""
    query = Query("&".join(f"p{number}=x" for number in range(101)))
    assert query.has_too_many
    assert ("p99" in query, "p100" in query) == (True, False)
    assert not Query("&".join(["p=x"] * 100)).has_too_many


def test_values_are_decoded() -> None:
    query = Query("a=b%2Cc+d&%61=%25&" + "k" * 100 + "=x")
    assert query.all("a") == ["b,c d", "%"]
    assert (query.get("a"), query.size("a"), query.size("b")) == ("b,c d", 7, 0)
    assert "k" * 100 not in query


def test_a_value_is_parsed_once() -> None:
    parsed: list[str] = []

    def parse(text: str) -> int:
        parsed.append(text)
        if text == "bad":
            raise BadRequest("no number")
        return int(text)

    query = Query("n=%37&e=bad")
    assert [query.parsed("n", parse) for _ in range(2)] == [7, 7]
    for _ in range(2):
        with pytest.raises(BadRequest):
            query.parsed("e", parse)
    assert parsed == ["7", "bad"]


@pytest.mark.parametrize(
    ("selector", "name"),
    [
        pytest.param("metadata.name%3Dx", "x", id="one term"),
        pytest.param("a=b,metadata.name==x,metadata.name=y", "x", id="the first of two names"),
        pytest.param("metadata.name=..,metadata.name=a/b,metadata.name=x", "x", id="the first valid name"),
        pytest.param("metadata.name!=x", "", id="another operator"),
        pytest.param("xmetadata.name=x,metadataxname=x", "", id="other fields"),
        pytest.param("metadata.name=x," + "a=b," * 20_000, "", id="a selector that is too long"),
    ],
)
def test_a_field_selector_may_name_the_object_of_a_list(selector: str, name: str) -> None:
    assert parse_request_info("GET", TENANTS, Query(f"fieldSelector={selector}")).name == name


def test_the_first_of_repeated_parameters_counts() -> None:
    query = Query("limit=1&limit=2&dryRun=All&dryRun=All")
    assert (query.get("limit"), query.all("dryRun")) == ("1", ["All", "All"])


@pytest.mark.parametrize(
    ("raw", "flag"),
    [
        pytest.param("", None, id="absent"),
        pytest.param("force", True, id="present and empty"),
        pytest.param("force=x", True, id="any other value"),
        pytest.param("force=FALSE", False, id="false in capitals"),
        pytest.param("force=0", False, id="zero"),
    ],
)
def test_boolean_parameters_are_parsed_like_in_go(raw: str, flag: bool | None) -> None:
    assert Query(raw).flag("force") is flag
