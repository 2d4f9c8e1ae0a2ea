"""`kubectl tenant ui`: the page in a browser, with the credentials of the user's kubeconfig."""

from __future__ import annotations

import asyncio
import signal
import sys
import tempfile
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from apiserver.server.listener import CannotListen
from tenant_apiserver.ui.application import PageServer, serve_page
from tenant_apiserver.ui.browser import open_in_browser
from tenant_apiserver.ui.kubectl import KubectlFailed, kubectl_proxy, session_info
from tenant_apiserver.ui.sessions import CODE_SECONDS
from tenant_apiserver.ui.upstream import KubectlProxy

_HOW_TO_LOG_IN: Final = (
    "Open the URL that kubectl tenant ui prints. It logs in one browser, once: start the command again for another."
)
_NO_NAME: Final = "A browser that does not find the name of the URL finds 127.0.0.1 in its place."
_NO_ACCOUNTS: Final = (
    "warning: this system does not tell whose connections are whose: other accounts of this machine can try to log in"
)
# a Ctrl-C reaches kubectl and this process at the same time
_SIGNAL_SECONDS: Final = 0.5


@dataclass(frozen=True, slots=True, kw_only=True)
class UiOptions:
    """`address` is one of loopback; port 0 is any free one; `namespace` is that of the context if it is empty."""

    address: str = "127.0.0.1"
    port: int = 0
    namespace: str = ""
    read_only: bool = False
    open_browser: bool = False


def ui(kubectl: Sequence[str], options: UiOptions) -> int:
    """Returns the exit status: 0 after a signal, 1 if kubectl or the port fails. `kubectl` is the program with its
    flags."""
    try:
        asyncio.run(_run_ui(kubectl, options))
    except (KubectlFailed, CannotListen) as error:
        message = str(error)
        print(message if message.startswith("error:") else f"error: {message}", file=sys.stderr)
        return 1
    return 0


async def _run_ui(kubectl: Sequence[str], options: UiOptions) -> None:
    """Serves the page until a signal. Raises KubectlFailed and CannotListen."""
    stopped = asyncio.Event()
    for each in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        asyncio.get_running_loop().add_signal_handler(each, stopped.set)
    with tempfile.TemporaryDirectory(prefix="tenant-ui-") as name:
        folder = Path(name)
        async with kubectl_proxy(kubectl, folder) as (process, socket):
            info = await session_info(kubectl, namespace=options.namespace, read_only=options.read_only)
            server = PageServer(KubectlProxy(socket), info, how_to_log_in=_HOW_TO_LOG_IN)

            def announce(url: str) -> None:
                _announce(url, folder if options.open_browser else None, knows_accounts=server.knows_accounts)

            await _serve_until(server, options, announce=announce, process=process, stopped=stopped)


async def _serve_until(
    server: PageServer,
    options: UiOptions,
    *,
    announce: Callable[[str], None],
    process: asyncio.subprocess.Process,
    stopped: asyncio.Event,
) -> None:
    """Serves until a signal. Raises CannotListen, and KubectlFailed if kubectl ends before."""
    serving = asyncio.create_task(serve_page(server, options.address, options.port, announce))
    ends = (serving, asyncio.create_task(stopped.wait()), asyncio.create_task(process.wait()))
    try:
        await asyncio.wait(ends, return_when=asyncio.FIRST_COMPLETED)
        if process.returncode is not None:
            with suppress(TimeoutError):
                await asyncio.wait_for(stopped.wait(), _SIGNAL_SECONDS)
    finally:
        for task in ends:
            task.cancel()
        await asyncio.wait(ends)
    if not serving.cancelled() and (error := serving.exception()):
        raise error
    if process.returncode is not None and not stopped.is_set():
        raise KubectlFailed("error: kubectl proxy has ended")


def _announce(url: str, opened_from: Path | None, *, knows_accounts: bool) -> None:
    """Prints the URL, and opens it in a browser by a file in the folder, if there is one."""
    minutes = f"{CODE_SECONDS // 60} minutes"
    print(f"The page is at {url}\nThis URL logs in one browser, within {minutes}. Ctrl-C ends the page.", flush=True)
    print(_NO_NAME, flush=True)
    if not knows_accounts:
        print(_NO_ACCOUNTS, file=sys.stderr, flush=True)
    if opened_from is not None:
        open_in_browser(opened_from, url)
