"""Parsing of request options, and the errors of invalid ones (WIRE-D54 to WIRE-D58, WIRE-D64 to WIRE-D71, WIRE-D87,
WIRE-D88)."""

from __future__ import annotations

import itertools
import string
import tracemalloc
from typing import Any
from urllib.parse import quote

import pytest

from apiserver.meta.errors import StatusError
from apiserver.meta.selectors import NAME, FieldSelector, LabelSelector, Requirement, parse_label_selector
from apiserver.request.options import (
    DeleteOptions,
    ListOptions,
    Preconditions,
    WatchOptions,
    WriteOptions,
    parse_create_options,
    parse_delete_options,
    parse_get_options,
    parse_list_options,
    parse_patch_options,
    parse_update_options,
    parse_watch_options,
    selector_memory,
)
from apiserver.request.request_info import Query, RequestInfo, parse_request_info

COLLECTION = parse_request_info("GET", "/apis/g/v1/namespaces/a/things", Query())
THING = parse_request_info("GET", "/apis/g/v1/watch/namespaces/a/things/x", Query())
NAMED_X = FieldSelector((Requirement(NAME, "In", ("x",)),))
LIST_INVALID = 'ListOptions.meta.k8s.io "" is invalid: '


def rejection(call: Any, *args: Any, **kwargs: Any) -> tuple[int, str]:
    with pytest.raises(StatusError) as raised:
        call(*args, **kwargs)
    return raised.value.code, raised.value.message


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        pytest.param("", ListOptions(), id="no options"),
        pytest.param("limit=5&continue=abc", ListOptions(limit=5, continue_token="abc"), id="a page"),
        pytest.param("limit=-1", ListOptions(limit=0), id="a negative limit is none"),
        pytest.param("limit=2&limit=x", ListOptions(limit=2), id="the first of repeated parameters counts"),
        pytest.param("resourceVersion=0", ListOptions(resource_version=0), id="any version"),
        pytest.param(
            "resourceVersion=7&resourceVersionMatch=Exact",
            ListOptions(resource_version=7, resource_version_match="Exact"),
            id="an exact version",
        ),
        pytest.param(
            "labelSelector=a%3Db",
            ListOptions(label_selector=LabelSelector((Requirement("a", "In", ("b",)),))),
            id="a label selector",
        ),
        pytest.param("fieldSelector=metadata.name%3Dx", ListOptions(field_selector=NAMED_X), id="a field selector"),
        pytest.param(
            "continue=t&resourceVersion=0",
            ListOptions(resource_version=0, continue_token="t"),
            id="a continue token with version 0",
        ),
        pytest.param("shardSelector=x&unknown=1", ListOptions(), id="unknown parameters are ignored"),
    ],
)
def test_list_options_are_parsed(query: str, expected: ListOptions) -> None:
    assert parse_list_options(Query(query), COLLECTION) == expected


@pytest.mark.parametrize(
    ("query", "code", "message"),
    [
        pytest.param(
            "limit=x", 400, 'strconv.ParseInt: parsing "x": invalid syntax', id="a limit that is not a number"
        ),
        pytest.param(
            f"limit={2**63}", 400, f'strconv.ParseInt: parsing "{2**63}": value out of range', id="a limit too large"
        ),
        pytest.param(
            "resourceVersion=-1",
            400,
            'invalid resource version: resourceVersion: Invalid value: "-1": strconv.ParseUint: parsing "-1": '
            "invalid syntax",
            id="a negative version",
        ),
        pytest.param(
            "continue=t&resourceVersion=5",
            400,
            "specifying resource version is not allowed when using continue",
            id="a version with a token",
        ),
        pytest.param(
            "resourceVersionMatch=Exact",
            422,
            LIST_INVALID
            + "resourceVersionMatch: Forbidden: resourceVersionMatch is forbidden unless resourceVersion is provided",
            id="a match without a version",
        ),
        pytest.param(
            "resourceVersionMatch=Exact&resourceVersion=0",
            422,
            LIST_INVALID
            + 'resourceVersionMatch: Forbidden: resourceVersionMatch "exact" is forbidden for resourceVersion "0"',
            id="an exact match of version 0",
        ),
        pytest.param(
            "resourceVersionMatch=Other&resourceVersion=1",
            422,
            LIST_INVALID
            + 'resourceVersionMatch: Unsupported value: "Other": supported values: "Exact", "NotOlderThan", ""',
            id="an unknown match",
        ),
        pytest.param(
            "resourceVersionMatch=NotOlderThan&resourceVersion=1&continue=x",
            422,
            LIST_INVALID
            + "resourceVersionMatch: Forbidden: resourceVersionMatch is forbidden when continue is provided",
            id="a match with a token",
        ),
        pytest.param(
            "sendInitialEvents=false",
            422,
            LIST_INVALID + "sendInitialEvents: Forbidden: sendInitialEvents is forbidden for list",
            id="sendInitialEvents for a list",
        ),
    ],
)
def test_invalid_list_options_are_rejected(query: str, code: int, message: str) -> None:
    assert rejection(parse_list_options, Query(query), COLLECTION) == (code, message)


def test_all_invalid_list_options_are_reported_at_once() -> None:
    code, message = rejection(parse_list_options, Query("resourceVersionMatch=x&sendInitialEvents"), COLLECTION)
    assert code == 422
    assert message.startswith(LIST_INVALID + "[resourceVersionMatch: Forbidden: ")
    assert message.endswith("sendInitialEvents is forbidden for list]")


@pytest.mark.parametrize(
    ("query", "info", "expected"),
    [
        pytest.param("watch=1", COLLECTION, WatchOptions(), id="no options"),
        pytest.param(
            "allowWatchBookmarks&timeoutSeconds=5&resourceVersion=3",
            COLLECTION,
            WatchOptions(allow_bookmarks=True, timeout_seconds=5, resource_version=3),
            id="bookmarks, a timeout and a resourceVersion",
        ),
        pytest.param("allowWatchBookmarks=false", COLLECTION, WatchOptions(), id="no bookmarks"),
        pytest.param("timeoutSeconds=0", COLLECTION, WatchOptions(), id="timeout 0 is the default"),
        pytest.param(
            "timeoutSeconds=-5", COLLECTION, WatchOptions(timeout_seconds=-5), id="a watch below 0 ends at once"
        ),
        pytest.param(
            "sendInitialEvents=true&resourceVersionMatch=NotOlderThan",
            COLLECTION,
            WatchOptions(send_initial_events=True),
            id="a streaming list",
        ),
        pytest.param("", THING, WatchOptions(field_selector=NAMED_X), id="the watch of one object"),
        pytest.param(
            "fieldSelector=metadata.name%3Dx",
            THING,
            WatchOptions(field_selector=NAMED_X),
            id="the name in the path and in the selector",
        ),
    ],
)
def test_watch_options_are_parsed(query: str, info: RequestInfo, expected: WatchOptions) -> None:
    assert parse_watch_options(Query(query), info) == expected


@pytest.mark.parametrize(
    ("query", "code", "message"),
    [
        pytest.param(
            "sendInitialEvents=true",
            422,
            LIST_INVALID
            + "resourceVersionMatch: Forbidden: sendInitialEvents requires setting resourceVersionMatch to "
            "NotOlderThan",
            id="initial events without a match",
        ),
        pytest.param(
            "resourceVersionMatch=NotOlderThan",
            422,
            LIST_INVALID + "resourceVersionMatch: Forbidden: resourceVersionMatch is forbidden for watch unless "
            "sendInitialEvents is provided",
            id="a match without initial events",
        ),
        pytest.param(
            "continue=x",
            422,
            LIST_INVALID + "continue: Forbidden: continue is forbidden for watch",
            id="a continue token",
        ),
        pytest.param(
            "fieldSelector=metadata.name%3Dy",
            400,
            "fieldSelector metadata.name doesn't match requested name",
            id="a name that differs from the path",
        ),
        pytest.param(
            "timeoutSeconds=a",
            400,
            'strconv.ParseInt: parsing "a": invalid syntax',
            id="a timeout that is not a number",
        ),
        pytest.param("timeoutSeconds=", 400, 'strconv.ParseInt: parsing "": invalid syntax', id="an empty timeout"),
    ],
)
def test_invalid_watch_options_are_rejected(query: str, code: int, message: str) -> None:
    assert rejection(parse_watch_options, Query(query), THING) == (code, message)


def test_a_get_parses_its_resource_version() -> None:
    assert [parse_get_options(Query(query)) for query in ("", "resourceVersion=0", "resourceVersion=12")] == [0, 0, 12]


@pytest.mark.parametrize(
    ("query", "message"),
    [
        pytest.param(
            "export=true", "the export parameter, deprecated since v1.14, is no longer supported", id="an export"
        ),
        pytest.param(
            "resourceVersion=abc",
            'invalid resource version: resourceVersion: Invalid value: "abc": strconv.ParseUint: parsing "abc": '
            "invalid syntax",
            id="an invalid version",
        ),
    ],
)
def test_invalid_get_options_are_rejected(query: str, message: str) -> None:
    assert rejection(parse_get_options, Query(query)) == (400, message)


@pytest.mark.parametrize(
    ("query", "agent", "expected"),
    [
        pytest.param(
            "",
            "kubectl/v1.36 (linux)",
            WriteOptions(field_manager="kubectl"),
            id="the manager defaults to the User-Agent",
        ),
        pytest.param("", "a\x07b\x7f/1", WriteOptions(field_manager="ab"), id="unprintable characters are removed"),
        pytest.param("", "é" * 100, WriteOptions(field_manager="é" * 64), id="truncated to 128 bytes"),
        pytest.param("fieldManager=me", "kubectl/1", WriteOptions(field_manager="me"), id="a named manager"),
        pytest.param("dryRun=All&dryRun=All", "a", WriteOptions(dry_run=True, field_manager="a"), id="a dry run"),
        pytest.param(
            "fieldValidation=Strict",
            "a",
            WriteOptions(field_manager="a", field_validation="Strict"),
            id="strict validation",
        ),
    ],
)
def test_write_options_are_parsed(query: str, agent: str, expected: WriteOptions) -> None:
    assert parse_create_options(Query(query), agent) == expected
    assert parse_update_options(Query(query), agent) == expected


@pytest.mark.parametrize(
    ("query", "message"),
    [
        pytest.param("dryRun=x", 'dryRun: Unsupported value: ["x"]: supported values: "All"', id="an unknown dry run"),
        pytest.param("dryRun=", 'dryRun: Unsupported value: [""]: supported values: "All"', id="an empty dry run"),
        pytest.param(
            "fieldValidation=x",
            'fieldValidation: Unsupported value: "x": supported values: "", "Ignore", "Strict", "Warn"',
            id="an unknown validation",
        ),
        pytest.param(
            f"fieldManager={'m' * 129}", "fieldManager: Too long: may not be more than 128 bytes", id="a long manager"
        ),
        pytest.param(
            "fieldManager=ab%C3%A9%07",
            'fieldManager: Invalid value: "abé\\u0007": invalid character U+0007 (at position 4)',
            id="an unprintable character, with its byte position",
        ),
    ],
)
def test_invalid_write_options_are_rejected(query: str, message: str) -> None:
    assert rejection(parse_update_options, Query(query), "a") == (
        422,
        f'UpdateOptions.meta.k8s.io "" is invalid: {message}',
    )


@pytest.mark.parametrize(
    ("query", "apply", "message"),
    [
        pytest.param(
            "", True, "fieldManager: Required value: is required for apply patch", id="an apply without a manager"
        ),
        pytest.param(
            "force=true", False, "force: Forbidden: may not be specified for non-apply patch", id="a forced merge"
        ),
    ],
)
def test_invalid_patch_options_are_rejected(query: str, apply: bool, message: str) -> None:
    expected = f'PatchOptions.meta.k8s.io "" is invalid: {message}'
    assert rejection(parse_patch_options, Query(query), "kubectl/1", apply=apply) == (422, expected)


def test_an_apply_may_be_forced() -> None:
    options = parse_patch_options(Query("fieldManager=me&force=1"), "", apply=True)
    assert options == WriteOptions(field_manager="me", force=True)


def test_delete_options_come_from_the_query() -> None:
    query = Query("dryRun=All&gracePeriodSeconds=3&propagationPolicy=Foreground&uid=u&resourceVersion=5")
    expected = DeleteOptions(
        dry_run=True,
        grace_period_seconds=3,
        propagation_policy="Foreground",
        preconditions=Preconditions("u", "5"),
    )
    assert parse_delete_options(query, None) == expected
    assert parse_delete_options(Query("uid=&resourceVersion="), None) == DeleteOptions()


def test_delete_options_in_the_body_override_the_query() -> None:
    body = {"kind": "DeleteOptions", "preconditions": {"uid": "u", "resourceVersion": "5"}, "orphanDependents": False}
    expected = DeleteOptions(preconditions=Preconditions("u", "5"), orphan_dependents=False)
    assert parse_delete_options(Query("propagationPolicy=Foreground&dryRun=All"), body) == expected


@pytest.mark.parametrize(
    ("body", "code", "message"),
    [
        pytest.param(
            {"propagationPolicy": "x"},
            422,
            'propagationPolicy: Unsupported value: "x": supported values: "Foreground", "Background", "Orphan", "nil"',
            id="an unknown policy",
        ),
        pytest.param(
            {"propagationPolicy": "Orphan", "orphanDependents": True},
            422,
            'propagationPolicy: Invalid value: "Orphan": orphanDependents and deletionPropagation cannot be both set',
            id="a policy and orphanDependents",
        ),
        pytest.param(
            {"dryRun": ["Some"]}, 422, 'dryRun: Unsupported value: ["Some"]: supported values: "All"', id="a dry run"
        ),
        pytest.param(
            {"gracePeriodSeconds": True}, 400, "DeleteOptions: gracePeriodSeconds must be an integer", id="a wrong type"
        ),
        pytest.param(
            {"preconditions": {"uid": 1}}, 400, "DeleteOptions: preconditions.uid must be a string", id="a wrong uid"
        ),
    ],
)
def test_invalid_delete_options_are_rejected(body: dict[str, Any], code: int, message: str) -> None:
    prefix = 'DeleteOptions.meta.k8s.io "" is invalid: ' if code == 422 else ""
    assert rejection(parse_delete_options, Query(), body) == (code, prefix + message)


THREE_CHARACTERS = ["".join(letters) for letters in itertools.product(string.ascii_letters, repeat=3)][:4000]


@pytest.mark.parametrize(
    "selector",
    [
        pytest.param(f"a notin ({','.join(THREE_CHARACTERS)})", id="thousands of values"),
        pytest.param(f"a in ({','.join(THREE_CHARACTERS)})", id="thousands of values that are required"),
        pytest.param(",".join(f"!k{number}" for number in range(100)), id="a hundred absent labels"),
        pytest.param(",".join(f"k{number}=v{number}" for number in range(100)), id="a hundred labels"),
        pytest.param(
            ",".join(f"k{n} notin ({','.join(THREE_CHARACTERS[:9])})" for n in range(100)), id="a hundred sets"
        ),
    ],
)
def test_the_memory_of_a_large_selector_is_not_underestimated(selector: str) -> None:
    parse_label_selector(selector)
    tracemalloc.start()
    parsed = [parse_label_selector(selector) for _ in range(4)]
    size = tracemalloc.get_traced_memory()[0] / len(parsed)
    tracemalloc.stop()
    assert size <= selector_memory(Query(f"labelSelector={quote(selector)}")) <= 3 * size


@pytest.mark.parametrize("query", ["", "labelSelector=a", "labelSelector=a%3Db,c&fieldSelector=metadata.name%3Dx"])
def test_usual_selectors_take_no_memory_worth_counting(query: str) -> None:
    assert selector_memory(Query(query)) == 0
