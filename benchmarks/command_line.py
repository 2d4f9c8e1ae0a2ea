"""Command lines of the benchmarks: numbers, files, the option `--cluster`, and an end that leaves no process behind.

A wrong argument is an error of usage before anything starts: a run takes minutes, and its result must not be lost.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import signal
import sys
from collections.abc import Callable, Coroutine, Iterable, Sequence
from pathlib import Path
from typing import Any, TypeVar

import uvloop

T = TypeVar("T")
_OLD_NAME = "--host"


def run(main: Coroutine[Any, Any, T]) -> T:
    """Runs a benchmark. SIGTERM cancels it, as Ctrl-C does, so that it stops the servers that it has started."""
    try:
        return uvloop.run(_cancelled_by_sigterm(main))
    except asyncio.CancelledError:
        sys.exit(128 + signal.SIGTERM)


async def _cancelled_by_sigterm(main: Coroutine[Any, Any, T]) -> T:
    task = asyncio.ensure_future(main)
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, task.cancel)
    return await task


def parse_no_options(prog: str, description: str | None) -> None:
    """For a program without options: `--help` explains it, and any other argument is an error of usage."""
    parser = argparse.ArgumentParser(
        prog=prog, description=description, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.parse_args()


def at_least(least: int) -> Callable[[str], int]:
    """The type of an option: a whole number that is not smaller."""

    def parse(text: str) -> int:
        number = _integer(text)
        if number is None or number < least:
            raise argparse.ArgumentTypeError(f"must be a whole number of at least {least}, not {text!r}")
        return number

    return parse


def parse_integers(text: str) -> Sequence[int]:
    """Parses positive integers that are separated by commas. Raises ArgumentTypeError."""
    found = [number for each in text.split(",") if (number := _integer(each)) is not None and number > 0]
    if len(found) <= text.count(","):
        raise argparse.ArgumentTypeError(f"must be whole numbers of at least 1, separated by commas, not {text!r}")
    return found


def parse_sizes(text: str) -> Sequence[int]:
    """As `parse_integers`, the smallest first: what is there is extended for the next size. Raises
    ArgumentTypeError."""
    found = parse_integers(text)
    if found != sorted(set(found)):
        raise argparse.ArgumentTypeError(f"must be the smallest first, each once, not {text!r}")
    return found


def parse_seconds(text: str) -> float:
    """Raises ArgumentTypeError."""
    try:
        seconds = float(text)
    except ValueError:
        seconds = 0.0
    if not 0 < seconds < float("inf"):
        raise argparse.ArgumentTypeError(f"must be a number of seconds above 0, not {text!r}")
    return seconds


def _integer(text: str) -> int | None:
    try:
        return int(text)
    except ValueError:
        return None


def add_json_option(parser: argparse.ArgumentParser) -> None:
    """Adds `--json`, a file that can be written."""
    parser.add_argument("--json", type=_parse_target, metavar="FILE", help="write the rows to this file, too, as JSON")


def parse_source(text: str) -> Path:
    """A file that can be read. Raises ArgumentTypeError."""
    file = Path(text)
    if not file.is_file() or not os.access(file, os.R_OK):
        raise argparse.ArgumentTypeError(f"must be a file that can be read, not {text!r}")
    return file


def _parse_target(text: str) -> Path:
    file = Path(text)
    if file.is_dir() or not os.access(file if file.exists() else file.parent, os.W_OK):
        raise argparse.ArgumentTypeError(f"must be a file in a folder that exists and can be written, not {text!r}")
    return file


def add_cluster_option(parser: argparse.ArgumentParser, *, choices: Iterable[str], default: str) -> None:
    """Adds `--cluster` and its old name, `--host`, which prints a warning. Both with different values are an error."""
    values = tuple(choices)
    parser.add_argument(
        "--cluster", action=_ClusterAction, choices=values, default=default, help=f"what runs below; else {default}"
    )
    parser.add_argument(
        _OLD_NAME, action=_ClusterAction, dest="cluster", choices=values, default=default, help=argparse.SUPPRESS
    )


class _ClusterAction(argparse.Action):
    def __call__(
        self,
        parser: argparse.ArgumentParser,
        namespace: argparse.Namespace,
        values: str | Sequence[Any] | None,
        option_string: str | None = None,
    ) -> None:
        if option_string == _OLD_NAME:
            print(f"{parser.prog}: {_OLD_NAME} is deprecated: use --cluster", file=sys.stderr)
        earlier = getattr(namespace, "cluster_option", (option_string, values))
        if earlier[0] != option_string and earlier[1] != values:
            parser.error(f"--cluster and {_OLD_NAME} differ: remove {_OLD_NAME}, the old name")
        namespace.cluster_option = (option_string, values)
        namespace.cluster = values
