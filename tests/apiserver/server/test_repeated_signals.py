"""Signals that arrive while the handlers of signals change: none of them kills the process."""

from __future__ import annotations

import subprocess
import sys

import pytest

# the signals come from another process: those of a thread would arrive only where the interpreter switches threads
_PROGRAM = """
import asyncio, os, subprocess
import uvloop
from apiserver.server.listener import stop_on_signals


async def change_handlers():
    stop = asyncio.Event()
    with stop_on_signals(stop):
        send = f"while kill -TERM {{os.getpid()}}; do :; done"
        # it ends by itself if this process is killed, and does not hold its pipes open
        sender = subprocess.Popen(["sh", "-c", send], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        await stop.wait()
        for _ in range(100):
            with stop_on_signals(asyncio.Event()):
                await asyncio.sleep(0)
    sender.kill()
    sender.wait()

asyncio.Runner(loop_factory={loop}).run(change_handlers())
print("ended cleanly")
"""


@pytest.mark.parametrize("loop", ["asyncio.new_event_loop", "uvloop.new_event_loop"])
def test_no_signal_kills_a_process_that_stops_on_signals(loop: str) -> None:
    program = [sys.executable, "-c", _PROGRAM.format(loop=loop)]
    result = subprocess.run(program, capture_output=True, text=True, timeout=60, check=False)
    assert (result.returncode, result.stdout) == (0, "ended cleanly\n"), result.stderr
