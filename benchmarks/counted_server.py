"""python -m benchmarks.counted_server FILE standalone|serve …: our server, which counts what it does.

On SIGUSR1 it writes FILE anew: a JSON object with `calls`, the function calls of its main thread since the signal
before, and `tracked`, the objects that the garbage collector tracks.
"""

from __future__ import annotations

import cProfile
import gc
import signal
import sys
from pathlib import Path

import orjson

from tenant_apiserver.__main__ import main


class CallCounter:
    """Counts by cProfile, whose figures do not depend on the speed of the machine."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self._profiler = cProfile.Profile()

    def start(self) -> None:
        signal.signal(signal.SIGUSR1, lambda *_: self._write())
        self._profiler.enable()

    def _write(self) -> None:
        self._profiler.disable()
        calls = sum(entry.callcount for entry in self._profiler.getstats())
        gc.collect()
        # what exists after a start is frozen: later collections skip it
        counts = {"calls": calls, "tracked": len(gc.get_objects()) + gc.get_freeze_count()}
        # renamed, so that it is never read half written
        partial = self._file.with_suffix(".partial")
        partial.write_bytes(orjson.dumps(counts))
        partial.rename(self._file)
        self._profiler.clear()
        self._profiler.enable()


if __name__ == "__main__":
    counter = CallCounter(Path(sys.argv.pop(1)))
    counter.start()
    main()
