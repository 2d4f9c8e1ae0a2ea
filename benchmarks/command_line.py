"""Command lines of the benchmarks: numbers, the option `--cluster`, and an end that leaves no process behind."""

from __future__ import annotations

import argparse
import asyncio
import signal
import sys
from collections.abc import Coroutine, Iterable, Sequence
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


def parse_integers(text: str) -> Sequence[int]:
    """Parses integers that are separated by commas. Raises ValueError."""
    return [int(each) for each in text.split(",")]


def add_cluster_option(parser: argparse.ArgumentParser, *, choices: Iterable[str], default: str) -> None:
    """Adds `--cluster` and its old name, `--host`, which prints a warning. Both with different values are an error."""
    values = tuple(choices)
    parser.add_argument("--cluster", action=_ClusterAction, choices=values, default=default)
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
