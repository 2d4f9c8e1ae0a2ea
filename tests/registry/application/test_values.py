from __future__ import annotations

import copy
import sys
from typing import Any

import pytest

from apiserver.meta.errors import BadRequest
from registry.application.values import reject_internal_keys, shown_spec, write_changed_values
from tests.registry.application.applications import SCHEMA, SHOWN_DEFAULTS


def updated(stored: Any, spec: Any) -> Any:
    """The values after an update to `spec`; None for no values."""
    release_spec = {"values": stored} if stored is not None else {}
    write_changed_values(release_spec, spec, shown_spec(stored, SCHEMA))
    return release_spec.get("values")


def patched(stored: Any, **changes: Any) -> Any:
    """The values after a patch of what clients see; a change to `...` removes the key."""
    spec = shown_spec(stored, SCHEMA)
    spec |= changes
    spec = {key: value for key, value in spec.items() if value is not ...}
    return updated(stored, spec)


def test_internal_keys_are_hidden_and_defaults_are_shown() -> None:
    shown = shown_spec({"_cluster": {"a": 1}, "replicas": 5, "other": None}, SCHEMA)
    assert shown == {**SHOWN_DEFAULTS, "replicas": 5, "other": None}


@pytest.mark.parametrize("values", [None, {}, 5, "text", []])
def test_values_that_are_no_object_are_shown_as_none(values: object) -> None:
    assert shown_spec(values, SCHEMA) == SHOWN_DEFAULTS


@pytest.mark.parametrize(
    ("stored", "changes", "values"),
    [
        pytest.param({}, {"replicas": 3}, {"replicas": 3}, id="only the change is stored (T31)"),
        pytest.param(None, {"replicas": 3}, {"replicas": 3}, id="there were no values"),
        pytest.param(
            {"_cluster": 1, "replicas": 3, "x": None}, {"size": "2Gi"},
            {"_cluster": 1, "replicas": 3, "x": None, "size": "2Gi"}, id="everything else stays",
        ),
        pytest.param({"replicas": 3}, {"replicas": ...}, {}, id="a key that is removed"),
        pytest.param({"a": 1}, {"replicas": ...}, {"a": 1}, id="a default that is removed comes back"),
        pytest.param({}, {"tls": {"enabled": True}}, {"tls": {"enabled": True}}, id="below a default"),
        pytest.param(
            {"users": {"a": {}}}, {"users": {"a": {"admin": True}, "b": {}}},
            {"users": {"a": {"admin": True}, "b": {}}}, id="in a map",
        ),
        pytest.param(
            {"users": {"a": {}, "b": {"password": "p"}}},
            {"users": {"a": {"admin": False}, "b": {"admin": False, "password": "q"}}},
            {"users": {"a": {}, "b": {"password": "q"}}}, id="defaults beside a change are not stored",
        ),
        pytest.param(
            {"hosts": [{"name": "a"}, {"name": "b"}]},
            {"hosts": [{"name": "a", "port": 80}, {"name": "b", "port": 81}]},
            {"hosts": [{"name": "a"}, {"name": "b", "port": 81}]}, id="an item changes",
        ),
        pytest.param(
            {"hosts": [{"name": "a"}, {"name": "b"}]}, {"hosts": [{"name": "b", "port": 80}]},
            {"hosts": [{"name": "b"}]}, id="an item is removed",
        ),
        pytest.param(
            {"hosts": [{"name": "a"}]}, {"hosts": [{"name": "a", "port": 80}, {"name": "c"}]},
            {"hosts": [{"name": "a"}, {"name": "c"}]}, id="an item is added",
        ),
        pytest.param({"tls": "text"}, {"replicas": 3}, {"tls": "text", "replicas": 3}, id="a wrong type stays (T38)"),
        pytest.param({"tls": "text"}, {"tls": {"enabled": True}}, {"tls": {"enabled": True}}, id="and can be mended"),
        pytest.param({"replicas": 3}, {}, {"replicas": 3}, id="no change"),
    ],
)  # fmt: skip
def test_a_patch_stores_only_what_it_changes(stored: Any, changes: Any, values: Any) -> None:
    before = copy.deepcopy(stored)
    assert patched(stored, **changes) == values
    assert stored == before


@pytest.mark.parametrize(
    ("stored", "spec", "values"),
    [
        pytest.param({"replicas": 3, "_cluster": 1}, {"size": "2Gi"}, {"_cluster": 1, "size": "2Gi"}, id="as sent"),
        pytest.param({"replicas": 3}, {}, {}, id="nothing"),
        pytest.param({"replicas": 3}, None, None, id="no spec"),
        pytest.param({"replicas": 3, "_a": 1}, None, {"_a": 1}, id="no spec, with keys of the platform"),
        pytest.param({}, {"replicas": 2}, {}, id="a default that was shown is not stored"),
        pytest.param({"replicas": 2}, SHOWN_DEFAULTS, {"replicas": 2}, id="a stored default stays"),
        pytest.param(
            {"replicas": 2}, {**SHOWN_DEFAULTS, "replicas": 2, "x": 1}, {"replicas": 2, "x": 1}, id="beside a change"
        ),
        pytest.param({}, {**SHOWN_DEFAULTS, "size": "2Gi"}, {"size": "2Gi"}, id="one change after a read"),
        pytest.param({}, SHOWN_DEFAULTS, {}, id="what was shown changes nothing"),
        pytest.param(None, SHOWN_DEFAULTS, None, id="what was shown of no values changes nothing"),
    ],
)
def test_a_replacement_changes_only_what_differs_from_what_was_shown(stored: Any, spec: Any, values: Any) -> None:
    assert updated(stored, spec) == values


def test_internal_keys_may_not_be_written() -> None:
    with pytest.raises(BadRequest, match='"_a", "_b"'):
        reject_internal_keys({"spec": {"_b": 1, "_a": 1, "c": 1}})
    for spec in (None, "_a", {"a": {"_b": 1}}):
        reject_internal_keys({"spec": spec})


def test_moving_the_items_of_a_long_list_takes_time_in_proportion_to_its_length() -> None:
    """ATTACK-13: comparing each item with each would be a hundred million comparisons."""
    hosts = [{"name": f"h{number}"} for number in range(10_000)]
    moved = [{"name": each["name"], "port": 80} for each in reversed(hosts)]
    calls = 0

    def count(frame: object, event: str, argument: object) -> None:
        nonlocal calls
        calls += event == "call"

    sys.setprofile(count)
    try:
        found = updated({"hosts": hosts}, {"hosts": moved})
    finally:
        sys.setprofile(None)
    assert found == {"hosts": hosts[::-1]}
    assert calls < 100 * len(hosts)
