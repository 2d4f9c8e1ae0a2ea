"""The end of a command whose output nobody reads any more, as in `tenant-apiserver preflight | head`.

Python ignores SIGPIPE, so that a broken connection ends no server, and raises BrokenPipeError instead.
"""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from typing import TextIO

PIPE_CLOSED = 141
"""The exit status that a shell shows of a program that SIGPIPE has ended: 128 and the number of the signal."""


@contextmanager
def quiet_end() -> Iterator[None]:
    """For what only prints: the process ends with PIPE_CLOSED where nobody reads it."""
    try:
        try:
            yield
        finally:
            # else the interpreter does it, and complains
            if sys.stdout is not None:
                sys.stdout.flush()
    except BrokenPipeError:
        discard(sys.stdout)
        raise SystemExit(PIPE_CLOSED) from None


def finish_quietly(action: Callable[[], int]) -> int:
    """Returns the exit status of a command that also writes to the cluster, and so goes on to its end without a reader:
    PIPE_CLOSED then, and 2 if the output cannot be written for another reason."""
    out, err = _LastingOutput(sys.stdout), _LastingOutput(sys.stderr)
    with redirect_stdout(out), redirect_stderr(err):
        status = action()
        if out.error is not None and not isinstance(out.error, BrokenPipeError):
            print(f"the output cannot be written: {out.error.strerror or out.error}", file=err)
            return 2
    return PIPE_CLOSED if out.error is not None or isinstance(err.error, BrokenPipeError) else status


def discard(stream: TextIO | None) -> None:
    """After a write has failed, the end of the process would try what is left of it again, and complain."""
    if stream is None:
        return
    nothing = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nothing, stream.fileno())
    os.close(nothing)


class _LastingOutput(io.TextIOBase):
    """Writes line by line, until that fails. `error` is the reason."""

    def __init__(self, stream: TextIO | None) -> None:
        self._stream = stream
        self.error: OSError | None = None

    def write(self, text: str, /) -> int:
        if self._stream is not None and self.error is None:
            try:
                self._stream.write(text)
                if text.endswith("\n"):
                    self._stream.flush()
            except OSError as error:
                self.error = error
                discard(self._stream)
        return len(text)
