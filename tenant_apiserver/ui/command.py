"""`kubectl tenant ui`: the page in a browser, with the credentials of the user's kubeconfig."""

from __future__ import annotations

import asyncio
import signal
import sys
import tempfile
from collections.abc import Sequence
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
    """Returns the exit status: 0 after a signal, or 128 and its number before the page is served; 1 if kubectl or the
    port fails. `kubectl` is the program with its flags."""
    try:
        return asyncio.run(_run_ui(kubectl, options))
    except (KubectlFailed, CannotListen) as error:
        message = error.describe("--port") if isinstance(error, CannotListen) else str(error)
        print(message if message.startswith("error:") else f"error: {message}", file=sys.stderr)
        return 1


async def _run_ui(kubectl: Sequence[str], options: UiOptions) -> int:
    """Serves the page until a signal. Raises KubectlFailed and CannotListen."""
    loop = asyncio.get_running_loop()
    signalled: asyncio.Future[int] = loop.create_future()

    def stop(number: int) -> None:
        if not signalled.done():
            signalled.set_result(number)

    for each in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        loop.add_signal_handler(each, stop, each)
    served = asyncio.Event()
    page = asyncio.create_task(_serve(kubectl, options, served))
    await asyncio.wait((page, signalled), return_when=asyncio.FIRST_COMPLETED)
    if not signalled.done() and isinstance(page.exception(), KubectlFailed):
        await asyncio.wait((signalled,), timeout=_SIGNAL_SECONDS)
    page.cancel()
    await asyncio.gather(page, return_exceptions=True)
    if not signalled.done():
        page.result()
        return 0
    return 0 if served.is_set() else 128 + signalled.result()


async def _serve(kubectl: Sequence[str], options: UiOptions, served: asyncio.Event) -> None:
    """Serves the page until it is cancelled; `served` is set as soon as its URL is printed. Raises CannotListen, and
    KubectlFailed if kubectl ends before."""
    with tempfile.TemporaryDirectory(prefix="tenant-ui-") as name:
        folder = Path(name)
        async with kubectl_proxy(kubectl, folder) as (process, socket):
            info = await session_info(kubectl, namespace=options.namespace, read_only=options.read_only)
            server = PageServer(KubectlProxy(socket), info, how_to_log_in=_HOW_TO_LOG_IN)

            def announce(url: str) -> None:
                _announce(url, folder if options.open_browser else None, knows_accounts=server.knows_accounts)
                served.set()

            serving = asyncio.create_task(serve_page(server, options.address, options.port, announce))
            await _wait_for_either(serving, asyncio.create_task(process.wait()))


async def _wait_for_either(serving: asyncio.Task[None], ended: asyncio.Task[int]) -> None:
    """Until the page or kubectl ends. Raises CannotListen, and KubectlFailed."""
    tasks = (serving, ended)
    try:
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.wait(tasks)
    if serving.cancelled():
        raise KubectlFailed("error: kubectl proxy has ended")
    serving.result()


def _announce(url: str, opened_from: Path | None, *, knows_accounts: bool) -> None:
    """Prints the URL, and opens it in a browser by a file in the folder, if there is one."""
    minutes = f"{CODE_SECONDS // 60} minutes"
    print(f"The page is at {url}\nThis URL logs in one browser, within {minutes}. Ctrl-C ends the page.", flush=True)
    print(_NO_NAME, flush=True)
    if not knows_accounts:
        print(_NO_ACCOUNTS, file=sys.stderr, flush=True)
    if opened_from is not None:
        open_in_browser(opened_from, url)
