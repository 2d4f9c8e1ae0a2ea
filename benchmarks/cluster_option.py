"""The option `--cluster` of the benchmarks, which was called `--host`; the old name works with a warning."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable, Sequence
from typing import Any

_OLD_NAME = "--host"


def add_cluster_option(parser: argparse.ArgumentParser, *, choices: Iterable[str], default: str) -> None:
    """Adds `--cluster` and its old name. Both with different values are an error."""
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
