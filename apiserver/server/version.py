"""Serves /version: the Kubernetes release whose API this server implements (WIRE-C34)."""

from __future__ import annotations

import json
import platform
import re

from aiohttp import web

from apiserver.endpoints.static_document import StaticDocument, require_get, require_json
from apiserver.request.context import RequestContext

# Clients compare these with their own release (kubectl warns of a skew of more than one minor, Helm charts require a
# range), so they name the Kubernetes release that this server behaves like; both must be numbers (WIRE-J26).
MAJOR = "1"
MINOR = "36"

_NOT_IN_BUILD_METADATA = re.compile(r"[^0-9A-Za-z.-]+")
_MACHINES = {"x86_64": "amd64", "aarch64": "arm64"}


def version_document(build: str) -> dict[str, str]:
    """The document. `build`, the program's name and version, becomes the build metadata of a semantic version."""
    machine = platform.machine()
    return {
        "major": MAJOR,
        "minor": MINOR,
        "gitVersion": f"v{MAJOR}.{MINOR}.0+{_NOT_IN_BUILD_METADATA.sub('-', build)}",
        "gitCommit": "",
        "gitTreeState": "",
        "buildDate": "1970-01-01T00:00:00Z",
        "goVersion": "",
        "compiler": platform.python_implementation(),
        "platform": f"{platform.system().lower()}/{_MACHINES.get(machine, machine)}",
    }


class Version:
    """Answers /version."""

    def __init__(self, build: str) -> None:
        self._document = StaticDocument(json.dumps(version_document(build), indent=2).encode())

    async def respond(self, context: RequestContext) -> web.Response | None:
        """The response, or None for another path. Raises NotAcceptable, MethodNotAllowed."""
        if context.info.path.removesuffix("/") != "/version":
            return None
        require_get(context)
        require_json(context)
        return self._document.respond(context, {})

    def paths(self) -> list[str]:
        return ["/version"]
