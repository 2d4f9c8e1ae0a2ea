"""python -m benchmarks.counted_server FILE standalone|serve …: our server, which counts what it does.

Each of these signals makes it write FILE anew, a JSON object with one number:

* SIGUSR1: `calls`, the function calls of its main thread since the former SIGUSR1; every other signal begins such a
  time, in which everything takes longer, and writes 0.
* SIGUSR2: `tracked`, the objects that the garbage collector tracks when it has collected all garbage.
* SIGRTMIN: `bytes`, how many bytes Python had allocated at the same time since the former SIGRTMIN, at most; every
  other signal begins such a time and writes 0.
"""

from __future__ import annotations

import cProfile
import gc
import signal
import sys
import tracemalloc
from pathlib import Path

import orjson

from tenant_apiserver.__main__ import main


class Counters:
    """Counts by cProfile and tracemalloc, whose figures do not depend on the speed of the machine."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self._profiler = cProfile.Profile()
        self._counts_calls = False

    def start(self) -> None:
        signal.signal(signal.SIGUSR1, lambda *_: self._write_calls())
        signal.signal(signal.SIGUSR2, lambda *_: self._write("tracked", tracked()))
        signal.signal(signal.SIGRTMIN, lambda *_: self._write_bytes())

    def _write_calls(self) -> None:
        self._profiler.disable()
        self._write("calls", sum(entry.callcount for entry in self._profiler.getstats()))
        self._profiler.clear()
        self._counts_calls = not self._counts_calls
        if self._counts_calls:
            self._profiler.enable()

    def _write_bytes(self) -> None:
        if not tracemalloc.is_tracing():
            self._write("bytes", 0)
            tracemalloc.start()
        else:
            _, most = tracemalloc.get_traced_memory()
            tracemalloc.stop()
            self._write("bytes", most)

    def _write(self, name: str, number: int) -> None:
        # renamed, so that it is never read half written
        partial = self._file.with_suffix(".partial")
        partial.write_bytes(orjson.dumps({name: number}))
        partial.rename(self._file)


def tracked() -> int:
    """Objects that are frozen count, too: but a frozen one is not examined, so that garbage would stay, and tuples of
    numbers and texts would be tracked or not, depending on when the last collection before was."""
    gc.unfreeze()
    gc.collect()
    found = len(gc.get_objects())
    gc.freeze()
    return found


if __name__ == "__main__":
    counters = Counters(Path(sys.argv.pop(1)))
    counters.start()
    main()
