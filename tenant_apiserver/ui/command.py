"""`kubectl tenant ui`: the page in a browser, with the credentials of the user's kubeconfig."""

from __future__ import annotations

import asyncio
import json
import signal
import sys
import tempfile
import webbrowser
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Final

from tenant_apiserver import __version__
from tenant_apiserver.ui.application import PageServer, SessionInfo, serve_page
from tenant_apiserver.ui.upstream import KubectlProxy

_START_SECONDS: Final = 30.0
_HOW_TO_LOG_IN: Final = "open the URL that kubectl tenant ui prints. It is valid once: start the command again."


class KubectlFailed(Exception):
    """kubectl ended, or did not begin to serve; the text is its own."""


async def run_ui(kubectl: Sequence[str], port: int, *, open_browser: bool) -> None:
    """Serves the page until a signal. `kubectl` is the program with its flags. Raises KubectlFailed, and OSError if the
    port is taken."""

    def announce(url: str) -> None:
        print(f"The page is at {url}\nIt logs in one browser. Ctrl-C ends it.", flush=True)
        if open_browser:
            webbrowser.open(url)

    stopped = asyncio.Event()
    for each in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(each, stopped.set)
    async with _kubectl_proxy(kubectl) as (process, socket):
        info = await _session_info(kubectl)
        server = PageServer(KubectlProxy(socket), info, how_to_log_in=_HOW_TO_LOG_IN)
        serving = asyncio.create_task(serve_page(server, port, announce))
        ends = (serving, asyncio.create_task(stopped.wait()), asyncio.create_task(process.wait()))
        try:
            await asyncio.wait(ends, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in ends:
                task.cancel()
            await asyncio.wait(ends)
        if not serving.cancelled() and (error := serving.exception()):
            raise error
        if process.returncode is not None and not stopped.is_set():
            raise KubectlFailed("error: kubectl proxy has ended")


@asynccontextmanager
async def _kubectl_proxy(kubectl: Sequence[str]) -> AsyncIterator[tuple[asyncio.subprocess.Process, Path]]:
    """A kubectl proxy on a socket in a folder that only the user can enter: unlike a port of loopback, no other user
    of the machine can reach it."""
    with tempfile.TemporaryDirectory(prefix="tenant-ui-") as folder:
        socket = Path(folder) / "socket"
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
            if process.returncode is None:
                process.terminate()
            await process.wait()


async def _wait_until_it_serves(process: asyncio.subprocess.Process) -> None:
    """kubectl prints a line as soon as the socket is there."""
    assert process.stdout is not None
    try:
        line = await asyncio.wait_for(process.stdout.readline(), _START_SECONDS)
    except TimeoutError:
        raise KubectlFailed(f"error: kubectl proxy did not start within {_START_SECONDS:.0f} s") from None
    if not line:
        raise KubectlFailed("error: kubectl proxy did not start")


async def _session_info(kubectl: Sequence[str]) -> SessionInfo:
    """As far as kubectl can tell. An old cluster cannot say who the user is."""
    view, whoami = await asyncio.gather(
        _json(kubectl, "config", "view", "--minify", "-o", "json"), _json(kubectl, "auth", "whoami", "-o", "json")
    )
    contexts, clusters = view.get("contexts") or [{}], view.get("clusters") or [{}]
    return SessionInfo(
        user=((whoami.get("status") or {}).get("userInfo") or {}).get("username", ""),
        cluster=(clusters[0].get("cluster") or {}).get("server", ""),
        namespace=(contexts[0].get("context") or {}).get("namespace", ""),
        version=__version__,
    )


async def _json(kubectl: Sequence[str], *arguments: str) -> dict[str, Any]:
    process = await asyncio.create_subprocess_exec(
        *kubectl, *arguments, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.DEVNULL
    )
    output, _ = await process.communicate()
    if process.returncode:
        return {}
    found = json.loads(output)
    return found if isinstance(found, dict) else {}


def ui(kubectl: Sequence[str], port: int, *, open_browser: bool) -> int:
    """Returns the exit status: 0 after a signal, 1 if kubectl or the port fails."""
    try:
        asyncio.run(run_ui(kubectl, port, open_browser=open_browser))
    except (KubectlFailed, OSError) as error:
        message = str(error)
        print(message if message.startswith("error:") else f"error: {message}", file=sys.stderr)
        return 1
    return 0
