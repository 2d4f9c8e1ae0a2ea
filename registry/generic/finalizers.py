"""The finalizers that the API server sets for the propagation policy of a deletion (WIRE-D91)."""

from __future__ import annotations

ORPHAN = "orphan"
FOREGROUND = "foregroundDeletion"
