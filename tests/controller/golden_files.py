"""Rendered objects as files: what is written to a host can be read as it is, and a change of it is seen in review."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import yaml

from controller.runtime.apply import drop_nulls

_FILES = Path(__file__).parent / "golden"


def assert_golden(name: str, rendered: Any) -> None:
    """`rendered`, as a new object has it, is what the file says. With UPDATE_GOLDEN=1 the file is written instead."""
    path = _FILES / f"{name}.yaml"
    text = yaml.safe_dump(drop_nulls(rendered), sort_keys=False)
    if os.environ.get("UPDATE_GOLDEN"):
        path.write_text(text)
    assert yaml.safe_load(path.read_text()) == yaml.safe_load(text)
