"""Validation of names that need not be DNS names. Pure."""

from __future__ import annotations


def path_segment_errors(name: str) -> list[str]:
    """Returns the reasons why `name` cannot be a path segment, the rule for names of RBAC's kinds: `system:x` is
    valid."""
    if name in (".", ".."):
        return [f"may not be '{name}'"]
    return [f"may not contain '{character}'" for character in "/%" if character in name]
