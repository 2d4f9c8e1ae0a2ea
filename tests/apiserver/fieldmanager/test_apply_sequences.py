"""Sequences of writes. The expected results were recorded on a kube-apiserver v1.36 with a CustomResourceDefinition."""

from __future__ import annotations

import json
from typing import Any

import pytest

from apiserver.meta.errors import StatusError
from apiserver.meta.resource import Object
from tests.apiserver.fieldmanager.endpoint import RECORDED, TYPE, Endpoint


@pytest.mark.parametrize(
    "steps", [pytest.param(steps, id=f"sequence {n}") for n, steps in enumerate(RECORDED["sequences"])]
)
def test_a_sequence_of_writes_matches_a_real_kube_apiserver(steps: list[dict[str, Any]]) -> None:
    endpoint = Endpoint()
    for step in steps:
        write = getattr(endpoint, step["operation"])
        if "error" in step:
            with pytest.raises(StatusError) as raised:
                write(step["body"], step["manager"], force=step["force"])
            assert raised.value.code == step["error"]["code"]
            assert raised.value.message == step["error"]["message"]
            assert sorted_as_json(raised.value.causes) == sorted_as_json(step["error"]["causes"])
            continue
        write(step["body"], step["manager"], force=step["force"])
        assert without_managed_fields(endpoint.live) == step["object"]
        assert sorted_as_json(comparable_entries(endpoint.live)) == sorted_as_json(step["managers"])


def sorted_as_json(items: list[dict[str, Any]]) -> list[str]:
    return sorted(json.dumps(item, sort_keys=True) for item in items)


def without_managed_fields(obj: Object) -> Object:
    metadata = {key: value for key, value in obj["metadata"].items() if key not in ("managedFields", "uid")}
    return {key: value for key, value in {**obj, "metadata": metadata}.items() if key not in TYPE}


def comparable_entries(obj: Object) -> list[dict[str, Any]]:
    return [
        {
            **{key: value for key, value in entry.items() if key not in ("time", "fieldsType", "apiVersion")},
            "timed": "time" in entry,
        }
        for entry in obj["metadata"].get("managedFields", [])
    ]
