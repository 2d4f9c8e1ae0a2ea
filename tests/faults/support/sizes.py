"""The size of the fault tests: FAULTS=short, the default, or FAULTS=full, which `make faults` sets."""

from __future__ import annotations

import os
import secrets
from typing import TypeVar

T = TypeVar("T")

_SHORT, _FULL = "short", "full"


def is_full() -> bool:
    """True for the full size. Raises ValueError for an unknown one."""
    chosen = os.environ.get("FAULTS") or _SHORT
    if chosen not in (_SHORT, _FULL):
        raise ValueError(f"FAULTS={chosen}: it is {_SHORT} or {_FULL}")
    return chosen == _FULL


def size(*, short: T, full: T) -> T:
    return full if is_full() else short


def new_seed() -> int:
    """Returns FAULTS_SEED, or else a random seed. Prints it, so that a failed test can be repeated."""
    seed = int(os.environ.get("FAULTS_SEED") or secrets.randbits(32))
    print(f"FAULTS_SEED={seed}")
    return seed
