"""The CEL library releases references to None that it does not own; a process without any left aborts."""

from __future__ import annotations

import sys

import pytest

from admission.cel.environment import Environment, evaluate


@pytest.mark.skipif(sys.version_info >= (3, 12), reason="None is immortal since Python 3.12")
@pytest.mark.parametrize("expression", ["object.none", "[object.none, {'a': object.none}]", "object"])
def test_reading_null_loses_no_reference(expression: str) -> None:
    environment = Environment()
    program = environment.compile(expression)
    values = {"object": {"none": None, "list": [None, None]}}
    before = sys.getrefcount(None)
    for _ in range(1000):
        evaluate(program, environment.activation(values))
    assert abs(sys.getrefcount(None) - before) < 100
