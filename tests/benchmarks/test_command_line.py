"""Command lines of the benchmarks: the option `--cluster` with its old name, numbers, and SIGTERM."""

from __future__ import annotations

import argparse
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks.command_line import add_cluster_option, parse_integers

_REPOSITORY = Path(__file__).resolve().parents[2]
_BENCHMARK = """
import asyncio
from benchmarks.command_line import run

async def main():
    try:
        print("started", flush=True)
        await asyncio.Event().wait()
    finally:
        await asyncio.sleep(0)
        print("stopped", flush=True)

run(main())
"""


def parse(*arguments: str) -> str:
    parser = argparse.ArgumentParser(prog="benchmarks")
    add_cluster_option(parser, choices=("embedded", "kube"), default="embedded")
    cluster: str = parser.parse_args(arguments).cluster
    return cluster


@pytest.mark.parametrize(
    ("arguments", "cluster", "warned"),
    [
        pytest.param((), "embedded", False, id="neither"),
        pytest.param(("--cluster", "kube"), "kube", False, id="new name"),
        pytest.param(("--host", "kube"), "kube", True, id="old name"),
        pytest.param(("--cluster", "kube", "--host", "kube"), "kube", True, id="both names, same value"),
    ],
)
def test_the_old_name_works_and_prints_a_warning(
    arguments: tuple[str, ...], cluster: str, warned: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    assert parse(*arguments) == cluster
    assert capsys.readouterr().err == ("benchmarks: --host is deprecated: use --cluster\n" if warned else "")


@pytest.mark.parametrize(
    "arguments",
    [
        pytest.param(("--cluster", "kube", "--host", "embedded"), id="new name first"),
        pytest.param(("--host", "embedded", "--cluster", "kube"), id="old name first"),
    ],
)
def test_both_names_with_different_values_are_an_error(
    arguments: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as stop:
        parse(*arguments)
    assert stop.value.code == 2
    assert "--cluster and --host differ" in capsys.readouterr().err


def test_integers_are_separated_by_commas_and_anything_else_is_an_error_of_usage(
    capsys: pytest.CaptureFixture[str],
) -> None:
    parser = argparse.ArgumentParser(prog="benchmarks")
    parser.add_argument("--tenants", type=parse_integers)
    assert parser.parse_args(["--tenants", "100,1000"]).tenants == [100, 1000]
    with pytest.raises(SystemExit) as stop:
        parser.parse_args(["--tenants", "100,many"])
    assert stop.value.code == 2
    assert "--tenants" in capsys.readouterr().err


def test_a_benchmark_that_is_terminated_stops_what_it_has_started() -> None:
    command = [sys.executable, "-c", _BENCHMARK]
    with subprocess.Popen(command, cwd=_REPOSITORY, stdout=subprocess.PIPE, text=True) as benchmark:
        assert benchmark.stdout is not None
        assert benchmark.stdout.readline() == "started\n"
        benchmark.send_signal(signal.SIGTERM)
        assert benchmark.stdout.read() == "stopped\n"
    assert benchmark.returncode == 128 + signal.SIGTERM
