"""The `backup` command, and the path of the stand-alone server that it calls while one runs.

Nobody else may open the database of a running server, so that server makes the copy.
"""

from __future__ import annotations

import http.client
import json
import os
import secrets
import shutil
import sqlite3
import ssl
import sys
from pathlib import Path
from typing import Protocol
from urllib.parse import urlsplit

from aiohttp import web

from apiserver.endpoints.responsewriters import json_response
from apiserver.meta import errors
from apiserver.private_files import create_private
from apiserver.request.context import RequestContext
from registry.sqlite.statements import DatabaseInUse, DatabaseUnusable, Tables
from tenant_apiserver.certificates.kubeconfig import server_of
from tenant_apiserver.certificates.local_pki import ADMIN, LocalPki
from tenant_apiserver.data_directory import DATABASE, KUBECONFIG, PKI, TargetRefused, check_replaceable
from tenant_apiserver.options.command_line import BackupOptions

_PATH = "/backup"
_PREFIX, _SUFFIX = "backup-", ".db"
_SECONDS = 600.0


class CopiedCluster(Protocol):
    async def copy_to(self, path: Path) -> None: ...


class BackupResponder:
    """Answers POST /backup: a copy of the database is written into the data directory, and the response names it."""

    def __init__(self, cluster: CopiedCluster, data: Path) -> None:
        self._cluster = cluster
        self._data = data

    async def respond(self, context: RequestContext) -> web.StreamResponse | None:
        """The response, or None for another path. Raises MethodNotAllowed and ServiceUnavailable."""
        if context.info.path != _PATH:
            return None
        if context.info.method != "POST":
            raise errors.MethodNotAllowed
        path = self._data / f"{_PREFIX}{secrets.token_hex(8)}{_SUFFIX}"
        await self._cluster.copy_to(path)
        return json_response(context, {"file": path.name})


class _BackupFailed(Exception):
    """The text says why."""


def backup(options: BackupOptions) -> int:
    """The `backup` command: writes all data of a stand-alone server into one file, while the server runs or not."""
    try:
        if not (options.data_dir / DATABASE).is_file():
            raise _BackupFailed(
                f"{options.data_dir} is not the data directory of a standalone server; name it with --data-dir"
            )
        assert options.to is not None
        _write(options.data_dir, options.to)
    except OSError as error:
        return _fail(f"{error.filename}: {error.strerror}" if error.filename else str(error))
    except (_BackupFailed, DatabaseUnusable, sqlite3.Error) as error:
        return _fail(str(error))
    return 0


def _fail(problem: str) -> int:
    print(f"tenant-apiserver backup: {problem}", file=sys.stderr)
    return 1


def _write(data: Path, to: Path) -> None:
    try:
        check_replaceable(to, data)
    except TargetRefused as error:
        raise _BackupFailed(f"--to={to}: {error}") from error
    scratch = to.with_name(f".{to.name}.{secrets.token_hex(8)}")
    try:
        create_private(scratch)
    except OSError as error:
        raise _BackupFailed(f"--to={to}: {error.strerror}") from error
    try:
        try:
            _copy_closed(data / DATABASE, scratch)
        except DatabaseInUse:
            _copy_running(data, scratch)
        with scratch.open("rb") as file:
            os.fsync(file.fileno())
        scratch.replace(to)
    finally:
        scratch.unlink(missing_ok=True)


def _copy_closed(database: Path, to: Path) -> None:
    """Raises DatabaseInUse."""
    tables = Tables.open(database)
    try:
        tables.copy_to(to, lambda: None)
    finally:
        tables.close()


def _copy_running(data: Path, to: Path) -> None:
    """Asks the server that has the database. Raises _BackupFailed."""
    copy = data / _request_copy(data)
    try:
        create_private(to)
        with copy.open("rb") as source, to.open("r+b") as target:
            shutil.copyfileobj(source, target)
    finally:
        copy.unlink(missing_ok=True)


def _request_copy(data: Path) -> str:
    """The name of the file that the server wrote into its data directory."""
    pki = LocalPki(data / PKI)
    context = ssl.create_default_context(cafile=str(pki.path("ca")[0]))
    context.load_cert_chain(*(str(each) for each in pki.path(ADMIN)))
    server = urlsplit(server_of(data / KUBECONFIG))
    connection = http.client.HTTPSConnection(
        server.hostname or "", server.port or 443, context=context, timeout=_SECONDS
    )
    try:
        connection.request("POST", _PATH)
        response = connection.getresponse()
        body = json.loads(response.read())
    except (TimeoutError, OSError, ValueError) as error:
        raise _BackupFailed(
            f"the database is in use, and the server at {server.geturl()} does not answer: {error}"
        ) from error
    finally:
        connection.close()
    if response.status != 200:
        raise _BackupFailed(f"the server answered {response.status}: {body.get('message', '')}")
    return str(body["file"])
