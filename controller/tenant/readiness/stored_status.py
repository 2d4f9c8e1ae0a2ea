"""The status that the controllers have written into an annotation of a HelmRelease."""

from __future__ import annotations

from typing import Any

import orjson

from apiserver.meta.resource import Object
from registry.names import FINDINGS_ANNOTATION


def read_status(release: Object) -> dict[str, Any]:
    """The document that was written before; empty if there is none or it is malformed."""
    text = (release["metadata"].get("annotations") or {}).get(FINDINGS_ANNOTATION)
    try:
        document = orjson.loads(text) if text else {}
    except ValueError:
        return {}
    return document if isinstance(document, dict) else {}
