from __future__ import annotations

from typing import Any

import pytest

from registry.embedded.custom.json_path import json_path

OBJECT = {
    "spec": {"a.b": 1, "hostnames": ["x", "y"], "empty": {}},
    "status": {"conditions": [{"type": "Ready", "status": "True"}, {"type": "Other", "status": "False"}]},
}


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        (".spec.hostnames", [["x", "y"]]),
        (".spec.hostnames[0]", ["x"]),
        (".spec.hostnames[-1]", ["y"]),
        (".spec.hostnames[5]", []),
        (".spec.hostnames[*]", ["x", "y"]),
        (".spec['a.b']", [1]),
        (r".spec.a\.b", [1]),
        (".spec.missing.more", []),
        (".spec.empty", [{}]),
        ('.status.conditions[?(@.type=="Ready")].status', ["True"]),
        (".status.conditions[?(@.type=='Other')].status", ["False"]),
        ('.status.conditions[?(@.type=="None")].status', []),
        ('.status.conditions[?(@.type!="Ready")].status', ["False"]),
    ],
)
def test_a_path_finds_its_values(path: str, expected: list[Any]) -> None:
    assert list(json_path(path)(OBJECT)) == expected


@pytest.mark.parametrize("path", ["spec", ".spec[", ".spec[?(@.a)]", ".a b", "..a"])
def test_an_unsupported_path_is_an_error(path: str) -> None:
    with pytest.raises(ValueError, match="unrecognized path"):
        json_path(path)
