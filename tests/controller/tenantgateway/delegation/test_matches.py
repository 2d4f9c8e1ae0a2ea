"""The requests that a match selects, and the matches that lie within others."""

from __future__ import annotations

from typing import Any

import pytest

from controller.tenantgateway.delegation.matches import EVERYTHING, covers, parse_match
from controller.tenantgateway.delegation.model import DelegatedMatch


def path(value: str, type_: str = "PathPrefix", **more: Any) -> DelegatedMatch:
    found = parse_match({"path": {"type": type_, "value": value}, **more})
    assert found is not None
    return found


@pytest.mark.parametrize(
    ("delegated", "wanted", "expected"),
    [
        pytest.param("/finance", "/finance", True, id="the same"),
        pytest.param("/finance", "/finance/reports", True, id="below"),
        pytest.param("/static", "/static/css", True, id="the seed's valid one"),
        pytest.param("/static", "/css", False, id="the seed's invalid one"),
        pytest.param("/fin", "/finance", False, id="a part of a segment"),
        pytest.param("/finance", "/fin", False, id="above"),
        pytest.param("/finance/", "/finance", True, id="a slash at the end means nothing"),
        pytest.param("/finance", "/finance/", True, id="nor in the vertex"),
        pytest.param("/", "/anything", True, id="everything"),
        pytest.param("/a/b", "/a", False, id="the parent of it"),
        pytest.param("/a/b", "/a/c", False, id="beside it"),
        pytest.param("/Finance", "/finance", False, id="case matters"),
    ],
)
def test_prefixes_contain_each_other_segment_by_segment(delegated: str, wanted: str, expected: bool) -> None:
    """R-350, R-358."""
    assert covers(path(delegated), path(wanted)) == expected


@pytest.mark.parametrize(
    ("delegated", "wanted", "expected"),
    [
        pytest.param(path("/a"), path("/a", "Exact"), True, id="an exact path below a prefix"),
        pytest.param(path("/a"), path("/a/", "Exact"), True, id="with a slash at its end"),
        pytest.param(path("/a"), path("/ab", "Exact"), False, id="an exact path beside a prefix"),
        pytest.param(path("/a", "Exact"), path("/a", "Exact"), True, id="exactly the same"),
        pytest.param(path("/a", "Exact"), path("/a"), False, id="a prefix is more than its path"),
        pytest.param(path("/a", "Exact"), path("/a/", "Exact"), False, id="another exact path"),
        pytest.param(path("/"), path("/", "Exact"), True, id="the exact root"),
        pytest.param(EVERYTHING, path("/x"), True, id="a rule without matches"),
        pytest.param(path("/a", method="GET"), path("/a", method="GET"), True, id="the same method"),
        pytest.param(path("/a", method="GET"), path("/a"), False, id="more methods"),
        pytest.param(path("/a"), path("/a", method="POST"), True, id="one of all methods"),
        pytest.param(
            path("/a", headers=[{"name": "X-Team", "value": "b"}]),
            path("/a/b", headers=[{"name": "x-team", "value": "b"}, {"name": "y", "value": "z"}]),
            True,
            id="the header, and one more",
        ),
        pytest.param(
            path("/a", headers=[{"name": "x", "value": "b"}]),
            path("/a", headers=[{"name": "X", "value": "c"}, {"name": "x", "value": "b"}]),
            False,
            id="of two entries for one header only the first counts",
        ),
        pytest.param(
            path("/a", queryParams=[{"name": "x", "value": "b"}]),
            path("/a", headers=[{"name": "x", "value": "b"}]),
            False,
            id="a header is no parameter",
        ),
        pytest.param(
            path("/a", headers=[{"name": "x", "value": "b"}]),
            path("/a", headers=[{"name": "x", "value": "b", "type": "RegularExpression"}]),
            False,
            id="a pattern is no value",
        ),
    ],
)
def test_one_match_covers_another(delegated: DelegatedMatch, wanted: DelegatedMatch, expected: bool) -> None:
    assert covers(delegated, wanted) == expected


@pytest.mark.parametrize(
    "match",
    [
        pytest.param({"path": {"type": "RegularExpression", "value": "/a.*"}}, id="a regular expression"),
        pytest.param({"path": {"type": "Implementation", "value": "/a"}}, id="an unknown type"),
        pytest.param({"path": {"value": "a"}}, id="no slash"),
        pytest.param({"path": {"value": "/a/../b"}}, id="a parent segment"),
        pytest.param({"path": {"value": "/a/./b"}}, id="an own segment"),
        pytest.param({"path": {"value": "/a//b"}}, id="an empty segment"),
        pytest.param({"path": {"value": "/a//"}}, id="two slashes at the end"),
        pytest.param({"path": {"type": "Exact", "value": "/a/.."}}, id="a parent segment at the end"),
        pytest.param({"path": {"value": "/a%2Fb"}}, id="an encoded slash"),
        pytest.param({"path": {"value": "/a/%2e%2E/b"}}, id="an encoded parent segment"),
        pytest.param({"path": {"value": "/a/.%2e"}}, id="a parent segment that is encoded in part"),
        pytest.param({"path": {"value": "/a%5Cb"}}, id="an encoded backslash"),
        pytest.param({"path": {"value": "/a\\..\\b"}}, id="a backslash"),
    ],
)
def test_paths_that_may_mean_several_things_are_refused(match: dict[str, Any]) -> None:
    assert parse_match(match) is None


def test_a_match_reads_like_its_path() -> None:
    assert [str(path(each)) for each in ("/", "/a", "/a/b/")] == ["/", "/a", "/a/b"]
    assert parse_match({}) == EVERYTHING
