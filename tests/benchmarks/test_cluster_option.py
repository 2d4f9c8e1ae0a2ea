"""The option `--cluster` of the benchmarks and its old name `--host`."""

from __future__ import annotations

import argparse

import pytest

from benchmarks.cluster_option import add_cluster_option


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
