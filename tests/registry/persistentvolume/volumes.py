"""PersistentVolumes of tests."""

from __future__ import annotations

from typing import Any


def volume(name: str, *, claim: str = "", rv: int = 1, **metadata: Any) -> dict[str, Any]:
    """`claim` is namespace/name, empty for a volume that is available."""
    namespace, _, claimed = claim.partition("/")
    return {
        "metadata": {"name": name, "uid": name, "resourceVersion": str(rv), **metadata},
        "spec": {"claimRef": {"namespace": namespace, "name": claimed}} if claim else {},
        "status": {"phase": "Bound" if claim else "Available"},
    }
