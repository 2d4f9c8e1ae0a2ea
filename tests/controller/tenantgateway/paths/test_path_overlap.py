"""Paths that may match the same request."""

from __future__ import annotations

from typing import Any

import pytest

from apiserver.meta.resource import Object
from controller.tenantgateway.consent.references import slim_route
from controller.tenantgateway.model import WHOLE_HOST, PathMatch
from controller.tenantgateway.parse import path_matches, routes_by_gateway
from controller.tenantgateway.paths.path_overlap import first_overlap, overlaps


def prefix(value: str) -> PathMatch:
    return PathMatch("PathPrefix", value)


def exact(value: str) -> PathMatch:
    return PathMatch("Exact", value)


ANY = PathMatch("Any", "/a.*")


@pytest.mark.parametrize(
    ("one", "other", "expected"),
    [
        pytest.param(prefix("/a"), prefix("/b"), False, id="different segments"),
        pytest.param(prefix("/fin"), prefix("/finance"), False, id="a segment that only begins alike"),
        pytest.param(prefix("/a"), prefix("/a"), True, id="the same prefix"),
        pytest.param(prefix("/a"), prefix("/a/"), True, id="a slash at the end means nothing"),
        pytest.param(prefix("/a"), prefix("/a/b"), True, id="one below the other"),
        pytest.param(prefix("/a/b"), prefix("/a/c"), False, id="siblings"),
        pytest.param(prefix("/"), prefix("/a"), True, id="the whole host"),
        pytest.param(prefix("/a"), prefix("/A"), False, id="paths have case"),
        pytest.param(exact("/a"), prefix("/a"), True, id="a prefix matches the path itself"),
        pytest.param(exact("/a/"), prefix("/a"), True, id="and the path with a slash"),
        pytest.param(exact("/a/b"), prefix("/a"), True, id="and what is below"),
        pytest.param(exact("/a"), prefix("/a/b"), False, id="but nothing above"),
        pytest.param(exact("/ab"), prefix("/a"), False, id="nor beside it"),
        pytest.param(exact("/a"), exact("/a"), True, id="the same path"),
        pytest.param(exact("/a"), exact("/a/"), False, id="another path"),
        pytest.param(ANY, exact("/z"), True, id="a pattern may match everything"),
        pytest.param(ANY, prefix("/z"), True, id="also below any prefix"),
    ],
)
def test_which_paths_overlap(one: PathMatch, other: PathMatch, expected: bool) -> None:
    assert overlaps(one, other) is expected
    assert overlaps(other, one) is expected


def test_the_first_overlap_is_named() -> None:
    paths = (prefix("/a"), prefix("/b"), prefix("/c"))
    assert first_overlap(paths, (exact("/b/x"), exact("/c"))) == prefix("/b")
    assert first_overlap(paths, (prefix("/d"),)) is None


def route(*rules: Any, namespace: str = "cozy-a") -> Object:
    parents = [{"namespace": "tenant-root", "name": "cozystack"}]
    return {"metadata": {"name": "app", "namespace": namespace}, "spec": {"parentRefs": parents, "rules": list(rules)}}


def matching(*paths: Any) -> Object:
    return {"matches": [{"path": each} for each in paths], "backendRefs": [{"name": "web", "namespace": "shop"}]}


@pytest.mark.parametrize(
    ("rules", "expected"),
    [
        pytest.param([], WHOLE_HOST, id="without rules"),
        pytest.param([{}], WHOLE_HOST, id="a rule without matches"),
        pytest.param([{"matches": [{"method": "GET"}]}], WHOLE_HOST, id="a match without a path"),
        pytest.param([{"matches": [{"path": {}}]}], WHOLE_HOST, id="the defaults of a path"),
        pytest.param(
            [matching({"type": "Exact", "value": "/b"}, {"value": "/a"}), matching({"value": "/a"})],
            (exact("/b"), prefix("/a")),
            id="all matches of all rules, each once",
        ),
        pytest.param([matching({"value": "/a"}), {}], (prefix("/"), prefix("/a")), id="one rule without matches"),
        pytest.param(
            [matching({"type": "RegularExpression", "value": "/a.*"})],
            (ANY,),
            id="a regular expression is not understood",
        ),
        pytest.param([matching({"value": "/%61"})], (PathMatch("Any", "/%61"),), id="nor is an escape"),
        pytest.param([matching({"value": "a"})], (PathMatch("Any", "a"),), id="nor what is no path"),
        pytest.param([{"matches": "x"}, None], WHOLE_HOST, id="malformed"),
    ],
)
def test_the_paths_of_a_route(rules: list[Any], expected: tuple[PathMatch, ...]) -> None:
    """The store keeps them of routes of the platform."""
    assert path_matches(route(*rules)) == expected
    slim = slim_route(route(*rules))
    assert path_matches(slim) == expected
    assert slim_route(slim) == slim


def test_only_the_paths_of_the_platform_are_kept() -> None:
    rule = matching({"value": "/a"})
    for namespace, paths in (("cozy-a", (prefix("/a"),)), ("tenant-a", WHOLE_HOST)):
        (found,) = routes_by_gateway(slim_route(route(rule, namespace=namespace)), "HTTPRoute").values()
        assert found.paths == paths
    (found,) = routes_by_gateway(route(rule), "TLSRoute").values()
    assert found.paths == WHOLE_HOST
