"""Requests that an administrator sends as another user, over one connection."""

from __future__ import annotations

import http.client
import json
from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import urlsplit

from tests.e2e.support.http.https_client import Client

_SECONDS = 60.0


class ImpersonatingClient:
    """Sends one `Impersonate-Group` header per group, which a mapping of headers cannot express."""

    def __init__(self, client: Client) -> None:
        parts = urlsplit(client.url)
        assert parts.hostname is not None
        self._headers = client.headers
        self._connection = http.client.HTTPSConnection(parts.hostname, parts.port, context=client.tls, timeout=_SECONDS)

    def send(
        self, method: str, path: str, body: Mapping[str, Any], *, content_type: str, user: str, groups: Sequence[str]
    ) -> tuple[int, Any]:
        """Returns the status and the JSON body."""
        content = json.dumps(body).encode()
        headers = {**self._headers, "Content-Type": content_type, "Content-Length": str(len(content))}
        connection = self._connection
        connection.putrequest(method, path)
        for name, value in [*headers.items(), ("Impersonate-User", user), *(("Impersonate-Group", g) for g in groups)]:
            connection.putheader(name, value)
        connection.endheaders(content)
        response = connection.getresponse()
        return response.status, json.loads(response.read())

    def close(self) -> None:
        self._connection.close()
