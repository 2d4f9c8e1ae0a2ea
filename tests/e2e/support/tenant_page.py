"""A browser of the page that a command serves: it logs in with the printed URL, and keeps the cookie."""

from __future__ import annotations

import http.client
import json
import os
import re
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from tests.e2e.support.clusters.cluster import KUBECTL
from tests.e2e.support.clusters.processes import REPOSITORY, Process, wait_until

_URL = re.compile(r"http://\S+/login\?code=\S+")
_MAIN = "from tenant_apiserver.kubectl_tenant.main import main; main()"
_SECONDS = 60


def start_page(kubeconfig: Path, *arguments: str, log: Path) -> Process:
    """Starts `kubectl tenant ui` with a kubeconfig."""
    environment = {
        "KUBECONFIG": str(kubeconfig),
        "KUBECTL": str(KUBECTL),
        "PYTHONPATH": os.pathsep.join(filter(None, [str(REPOSITORY), os.environ.get("PYTHONPATH", "")])),
    }
    return Process(
        "kubectl tenant ui", [sys.executable, "-c", _MAIN, "ui", *arguments], log=log, environment=environment
    )


@dataclass(frozen=True)
class Browser:
    host: str
    cookie: str

    @classmethod
    def of(cls, process: Process) -> Browser:
        """A browser that opens the URL that a process prints."""
        url = wait_until("the URL is printed", lambda: _URL.search(process.log()), processes=[process])[0]
        parts = urlsplit(url)
        # the name of the URL is for browsers: they need no resolver that knows it
        host = f"127.0.0.1:{parts.port}"
        connection = http.client.HTTPConnection(host, timeout=_SECONDS)
        connection.request("GET", f"{parts.path}?{parts.query}", headers={"Host": parts.netloc})
        answer = connection.getresponse()
        assert answer.status == 303, answer.read()
        cookie = answer.headers["Set-Cookie"].partition(";")[0]
        connection.close()
        return cls(host, cookie)

    def get(self, path: str) -> tuple[int, Any]:
        """The status, and the JSON document."""
        return self._send("GET", path, None, {})

    def write(self, method: str, path: str, document: Any = None) -> tuple[int, Any]:
        """As the page's own script."""
        headers = {"Origin": f"http://{self.host}", "Sec-Fetch-Site": "same-origin", "X-Tenant-UI": "1"}
        body = json.dumps(document).encode() if document is not None else None
        return self._send(method, path, body, {**headers, "Content-Type": "application/json"})

    def watch(self, path: str) -> Iterator[Any]:
        """The events of a watch as they arrive."""
        connection = http.client.HTTPConnection(self.host, timeout=_SECONDS)
        connection.request("GET", path, headers={"Cookie": self.cookie})
        answer = connection.getresponse()
        assert answer.status == 200
        try:
            while line := answer.readline():
                yield json.loads(line)
        finally:
            connection.close()

    def _send(self, method: str, path: str, body: bytes | None, headers: Mapping[str, str]) -> tuple[int, Any]:
        connection = http.client.HTTPConnection(self.host, timeout=_SECONDS)
        connection.request(method, path, body, {"Cookie": self.cookie, **headers})
        answer = connection.getresponse()
        document = json.loads(answer.read())
        connection.close()
        return answer.status, document
