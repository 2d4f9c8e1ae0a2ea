"""Audit events of level Metadata, written by a background thread, one JSON object per line (WIRE-I16 to WIRE-I20)."""

from __future__ import annotations

import ipaddress
import logging
import os
import queue
import sys
import threading
import time
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, BinaryIO

import orjson

from apiserver.meta.errors import StatusError
from apiserver.request.context import RequestContext, User

_LOG = logging.getLogger("apiserver.audit")
_AGENT_LIMIT = 1024
_QUEUE_SIZE = 10_000
_MAX_SOURCES = 20

AuditEvent = Mapping[str, Any]


def event(
    context: RequestContext,
    stage: str,
    *,
    received: datetime,
    status: Mapping[str, Any] | None,
    identified: bool = True,
) -> AuditEvent:
    """The audit event of a stage: RequestReceived, ResponseStarted, ResponseComplete or Panic. It names no user unless
    the request was authenticated (`identified`)."""
    info = context.info
    user = context.impersonator or context.user
    document: dict[str, Any] = {
        "kind": "Event",
        "apiVersion": "audit.k8s.io/v1",
        "level": "Metadata",
        "auditID": context.audit_id,
        "stage": stage,
        "requestURI": _replace_surrogates(context.http.raw_path),
        "verb": info.verb,
        "user": _user(user) if identified else {},
        "sourceIPs": source_ips(context),
        "userAgent": _truncated_user_agent(context.http.headers.get("User-Agent", "")),
    }
    if context.impersonator is not None:
        document["impersonatedUser"] = _user(context.user)
    if info.is_resource:
        document["objectRef"] = _non_empty(
            resource=info.resource,
            namespace=info.namespace,
            name=info.name,
            apiGroup=info.group,
            apiVersion=info.version,
            subresource=info.subresource,
        )
    if status is not None:
        document["responseStatus"] = {"metadata": {}, **status}
    document["requestReceivedTimestamp"] = _micro_time(received)
    document["stageTimestamp"] = _micro_time(datetime.now(UTC))
    if context.annotations:
        document["annotations"] = dict(context.annotations)
    return document


def response_status(error: StatusError) -> dict[str, Any]:
    """The responseStatus of a failed request."""
    status = {"status": "Failure", "message": _replace_surrogates(error.message), "reason": error.reason}
    return {**_non_empty(**status), "code": error.code}


def source_ips(context: RequestContext) -> list[str]:
    """The addresses of X-Forwarded-For, then X-Real-Ip if not among them, then the peer's address unless it is equal to
    the last one (WIRE-I18)."""
    headers = context.http.headers
    forwarded = headers.get("X-Forwarded-For", "").split(",", _MAX_SOURCES)[:_MAX_SOURCES]
    found = [ip for part in forwarded if (ip := _canonical_ip(part))]
    real = _canonical_ip(headers.get("X-Real-Ip", ""))
    if real and real not in found:
        found.append(real)
    remote = _canonical_ip(context.http.remote or "")
    if remote and (not found or found[-1] != remote):
        found.append(remote)
    return found


class AuditLog:
    """Appends events to a file, or to standard output if the path is '-'. A file of more than `max_bytes` (0:
    unlimited) is renamed to `.1`, older files to `.2` and so on, up to the number of `backups`.

    `write` never blocks: if the disk is too slow for too long, events are dropped and `on_event_lost` is called.
    """

    def __init__(
        self, path: Path, *, max_bytes: int = 0, backups: int = 1, on_event_lost: Callable[[], None] = lambda: None
    ) -> None:
        self._path = path
        self._max_bytes = max_bytes
        self._backups = backups
        self._on_event_lost = on_event_lost
        self._events: queue.Queue[AuditEvent | None] = queue.Queue(_QUEUE_SIZE)
        self._file = self._open()
        self._thread = threading.Thread(target=self._run, name="audit-log", daemon=True)
        self._thread.start()

    def write(self, document: AuditEvent) -> None:
        try:
            self._events.put_nowait(document)
        except queue.Full:
            self._on_event_lost()

    def close(self) -> None:
        """Write all queued events and stop the thread. Blocks."""
        self._events.put(None)
        self._thread.join()
        if self._to_file:
            self._file.close()

    @property
    def _to_file(self) -> bool:
        return str(self._path) != "-"

    def _open(self) -> BinaryIO:
        if not self._to_file:
            return sys.stdout.buffer
        descriptor = os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
        return os.fdopen(descriptor, "ab")

    def _run(self) -> None:
        failing = False
        while (document := self._events.get()) is not None:
            try:
                self._append(orjson.dumps(document) + b"\n")
                failing = False
            except (OSError, orjson.JSONEncodeError) as error:
                self._on_event_lost()
                if not failing:
                    _LOG.error("audit events are lost: %s", error)
                failing = True

    def _append(self, line: bytes) -> None:
        if self._to_file and self._max_bytes and self._file.tell() + len(line) > self._max_bytes:
            self._rotate()
        self._file.write(line)
        self._file.flush()

    def _rotate(self) -> None:
        names = [self._path, *(self._path.with_name(f"{self._path.name}.{n}") for n in range(1, self._backups + 1))]
        for older, newer in zip(reversed(names[1:]), reversed(names[:-1]), strict=True):
            if newer.exists():
                newer.replace(older)
        new_file = self._open()
        self._file.close()
        self._file = new_file


def received_at(context: RequestContext) -> datetime:
    """The wall-clock time at which the request was received."""
    return datetime.fromtimestamp(time.time() - (time.monotonic() - context.received_at), UTC)


def _user(user: User) -> dict[str, Any]:
    extra = {key: list(values) for key, values in user.extra.items()}
    return _non_empty(username=user.name, uid=user.uid, groups=list(user.groups), extra=extra)


def _non_empty(**fields: Any) -> dict[str, Any]:
    return {key: value for key, value in fields.items() if value}


def _truncated_user_agent(text: str) -> str:
    return _replace_surrogates(text if len(text) <= _AGENT_LIMIT else f"{text[:_AGENT_LIMIT]}...TRUNCATED")


def _replace_surrogates(text: str) -> str:
    """Replace surrogates, which represent bytes that are not UTF-8 and cannot be encoded as JSON."""
    return text.encode("utf-8", "replace").decode()


def _canonical_ip(text: str) -> str:
    try:
        return str(ipaddress.ip_address(text.strip()))
    except ValueError:
        return ""


def _micro_time(moment: datetime) -> str:
    return moment.strftime("%Y-%m-%dT%H:%M:%S.%fZ")
