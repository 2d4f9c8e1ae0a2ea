"""A server that has had the port of the page before, and leaves what it can in the browser: a service worker that would
answer in the page's place."""

from __future__ import annotations

import http.server
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http import HTTPStatus
from typing import Final

_DOCUMENT: Final = b"""\
<script>
navigator.serviceWorker.register("/worker.js").then(() => navigator.serviceWorker.ready)
  .then(() => { document.title = "left behind"; });
</script>
"""
_WORKER: Final = b"""\
addEventListener("install", () => skipWaiting());
addEventListener("fetch", event => event.respondWith(new Response(
  "<title>not the page</title>", {headers: {"Content-Type": "text/html"}})));
"""


class _Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        media_type, body = ("text/javascript", _WORKER) if self.path == "/worker.js" else ("text/html", _DOCUMENT)
        self.send_response(HTTPStatus.OK)
        self.send_header("Content-Type", media_type)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        """Prints nothing."""


@contextmanager
def earlier_server() -> Iterator[int]:
    """Its port on 127.0.0.1, which is free again afterwards."""
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), _Handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield server.server_address[1]
        server.shutdown()
        thread.join()
