"""Conditions have the shape of metav1.Condition, and their transition times change only with the status."""

from __future__ import annotations

import pytest

from controller.runtime.conditions import MAX_MESSAGE, Finding, build_conditions, find_condition

THEN, NOW = "2026-01-01T00:00:00Z", "2026-01-02T00:00:00Z"


def test_conditions_are_sorted_by_type_and_complete() -> None:
    found = [Finding("Z", "True", "Fine"), Finding("A", "False", "Broken", "it is")]

    assert build_conditions(found, None, generation=7, now=NOW) == [
        {
            "type": "A",
            "status": "False",
            "observedGeneration": 7,
            "lastTransitionTime": NOW,
            "reason": "Broken",
            "message": "it is",
        },
        {
            "type": "Z",
            "status": "True",
            "observedGeneration": 7,
            "lastTransitionTime": NOW,
            "reason": "Fine",
            "message": "",
        },
    ]


@pytest.mark.parametrize(
    ("message", "limit", "expected"),
    [
        pytest.param("x" * 10, 10, "x" * 10, id="as long as allowed"),
        pytest.param("x" * 11, 10, "x" * 7 + "...", id="longer"),
        pytest.param("x" * (MAX_MESSAGE + 1), None, "x" * (MAX_MESSAGE - 3) + "...", id="the limit of Kubernetes"),
    ],
)
def test_a_message_has_a_limit(message: str, limit: int | None, expected: str) -> None:
    """ATTACK-16."""
    options = {} if limit is None else {"max_message": limit}
    [found] = build_conditions([Finding("A", "True", "Fine", message)], None, generation=1, now=NOW, **options)
    assert found["message"] == expected


@pytest.mark.parametrize(
    ("finding", "expected"),
    [
        pytest.param(Finding("A", "True", "Fine"), THEN, id="nothing changed"),
        pytest.param(Finding("A", "True", "Better", "text"), THEN, id="reason and message changed"),
        pytest.param(Finding("A", "False", "Fine"), NOW, id="the status changed"),
        pytest.param(Finding("B", "True", "Fine"), NOW, id="a new condition"),
    ],
)
def test_the_transition_time_changes_only_with_the_status(finding: Finding, expected: str) -> None:
    before = build_conditions([Finding("A", "True", "Fine")], [], generation=1, now=THEN)

    assert build_conditions([finding], before, generation=2, now=NOW)[0]["lastTransitionTime"] == expected


@pytest.mark.parametrize("malformed", ["x", {"a": 1}, [None, "x", {"type": 3}, {"type": "A", "status": "True"}]])
def test_malformed_conditions_are_ignored(malformed: object) -> None:
    assert (
        build_conditions([Finding("A", "True", "Fine")], malformed, generation=1, now=NOW)[0]["lastTransitionTime"]
        == NOW
    )


def test_a_condition_is_found_by_type() -> None:
    conditions = [{"type": "Ready", "status": "True"}, {"type": "Released", "status": "False"}]

    assert find_condition(conditions, "Released") == {"type": "Released", "status": "False"}
    assert find_condition(conditions, "Other") is None
    assert find_condition(None, "Ready") is None
