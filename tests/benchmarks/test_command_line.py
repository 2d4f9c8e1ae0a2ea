"""Command lines of the benchmarks: the option `--cluster` with its old name, numbers, and SIGTERM."""

from __future__ import annotations

import argparse
import runpy
import signal
import subprocess
import sys
from pathlib import Path
from typing import NoReturn

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


_PROGRAMS = sorted(
    str(path.relative_to(_REPOSITORY))
    for path in (_REPOSITORY / "benchmarks").rglob("*.py")
    if "ArgumentParser(" in (text := path.read_text()) and '__name__ == "__main__"' in text
)


class _ParserFoundError(Exception):
    def __init__(self, parser: argparse.ArgumentParser) -> None:
        super().__init__()
        self.parser = parser


def _file_of(program: str) -> Path:
    """`.features.sizes` is that of `python -m benchmarks.features.sizes`."""
    path = _REPOSITORY.joinpath("benchmarks", *program.split(".")[1:])
    return path / "__main__.py" if path.is_dir() else path.with_suffix(".py")


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


@pytest.mark.parametrize("program", _PROGRAMS)
def test_every_option_of_a_program_says_what_it_is(program: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def capture(parser: argparse.ArgumentParser, args: object = None) -> NoReturn:
        raise _ParserFoundError(parser)

    monkeypatch.setattr(argparse.ArgumentParser, "parse_args", capture)
    with pytest.raises(_ParserFoundError) as found:
        runpy.run_path(str(_REPOSITORY / program), run_name="__main__")
    parser = found.value.parser
    assert [action.dest for action in parser._actions if not action.help] == []
    # which accept numbers that make no sense
    assert [action.dest for action in parser._actions if action.type in (int, float)] == []


@pytest.mark.parametrize(
    ("program", "arguments", "allowed"),
    [
        pytest.param("", "--tenants -5", "at least 1", id="a negative size"),
        pytest.param("", "--tenants 0", "at least 1", id="no Tenants"),
        pytest.param("", "--tenants 10,5", "the smallest first", id="sizes in another order"),
        pytest.param("", "--tenants 5,5", "each once", id="a size twice"),
        pytest.param("", "--tenants 5,", "separated by commas", id="a size is missing"),
        pytest.param("", "--watchers 0", "at least 1", id="no watchers"),
        pytest.param("", "--runs many", "whole number", id="not a number"),
        pytest.param("", "--converge -1", "at least 0", id="fewer than none"),
        pytest.param("", "--json /nonsuch/x.json", "folder that exists", id="no folder"),
        pytest.param("", "--json /", "a file", id="a folder as file"),
        pytest.param(".features.sizes", "--tenants 0", "at least 1", id="sizes"),
        pytest.param(".features.sizes", "--tenants 7,9", "at least 8", id="too few to read"),
        pytest.param(
            ".features.delegations", "--vertices 60 --roots 1 --gateways 1", "at most 16", id="rules of a root"
        ),
        pytest.param(".features.visibility", "--namespaces 5", "at least 11", id="visibility"),
        pytest.param(".features.applications", "--applications 0", "at least 4", id="applications"),
        pytest.param(".features.application_requests", "--applications 3", "at least 4", id="application requests"),
        pytest.param(".features.role_bindings", "--bindings 0", "at least 1", id="RoleBindings"),
        pytest.param(".features.isolation", "--tenants -1", "at least 1", id="isolation"),
        pytest.param(".features.gateways", "--routes 10 --namespaces 3 --gateways 1", "a multiple", id="gateways"),
        pytest.param(".features.delegations", "--vertices 60 --roots 7 --gateways 1", "a multiple", id="roots"),
        pytest.param(".features.delegations", "--vertices 70 --roots 7 --gateways 1", "multiple of 20", id="vertices"),
        pytest.param(".features.converged", "--tenants 1", "multiples of", id="converged"),
        pytest.param(".proxy", "--namespaces 9", "at least 10", id="proxy"),
        pytest.param(".versus", "--window 0", "above 0", id="no time"),
        pytest.param(".versus", "--sides direct,other", "direct,aggregated,custom", id="no such side"),
        pytest.param(".versus", "--cluster embedded --sides custom", "--sides must be of direct", id="not this side"),
        pytest.param(".versus", "--against https://x --kubeconfig /nonsuch", "can be read", id="no kubeconfig"),
        pytest.param(".plots", "/nonsuch.json", "--json of a benchmark", id="no file to plot"),
    ],
)
def test_a_wrong_argument_is_an_error_of_usage_before_anything_starts(
    program: str, arguments: str, allowed: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["benchmark", *arguments.split()])
    with pytest.raises(SystemExit) as stop:
        runpy.run_path(str(_file_of(program)), run_name="__main__")
    assert stop.value.code == 2
    assert allowed in capsys.readouterr().err


def test_a_benchmark_that_is_terminated_stops_what_it_has_started() -> None:
    command = [sys.executable, "-c", _BENCHMARK]
    with subprocess.Popen(command, cwd=_REPOSITORY, stdout=subprocess.PIPE, text=True) as benchmark:
        assert benchmark.stdout is not None
        assert benchmark.stdout.readline() == "started\n"
        benchmark.send_signal(signal.SIGTERM)
        assert benchmark.stdout.read() == "stopped\n"
    assert benchmark.returncode == 128 + signal.SIGTERM
