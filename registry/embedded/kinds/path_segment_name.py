"""Names of kinds that need be no DNS names. Pure."""

from __future__ import annotations


def path_segment_errors(name: str) -> list[str]:
    """What keeps `name` from being a segment of a path, as with RBAC's kinds: `system:x` is fine."""
    if name in (".", ".."):
        return [f"may not be '{name}'"]
    return [f"may not contain '{character}'" for character in "/%" if character in name]
