"""A program in the place of kubectl, whose answers are a shell script."""

from __future__ import annotations

from pathlib import Path


def fake_kubectl(directory: Path, script: str) -> Path:
    """`script` gets kubectl's arguments."""
    path = directory / "kubectl"
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)
    return path
