"""The media types of patches that are accepted and sent."""

from __future__ import annotations

from typing import Final

JSON_PATCH: Final = "application/json-patch+json"
MERGE_PATCH: Final = "application/merge-patch+json"
APPLY_PATCH: Final = "application/apply-patch+yaml"
