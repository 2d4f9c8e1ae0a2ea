"""How large the tests of this folder are: FAULTS=short, the default, or FAULTS=full, as `make faults` runs them."""

from __future__ import annotations

import os
import secrets
from typing import TypeVar

T = TypeVar("T")

_SHORT, _FULL = "short", "full"


def is_full() -> bool:
    """Raises ValueError for a size that there is not."""
    chosen = os.environ.get("FAULTS") or _SHORT
    if chosen not in (_SHORT, _FULL):
        raise ValueError(f"FAULTS={chosen}: it is {_SHORT} or {_FULL}")
    return chosen == _FULL


def size(*, short: T, full: T) -> T:
    return full if is_full() else short


def new_seed() -> int:
    """FAULTS_SEED, to run again what has failed; else one by chance. Printed, which pytest shows for what fails."""
    seed = int(os.environ.get("FAULTS_SEED") or secrets.randbits(32))
    print(f"FAULTS_SEED={seed}")
    return seed
