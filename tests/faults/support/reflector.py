"""A reflector like client-go's: lists, watches, resumes from the last version seen, and lists again after a 410.

It also checks the events: an event that contradicts earlier ones is an error of the server.
"""

from __future__ import annotations

import contextlib
import http.client
import json
import socket
import threading
from collections.abc import Callable, Mapping
from typing import Any
from urllib.parse import urlencode, urlsplit

from tests.e2e.support.http.https_client import Client

Object = dict[str, Any]
Name = tuple[str, str]

_PAUSE_SECONDS = 0.2
_READ_SECONDS = 120.0
_GONE = 410


def name_of(obj: Object) -> Name:
    return obj["metadata"].get("namespace", ""), obj["metadata"]["name"]


class Reflector:
    """Runs from construction to `stop`. `client` is called for every connection."""

    def __init__(self, client: Callable[[], Client], path: str, *, timeout_seconds: int = 600) -> None:
        self._client = client
        self._path = path
        self._timeout_seconds = timeout_seconds
        self._over = threading.Event()
        self._connection: http.client.HTTPSConnection | None = None
        self._version = ""
        self._list_from = "0"
        self._state: dict[Name, Object] = {}
        self.inconsistencies: list[str] = []
        self.lists = 0
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    @property
    def state(self) -> Mapping[Name, Object]:
        return dict(self._state)

    def stop(self) -> None:
        self._over.set()
        connection = self._connection
        if connection is not None and connection.sock is not None:
            with contextlib.suppress(OSError):
                # shuts down the plain socket, because the other thread is reading the TLS one
                socket.socket.shutdown(connection.sock, socket.SHUT_RDWR)
        self._thread.join(timeout=30)

    def _run(self) -> None:
        while not self._over.is_set():
            try:
                if not self._version:
                    self._list()
                self._watch()
            except (OSError, http.client.HTTPException):
                self._over.wait(_PAUSE_SECONDS)

    def _list(self) -> None:
        query = {"resourceVersion": self._list_from} if self._list_from else {}
        answer = self._client().get(self._path, query=query)
        if answer.status != 200:
            self._list_from = "" if answer.status in (_GONE, 504) else self._list_from
            raise http.client.HTTPException(f"LIST: {answer.status}")
        found = answer.json()
        self.lists += 1
        version = found["metadata"]["resourceVersion"]
        if int(version) < int(self._list_from or 0):
            self.inconsistencies.append(f"a list from version {self._list_from} returned version {version}")
        self._state = {name_of(item): item for item in found["items"]}
        self._version = self._list_from = version

    def _watch(self) -> None:
        client = self._client()
        parts = urlsplit(client.url)
        assert parts.hostname is not None
        query = {
            "watch": "true",
            "allowWatchBookmarks": "true",
            "resourceVersion": self._version,
            "timeoutSeconds": self._timeout_seconds,
        }
        connection = http.client.HTTPSConnection(parts.hostname, parts.port, context=client.tls, timeout=_READ_SECONDS)
        self._connection = connection
        try:
            connection.request("GET", f"{self._path}?{urlencode(query)}", headers=dict(client.headers))
            response = connection.getresponse()
            if response.status != 200:
                raise http.client.HTTPException(f"WATCH: {response.status}")
            while (line := response.readline()).endswith(b"\n") and not self._over.is_set():
                self._process_event(json.loads(line))
        finally:
            self._connection = None
            connection.close()

    def _process_event(self, event: Object) -> None:
        type_, obj = event["type"], event["object"]
        if type_ == "ERROR":
            self._version = ""
            self._list_from = "" if obj["code"] == _GONE else self._list_from
            raise http.client.HTTPException(f"ERROR: {obj['message']}")
        version = obj["metadata"]["resourceVersion"]
        if type_ != "BOOKMARK":
            self._check_event(type_, obj, version)
            if type_ == "DELETED":
                self._state.pop(name_of(obj), None)
            else:
                self._state[name_of(obj)] = obj
        self._version = self._list_from = version

    def _check_event(self, type_: str, obj: Object, version: str) -> None:
        stored = self._state.get(name_of(obj))
        if int(version) <= int(self._version):
            self.inconsistencies.append(f"{type_} {name_of(obj)} at {version} after {self._version}")
        if (stored is None) != (type_ == "ADDED"):
            known = "unknown" if stored is None else "known"
            self.inconsistencies.append(f"{type_} {name_of(obj)}, which was {known}")
