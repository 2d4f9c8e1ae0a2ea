"""The command line: names, environment variables, and one line for a bad value."""

from __future__ import annotations

from pathlib import Path

import pytest

from tenant_apiserver.options.command_line import (
    KubeconfigOptions,
    ServeOptions,
    StandaloneOptions,
    VersionOptions,
    parse_command_line,
)
from tenant_apiserver.options.flag_values import CONTROLLERS


def serve(*arguments: str, **environment: str) -> ServeOptions:
    options = parse_command_line(["serve", *arguments], environment)
    assert isinstance(options, ServeOptions)
    return options


def test_defaults_are_those_that_the_help_tells() -> None:
    options = serve()
    assert (options.secure_port, options.root_host, options.controllers) == (8443, "example.org", CONTROLLERS)


def test_a_flag_beats_its_environment_variable() -> None:
    assert serve("--secure-port", "1", TENANT_APISERVER_SECURE_PORT="2").secure_port == 1


def test_an_environment_variable_stands_for_its_flag() -> None:
    assert serve(TENANT_APISERVER_ROOT_HOST="a.example").root_host == "a.example"


@pytest.mark.parametrize(
    ("text", "chosen"),
    [
        pytest.param("*", CONTROLLERS, id="all"),
        pytest.param("none", (), id="none"),
        pytest.param("tenant", ("tenant",), id="one by name"),
        pytest.param("*,-tenant", tuple(name for name in CONTROLLERS if name != "tenant"), id="all but one"),
    ],
)
def test_controllers_are_chosen(text: str, chosen: tuple[str, ...]) -> None:
    assert serve("--controllers", text).controllers == chosen


@pytest.mark.parametrize(
    ("arguments", "environment", "line"),
    [
        pytest.param(["--secure-port", "0"], {}, "--secure-port=0: must be a number between 1 and 65535", id="port"),
        pytest.param([], {"TENANT_APISERVER_SECURE_PORT": "x"}, "$TENANT_APISERVER_SECURE_PORT=x:", id="environment"),
        pytest.param(["--bind-address", "nowhere"], {}, "--bind-address=nowhere:", id="address"),
        pytest.param(["--root-host", "Example.org"], {}, "--root-host=Example.org:", id="host in capitals"),
        pytest.param(["--controllers", "all"], {}, "unknown controller all", id="controller"),
        pytest.param(["--kubeconfig", "missing"], {}, "--kubeconfig=missing: no such file", id="missing file"),
        pytest.param(["--log-format", "xml"], {}, "must be one of text, json", id="format"),
        pytest.param(["-v", "11"], {}, "-v=11:", id="verbosity"),
        pytest.param(["--watch-history-size", "64MB"], {}, "must be a number of bytes", id="size of another unit"),
        pytest.param(["--watch-history-size", "0"], {}, "must be a number of bytes", id="size of nothing"),
        pytest.param(["--host-outage-tolerance", "5"], {}, "must be a duration", id="duration without unit"),
        pytest.param(["--secure-por", "1"], {}, "unrecognized arguments", id="no abbreviations"),
        pytest.param(
            ["--requestheader-allowed-names", "a"], {}, "needs --requestheader-client-ca-file", id="names without a CA"
        ),
    ],
)
def test_a_bad_value_is_one_line_and_exit_2(
    arguments: list[str], environment: dict[str, str], line: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as stop:
        parse_command_line(["serve", *arguments], environment)
    said = capsys.readouterr().err
    assert (stop.value.code, said.count("\n")) == (2, 1)
    assert line in said


def test_a_certificate_needs_its_key(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    certificate = tmp_path / "tls.crt"
    certificate.write_text("")
    with pytest.raises(SystemExit):
        serve("--tls-cert-file", str(certificate))
    assert "go together" in capsys.readouterr().err


def test_durations_are_seconds() -> None:
    assert serve("--host-outage-tolerance", "1m30s").host_outage_tolerance == 90.0
    assert serve().watch_history_size == serve("--watch-history-size", "64Mi").watch_history_size == 64 * 1024**2
    assert serve("--watch-history-size", "4096").watch_history_size == 4096
    assert not serve().authentication_tolerate_lookup_failure
    assert serve("--authentication-tolerate-lookup-failure").authentication_tolerate_lookup_failure


def test_the_other_commands_parse() -> None:
    assert isinstance(parse_command_line(["standalone"], {}), StandaloneOptions)
    assert isinstance(parse_command_line(["version"], {}), VersionOptions)
    kubeconfig = parse_command_line(["kubeconfig", "--user", "alice", "--groups", "a,b"], {})
    assert isinstance(kubeconfig, KubeconfigOptions)
    assert kubeconfig.groups == ("a", "b")
