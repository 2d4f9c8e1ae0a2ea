"""A `kubectl proxy` for the page, and the answers of kubectl about its user."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Final

from tenant_apiserver.ui.application import SessionInfo

_START_SECONDS: Final = 30.0
_END_SECONDS: Final = 5.0
_REVIEW_SECONDS: Final = 10


class KubectlFailed(Exception):
    """kubectl ended, or did not begin to serve; the text is its own."""


@asynccontextmanager
async def kubectl_proxy(kubectl: Sequence[str], folder: Path) -> AsyncIterator[tuple[asyncio.subprocess.Process, Path]]:
    """A kubectl proxy on a socket in a folder that only the user can enter: unlike a port of loopback, no other user
    of the machine can reach it. Raises KubectlFailed."""
    socket = folder / "socket"
    try:
        process = await asyncio.create_subprocess_exec(
            *kubectl, "proxy", f"--unix-socket={socket}", stdout=asyncio.subprocess.PIPE
        )
    except OSError as error:
        raise KubectlFailed(f"error: cannot run {kubectl[0]}: {error}") from error
    try:
        await _wait_until_it_serves(process)
        yield process, socket
    finally:
        await _end(process)


async def session_info(kubectl: Sequence[str], *, namespace: str = "", read_only: bool = False) -> SessionInfo:
    """As far as kubectl can tell: an old cluster cannot say who the user is. `namespace` replaces that of the
    kubeconfig."""
    view, whoami = await asyncio.gather(
        _json(kubectl, "config", "view", "--minify", "-o", "json"),
        _json(kubectl, "auth", "whoami", "-o", "json", f"--request-timeout={_REVIEW_SECONDS}s"),
    )
    contexts, clusters = view.get("contexts") or [{}], view.get("clusters") or [{}]
    return SessionInfo(
        user=((whoami.get("status") or {}).get("userInfo") or {}).get("username", ""),
        cluster=(clusters[0].get("cluster") or {}).get("server", ""),
        namespace=namespace or (contexts[0].get("context") or {}).get("namespace", ""),
        read_only=read_only,
    )


async def _wait_until_it_serves(process: asyncio.subprocess.Process) -> None:
    """kubectl prints a line as soon as the socket is there. A question instead, such as for a name, which nobody
    answers, has no end of the line."""
    assert process.stdout is not None
    try:
        line = await asyncio.wait_for(process.stdout.readline(), _START_SECONDS)
    except TimeoutError:
        raise KubectlFailed(f"error: kubectl proxy did not start within {_START_SECONDS:.0f} s") from None
    if not line.endswith(b"\n"):
        raise KubectlFailed("error: kubectl proxy did not start")


async def _end(process: asyncio.subprocess.Process) -> None:
    if process.returncode is None:
        process.terminate()
        try:
            await asyncio.wait_for(process.wait(), _END_SECONDS)
        except TimeoutError:
            process.kill()
    await process.wait()


async def _json(kubectl: Sequence[str], *arguments: str) -> dict[str, Any]:
    process = await asyncio.create_subprocess_exec(
        *kubectl, *arguments, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.DEVNULL
    )
    try:
        output, _ = await process.communicate()
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    if process.returncode:
        return {}
    found = json.loads(output)
    return found if isinstance(found, dict) else {}
