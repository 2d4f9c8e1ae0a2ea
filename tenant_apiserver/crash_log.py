"""Tells where a process was that a library in C, C++ or Rust has aborted: without it, the log just ends."""

from __future__ import annotations

import faulthandler
from contextlib import suppress


def log_crashes() -> None:
    """Lets SIGABRT, SIGSEGV and the like print the Python stack of each thread to stderr before they end the process.
    Does nothing if stderr is closed."""
    with suppress(RuntimeError, ValueError, OSError):
        faulthandler.enable()
