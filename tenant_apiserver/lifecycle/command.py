"""Runs one of the operator's commands: an error or a signal becomes one line and an exit status, never a traceback."""

from __future__ import annotations

import asyncio
import signal
import sys
from collections.abc import Awaitable, Callable, Coroutine
from pathlib import Path
from typing import Any

from apiserver.meta.errors import StatusError
from registry.cluster.interface import reason_for_log
from tenant_apiserver.closed_output import finish_quietly

MISSING_RIGHTS = "you need credentials that may do this"
"""The remedy for a request that the cluster forbids."""


class StepRefused(Exception):
    """The step would break something, or was undone. The text says why, and what to do; the exit status is 1."""


class StepFailed(Exception):
    """Something cannot be read or written. The text says what has been done until then; the exit status is 2."""


class StepInterrupted(Exception):
    """A signal has ended the step. The text says in which state; the exit status is 128 and the signal's number."""


class _Signalled(Exception):
    def __init__(self, number: int, why: str) -> None:
        super().__init__(f"interrupted by {signal.Signals(number).name}; {why}")
        self.number = number


def run_command(name: str, action: Callable[[], Awaitable[int]], *, after: str) -> int:
    """Returns the exit status. `after` says what is so after an error or a signal that `action` itself did not tell
    about. A signal cancels the action once, and it then has time to finish or undo what it has begun. Without a reader
    of its output, the action goes on to its end."""
    return finish_quietly(lambda: _run(name, action, after))


def _run(name: str, action: Callable[[], Awaitable[int]], after: str) -> int:
    try:
        return asyncio.run(_interruptible(action, after))
    except StepRefused as refusal:
        return _end(name, str(refusal), 1)
    except StepFailed as failure:
        return _end(name, str(failure), 2)
    except _Signalled as signalled:
        return _end(name, str(signalled), 128 + signalled.number)
    except KeyboardInterrupt:
        return _end(name, f"interrupted by SIGINT; {after}", 128 + signal.SIGINT)
    except (ValueError, StatusError) as error:
        is_forbidden = isinstance(error, StatusError) and error.code == 403
        told = [reason(error), *([MISSING_RIGHTS] if is_forbidden else ()), after]
        return _end(name, "; ".join(told), 2)


def _end(name: str, text: str, status: int) -> int:
    print(f"tenant-apiserver {name}: {text}", file=sys.stderr)
    return status


def reason(error: ValueError | StatusError) -> str:
    return reason_for_log(error) if isinstance(error, StatusError) else str(error)


async def _interruptible(action: Callable[[], Awaitable[int]], after: str) -> int:
    received: list[int] = []
    loop, task = asyncio.get_running_loop(), asyncio.current_task()

    def cancel(number: int) -> None:
        if not received and task is not None:
            task.cancel()
        received.append(number)

    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, cancel, number)
    try:
        return await action()
    except StepInterrupted as interruption:
        raise _Signalled(received[0], str(interruption)) from None
    except asyncio.CancelledError:
        if not received:
            raise
        raise _Signalled(received[0], after) from None


async def finished(write: Coroutine[Any, Any, None]) -> None:
    """Awaits a write that no signal may cut off, as nobody could tell then whether it was done."""
    task = asyncio.ensure_future(write)
    try:
        await asyncio.shield(task)
    except asyncio.CancelledError:
        await asyncio.wait([task])
        if not task.cancelled():
            # the caller undoes the write, done or not
            task.exception()
        raise


def repeated(name: str, kubeconfig: Path | None) -> str:
    """Another command for the same cluster."""
    return f"tenant-apiserver {name}{f' --kubeconfig={kubeconfig}' if kubeconfig else ''}"
