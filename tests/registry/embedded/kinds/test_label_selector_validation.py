"""The label selectors in objects are validated as by a kube-apiserver."""

from __future__ import annotations

from typing import Any

import pytest

from apiserver.meta.resource import Object
from registry.embedded.kinds.control_plane import CLUSTERROLE
from registry.embedded.kinds.kind import KindValidation
from registry.embedded.kinds.label_selector_validation import label_selector_errors
from registry.embedded.kinds.network_policy_validation import NetworkPolicyValidation


def expression(operator: str, *values: str, key: str = "a") -> dict[str, Any]:
    return {"matchExpressions": [{"key": key, "operator": operator, **({"values": list(values)} if values else {})}]}


@pytest.mark.parametrize(
    ("selector", "fields"),
    [
        pytest.param({}, [], id="empty"),
        pytest.param({"matchLabels": {"a": "b", "x.y/z": ""}}, [], id="labels"),
        pytest.param({"matchLabels": {"-": "b"}}, ["s.matchLabels"], id="an invalid key of a label"),
        pytest.param({"matchLabels": {"a": "b c"}}, ["s.matchLabels"], id="an invalid label"),
        pytest.param(expression("In", "b", "c"), [], id="in a set"),
        pytest.param(expression("In"), ["s.matchExpressions[0].values"], id="in no set"),
        pytest.param(expression("NotIn"), ["s.matchExpressions[0].values"], id="not in no set"),
        pytest.param(expression("NotIn", "b", "c d"), ["s.matchExpressions[0].values[1]"], id="an invalid value"),
        pytest.param(expression("Exists"), [], id="existing"),
        pytest.param(expression("Exists", "b"), ["s.matchExpressions[0].values"], id="existing with a value"),
        pytest.param(expression("DoesNotExist", "b"), ["s.matchExpressions[0].values"], id="absent with a value"),
        pytest.param(expression("Exists", key=""), ["s.matchExpressions[0].key"] * 2, id="an empty key"),
    ],
)
def test_invalid_parts_of_a_label_selector_are_named(selector: dict[str, Any], fields: list[str]) -> None:
    assert [problem.field for problem in label_selector_errors(selector, "s")] == fields


INVALID = {"matchLabels": {"a": "b c"}}


@pytest.mark.parametrize(
    ("validation", "content"),
    [
        pytest.param(
            CLUSTERROLE.validation, {"aggregationRule": {"clusterRoleSelectors": [INVALID]}}, id="ClusterRole"
        ),
        pytest.param(
            NetworkPolicyValidation(), {"spec": {"podSelector": INVALID, "policyTypes": []}}, id="NetworkPolicy"
        ),
    ],
)
def test_what_an_earlier_version_has_stored_can_still_be_changed(validation: KindValidation, content: Object) -> None:
    stored = {"metadata": {"name": "x"}, **content}
    assert validation.validate_create(stored)
    assert not validation.validate_update({**stored, "metadata": {"name": "x", "labels": {"a": "b"}}}, stored)
    assert validation.validate_update(stored, {"metadata": {"name": "x"}})
