"""Status documents, byte for byte those of Kubernetes."""

from __future__ import annotations

import pytest

from apiserver.meta import errors
from apiserver.meta.errors import StatusError
from apiserver.meta.resource import GroupKind, GroupResource

THINGS = GroupResource("example.org", "things")
THING = GroupKind("example.org", "Thing")


@pytest.mark.parametrize(
    ("error", "code", "reason", "message", "details"),
    [
        pytest.param(
            errors.NotFound(THINGS, "x"),
            404,
            "NotFound",
            'things.example.org "x" not found',
            {"name": "x", "group": "example.org", "kind": "things"},
            id="not found",
        ),
        pytest.param(
            errors.NotFound(GroupResource("", "pods"), "x"),
            404,
            "NotFound",
            'pods "x" not found',
            {"name": "x", "kind": "pods"},
            id="not found in the core group",
        ),
        pytest.param(
            errors.AlreadyExists(THINGS, "x"),
            409,
            "AlreadyExists",
            'things.example.org "x" already exists',
            {"name": "x", "group": "example.org", "kind": "things"},
            id="already exists",
        ),
        pytest.param(
            errors.AlreadyExists(THINGS, "x", deleting=True),
            409,
            "AlreadyExists",
            'object is being deleted: things.example.org "x" already exists',
            {"name": "x", "group": "example.org", "kind": "things"},
            id="already exists, and is being deleted",
        ),
        pytest.param(
            errors.GenerateNameExhausted(THINGS, "x"),
            409,
            "AlreadyExists",
            'things.example.org "x" already exists, the server was not able to generate a unique name for the object',
            {"name": "x", "group": "example.org", "kind": "things", "retryAfterSeconds": 1},
            id="no generated name was free",
        ),
        pytest.param(
            errors.Conflict(THINGS, "x"),
            409,
            "Conflict",
            'Operation cannot be fulfilled on things.example.org "x": the object has been modified; '
            "please apply your changes to the latest version and try again",
            {"name": "x", "group": "example.org", "kind": "things"},
            id="stale resourceVersion",
        ),
        pytest.param(
            errors.Forbidden(THINGS, "x", "no"),
            403,
            "Forbidden",
            'things.example.org "x" is forbidden: no',
            {"name": "x", "group": "example.org", "kind": "things"},
            id="forbidden by admission",
        ),
        pytest.param(errors.Unauthorized(), 401, "Unauthorized", "Unauthorized", None, id="unauthorized"),
        pytest.param(errors.BadRequest("why"), 400, "BadRequest", "why", None, id="bad request"),
        pytest.param(
            errors.RequestEntityTooLarge("limit is 3145728"),
            413,
            "RequestEntityTooLarge",
            "Request entity too large: limit is 3145728",
            None,
            id="body too large",
        ),
        pytest.param(
            errors.TooLargeResourceVersion(9, 7),
            504,
            "Timeout",
            "Timeout: Too large resource version: 9, current: 7",
            {
                "causes": [{"reason": "ResourceVersionTooLarge", "message": "Too large resource version"}],
                "retryAfterSeconds": 1,
            },
            id="a resourceVersion of the future",
        ),
        pytest.param(
            errors.InternalError("boom"),
            500,
            "InternalError",
            "Internal error occurred: boom",
            {"causes": [{"message": "boom"}]},
            id="internal error",
        ),
    ],
)
def test_an_error_has_the_status_of_kubernetes(
    error: StatusError, code: int, reason: str, message: str, details: dict[str, object] | None
) -> None:
    expected: dict[str, object] = {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Failure",
        "message": message,
        "reason": reason,
        "code": code,
    }
    if details is not None:
        expected["details"] = details
    assert error.status() == expected


@pytest.mark.parametrize(
    ("error", "text"),
    [
        pytest.param(errors.required("f", "why"), "f: Required value: why", id="required prints no value"),
        pytest.param(errors.forbidden("f", "why"), "f: Forbidden: why", id="forbidden prints no value"),
        pytest.param(errors.invalid("f", "a<b", "why"), 'f: Invalid value: "a<b": why', id="strings are quoted"),
        pytest.param(errors.invalid("f", True, "why"), "f: Invalid value: true: why", id="booleans are bare"),
        pytest.param(errors.invalid("f", ["x"], "why"), 'f: Invalid value: ["x"]: why', id="lists are JSON"),
        pytest.param(errors.invalid("f", None, "why"), "f: Invalid value: null: why", id="null"),
        pytest.param(
            errors.not_supported("f", "x", ["a", "b"]),
            'f: Unsupported value: "x": supported values: "a", "b"',
            id="supported values are listed",
        ),
        pytest.param(errors.too_long("f", 5), "f: Too long: may not be more than 5 bytes", id="too long"),
    ],
)
def test_a_field_error_has_the_text_of_kubernetes(error: errors.FieldError, text: str) -> None:
    assert str(error) == text


def test_all_field_errors_are_reported_at_once_and_each_once() -> None:
    twice = errors.invalid("spec.a", 1, "why")
    error = errors.Invalid(THING, "x", [twice, errors.required("spec.b"), twice])
    assert error.message == 'Thing.example.org "x" is invalid: [spec.a: Invalid value: 1: why, spec.b: Required value]'
    assert [cause["field"] for cause in error.causes] == ["spec.a", "spec.b", "spec.a"]
    assert error.causes[0] == {"reason": "FieldValueInvalid", "message": "Invalid value: 1: why", "field": "spec.a"}


def test_an_expired_list_offers_a_continue_token() -> None:
    assert errors.Expired("too old", continue_token="t").status()["metadata"] == {"continue": "t"}


def test_a_status_document_becomes_the_same_error() -> None:
    error = errors.Conflict(THINGS, "x")
    assert errors.from_status(error.status(), 409).status() == error.status()


def test_an_object_without_a_name_is_forbidden_by_its_resource_alone() -> None:
    error = errors.Forbidden(GroupResource("", "configmaps"), "", "no")
    assert error.message == "configmaps is forbidden: no"
    assert error.details == {"kind": "configmaps"}


def test_the_first_of_too_many_errors_are_reported_and_the_rest_counted() -> None:
    """ATTACK-13: with twenty thousand owner references that are all controllers, each error quoted all of them."""
    owners = [{"kind": "K", "name": f"n{number}"} for number in range(20_000)]
    error = errors.Invalid(THING, "x", [errors.invalid("metadata.ownerReferences", owners, "one too many")] * 20_000)
    assert [cause["field"] for cause in error.causes] == ["metadata.ownerReferences"]
    assert error.message.endswith("one too many, and 19999 more errors]")
