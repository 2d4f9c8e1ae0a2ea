"""The entry points of the plugin: `kubectl-tenant`, and `kubectl_complete-tenant` for the completion of kubectl.

All else is imported after SIGINT has a handler, so that a Ctrl-C never ends in a traceback.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable
from types import FrameType

_INTERRUPTED = 130


def main() -> None:
    """Exits with kubectl's own status if kubectl fails, 2 for wrong arguments, 1 if there is no such tenant. `diff`
    exits as `kubectl diff` does: 1 if something differs, and more than 1 after an error."""
    _exit_with(_run)


def complete() -> None:
    """Prints the words that may follow, and cobra's directive."""
    _exit_with(_complete)


def _run() -> int:
    from tenant_apiserver.kubectl_tenant.commands import run

    return _interruptible(lambda: run(sys.argv[1:]))


def _complete() -> int:
    from tenant_apiserver.kubectl_tenant.completion import print_completion

    return _interruptible(lambda: print_completion(sys.argv[1:]))


def _exit_with(action: Callable[[], int]) -> None:
    # a shell that runs a command in the background has SIGINT ignored, and so it stays
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, _end)
    raise SystemExit(action())


def _interruptible(action: Callable[[], int]) -> int:
    """While the action runs, SIGINT is a KeyboardInterrupt, so that kubectl is ended, too."""
    from tenant_apiserver.closed_output import quiet_end

    has_handler = signal.getsignal(signal.SIGINT) is _end
    try:
        if has_handler:
            signal.signal(signal.SIGINT, signal.default_int_handler)
        with quiet_end():
            return action()
    except KeyboardInterrupt:
        return _INTERRUPTED
    finally:
        if has_handler:
            signal.signal(signal.SIGINT, _end)


def _end(_number: int, _frame: FrameType | None) -> None:
    os._exit(_INTERRUPTED)
