"""DELETE with finalizers and propagation policies."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from apiserver.request.options import DeleteOptions
from registry.generic.deletion import MetadataFinalizers, apply_delete, propagation_finalizers
from registry.generic.finalizers import FOREGROUND, ORPHAN

NOW = "2026-01-02T03:04:05Z"


@pytest.mark.parametrize(
    ("finalizers", "options", "expected"),
    [
        pytest.param([], DeleteOptions(), [], id="no policy, no finalizers"),
        pytest.param(["x"], DeleteOptions(), ["x"], id="other finalizers stay"),
        pytest.param([FOREGROUND], DeleteOptions(), [FOREGROUND], id="no policy keeps foreground"),
        pytest.param([ORPHAN], DeleteOptions(), [ORPHAN], id="no policy keeps orphan"),
        pytest.param([], DeleteOptions(propagation_policy="Foreground"), [FOREGROUND], id="foreground"),
        pytest.param(["x"], DeleteOptions(propagation_policy="Orphan"), ["x", ORPHAN], id="orphan beside others"),
        pytest.param([ORPHAN, "x"], DeleteOptions(propagation_policy="Background"), ["x"], id="background drops both"),
        pytest.param(
            [ORPHAN], DeleteOptions(propagation_policy="Foreground"), [FOREGROUND], id="foreground replaces orphan"
        ),
        pytest.param([], DeleteOptions(orphan_dependents=True), [ORPHAN], id="orphanDependents"),
        pytest.param([ORPHAN], DeleteOptions(orphan_dependents=False), [], id="orphanDependents false"),
        pytest.param(
            [FOREGROUND, "x"],
            DeleteOptions(propagation_policy="Foreground"),
            [FOREGROUND, "x"],
            id="an existing finalizer keeps its position",
        ),
    ],
)
def test_the_propagation_policy_becomes_a_finalizer(
    finalizers: list[str], options: DeleteOptions, expected: list[str]
) -> None:
    assert propagation_finalizers(finalizers, options) == expected


def obj(**metadata: Any) -> dict[str, Any]:
    return {"metadata": {"name": "a", "generation": 4, **metadata}, "spec": {}}


def test_an_object_without_finalizers_is_removed_immediately() -> None:
    outcome = apply_delete(obj(), DeleteOptions(), MetadataFinalizers(), now=NOW)
    assert outcome.removed
    assert "deletionTimestamp" not in outcome.object["metadata"]


def test_an_object_with_finalizers_gets_a_deletion_timestamp() -> None:
    current = obj(finalizers=["x"])
    before = copy.deepcopy(current)
    outcome = apply_delete(current, DeleteOptions(), MetadataFinalizers(), now=NOW)
    assert (outcome.removed, outcome.changed) == (False, True)
    assert outcome.object["metadata"] == {
        "name": "a",
        "generation": 5,
        "finalizers": ["x"],
        "deletionTimestamp": NOW,
        "deletionGracePeriodSeconds": 0,
    }
    assert current == before


def test_a_second_delete_changes_nothing() -> None:
    current = obj(finalizers=["x"], deletionTimestamp="2026-01-01T00:00:00Z", deletionGracePeriodSeconds=0)
    outcome = apply_delete(current, DeleteOptions(), MetadataFinalizers(), now=NOW)
    assert (outcome.removed, outcome.changed, outcome.object) == (False, False, current)


def test_a_second_delete_with_background_propagation_ends_a_foreground_deletion() -> None:
    current = obj(finalizers=[FOREGROUND], deletionTimestamp="2026-01-01T00:00:00Z")
    outcome = apply_delete(current, DeleteOptions(propagation_policy="Background"), MetadataFinalizers(), now=NOW)
    assert outcome.removed


def test_an_object_without_generation_gets_none() -> None:
    current = {"metadata": {"name": "a", "finalizers": ["x"]}}
    assert "generation" not in apply_delete(current, DeleteOptions(), MetadataFinalizers(), now=NOW).object["metadata"]
