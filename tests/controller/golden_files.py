"""Golden files: rendered objects are stored as YAML, so that a review shows every change of them."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import yaml

from controller.runtime.apply import drop_nulls

_FILES = Path(__file__).parent / "golden"


def assert_golden(name: str, rendered: Any) -> None:
    """Assert that `rendered`, without nulls, equals the file. With UPDATE_GOLDEN=1, the file is written first."""
    path = _FILES / f"{name}.yaml"
    text = yaml.safe_dump(drop_nulls(rendered), sort_keys=False)
    if os.environ.get("UPDATE_GOLDEN"):
        path.write_text(text)
    assert yaml.load(path.read_text(), Loader=yaml.CSafeLoader) == yaml.load(text, Loader=yaml.CSafeLoader)
