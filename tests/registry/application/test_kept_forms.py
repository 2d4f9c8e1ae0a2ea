from __future__ import annotations

import base64
import gzip
import random
import string
from dataclasses import replace
from typing import Any

import pytest

from admission.cel.library.regex import matches
from apiserver.meta.resource import Object
from registry.application.definition import ApplicationDefinition, parse_definition
from registry.application.kept_forms import MAX_BYTES, read_sources, to_data
from tests.application_definitions.samples import definition as real_definition
from tests.application_definitions.samples import definition_names
from tests.registry.application.applications import definition

FORM = definition()


def compressed(text: bytes) -> str:
    return base64.b64encode(gzip.compress(text)).decode()


def configmap(data: Any) -> Object:
    return {"metadata": {"name": "x"}, "binaryData": data}


def test_all_forms_of_cozystack_are_kept_in_a_tenth_of_a_configmap() -> None:
    forms = {name: parse_definition(real_definition(name), matches) for name in definition_names()}
    kept = to_data(forms)
    assert sum(map(len, kept.data.values())) < 100_000
    assert kept.left_out == ()
    assert {name: parse_definition(each, matches) for name, each in read_sources(configmap(kept.data))} == forms


def test_equal_forms_have_equal_texts() -> None:
    assert to_data({"redis": FORM}) == to_data({"redis": definition()})


def test_the_largest_forms_are_left_out_if_not_all_fit() -> None:
    noise = random.Random(1)

    def form(name: str, size: int) -> ApplicationDefinition:
        text = "".join(noise.choices(string.printable, k=size))
        return replace(FORM, name=name, source={"metadata": {"name": name}, "spec": {"text": text}})

    forms = {name: form(name, size) for name, size in (("a", 400_000), ("b", 500_000), ("c", 100))}
    kept = to_data(forms)
    assert (sorted(kept.data), kept.left_out) == (["a", "c"], ("b",))
    assert sum(map(len, kept.data.values())) <= MAX_BYTES


@pytest.mark.parametrize(
    "data",
    [
        pytest.param(None, id="none"),
        pytest.param([], id="no mapping"),
        pytest.param({"redis": 5}, id="no text"),
        pytest.param({"redis": "!"}, id="no base64"),
        pytest.param({"redis": base64.b64encode(b"x").decode()}, id="no gzip"),
        pytest.param({"redis": compressed(b"{")}, id="no JSON"),
        pytest.param({"redis": compressed(b"[]")}, id="no form"),
        pytest.param({"redis": compressed(b'"' + b" " * 3_000_000 + b'"')}, id="too large"),
        pytest.param({"other": to_data({"redis": FORM}).data["redis"]}, id="form of another definition"),
    ],
)
def test_what_is_no_form_is_ignored(data: Any) -> None:
    assert dict(read_sources(configmap(data))) == {}
