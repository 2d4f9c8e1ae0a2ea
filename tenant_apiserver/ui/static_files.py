"""The files of the page, read once at the start."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.resources import files
from typing import Final

_MEDIA_TYPES: Final = {
    "html": "text/html; charset=utf-8",
    "css": "text/css; charset=utf-8",
    "js": "text/javascript; charset=utf-8",
    "svg": "image/svg+xml",
}


@dataclass(frozen=True, slots=True)
class StaticFile:
    body: bytes
    media_type: str
    etag: str
    """Strong, with its quotes."""


def load_static_files() -> Mapping[str, StaticFile]:
    """The files by name, such as `main.js`."""
    found = {}
    for entry in files("tenant_apiserver.ui").joinpath("static").iterdir():
        extension = entry.name.rpartition(".")[2]
        if extension in _MEDIA_TYPES:
            body = entry.read_bytes()
            digest = hashlib.sha256(body).hexdigest()[:32]
            found[entry.name] = StaticFile(body, _MEDIA_TYPES[extension], f'"{digest}"')
    return found
