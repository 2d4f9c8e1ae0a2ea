"""Parsing of flags and environment variables, errors, and deprecated names."""

from __future__ import annotations

from pathlib import Path

import pytest

from registry.application.convert import ReleaseDefaults
from registry.tenant.release_settings import ReleaseSettings
from tenant_apiserver import __version__, log_format
from tenant_apiserver.options.command_line import (
    KubeconfigOptions,
    ServeOptions,
    StandaloneOptions,
    VersionOptions,
    parse_command_line,
)
from tenant_apiserver.options.flag_values import CONTROLLERS
from tenant_apiserver.options.lifecycle import BackOptions, MoveOptions, PreflightOptions, UninstallOptions
from tenant_apiserver.serve import serve as run_server
from tenant_apiserver.wiring.applications.api import release_defaults


def serve(*arguments: str, **environment: str) -> ServeOptions:
    options = parse_command_line(["serve", *arguments], environment)
    assert isinstance(options, ServeOptions)
    return options


def test_flags_have_defaults() -> None:
    options = serve()
    assert (options.secure_port, options.root_host, options.controllers) == (8443, "example.org", CONTROLLERS)


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        pytest.param([], ReleaseDefaults(interval="7m0s"), id="settings"),
        pytest.param(["--helmrelease-interval", "90s"], ReleaseDefaults(interval="1m30s"), id="interval"),
        pytest.param(
            ["--helmrelease-retry-interval", "1m"],
            ReleaseDefaults(interval="7m0s", retry_interval="1m0s"),
            id="retry interval",
        ),
        pytest.param(
            ["--helmrelease-install-timeout", "1h", "--helmrelease-upgrade-timeout", "2h"],
            ReleaseDefaults(interval="7m0s", install_timeout="1h0m0s", upgrade_timeout="2h0m0s"),
            id="timeouts",
        ),
        pytest.param(["--helmrelease-max-history", "0"], ReleaseDefaults(interval="7m0s", max_history=0), id="history"),
    ],
)
def test_flags_decide_about_the_helmreleases_of_applications(arguments: list[str], expected: ReleaseDefaults) -> None:
    assert release_defaults(serve(*arguments), ReleaseSettings(interval="7m0s")) == expected


def test_a_flag_takes_precedence_over_its_environment_variable() -> None:
    assert serve("--secure-port", "1", TENANT_APISERVER_SECURE_PORT="2").secure_port == 1


def test_an_environment_variable_replaces_its_flag() -> None:
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
def test_controllers_selects_all_none_or_some(text: str, chosen: tuple[str, ...]) -> None:
    assert serve("--controllers", text).controllers == chosen


@pytest.mark.parametrize(
    ("arguments", "environment", "line"),
    [
        pytest.param(
            ["--cors-allowed-origins", "example.org"],
            {},
            "--cors-allowed-origins=example.org: has example.org, which does not begin with ^ or contain //, "
            "and end with $ or a port",
            id="origin",
        ),
        pytest.param(
            ["--cors-allowed-origins", "^("],
            {},
            "--cors-allowed-origins=^(: has an invalid regular expression ^(: missing ), unterminated subpattern at "
            "position 1",
            id="origin's regex",
        ),
        pytest.param(["--secure-port", "0"], {}, "--secure-port=0: must be a number between 1 and 65535", id="port"),
        pytest.param([], {"TENANT_APISERVER_SECURE_PORT": "x"}, "$TENANT_APISERVER_SECURE_PORT=x:", id="environment"),
        pytest.param(["--helmrelease-interval", "5"], {}, "--helmrelease-interval=5:", id="no duration"),
        pytest.param(["--helmrelease-interval", "0s"], {}, "must be longer than 0", id="no interval"),
        pytest.param(["--helmrelease-max-history", "-1"], {}, "--helmrelease-max-history=-1:", id="history"),
        pytest.param(["--bind-address", "nowhere"], {}, "--bind-address=nowhere:", id="address"),
        pytest.param(["--root-host", "Example.org"], {}, "--root-host=Example.org:", id="host in capitals"),
        pytest.param(["--controllers", "all"], {}, "unknown controller all", id="controller"),
        pytest.param(["--kubeconfig", "missing"], {}, "--kubeconfig=missing: no such file", id="missing file"),
        pytest.param(["--log-format", "xml"], {}, "must be one of text, json", id="format"),
        pytest.param(["-v", "11"], {}, "-v=11:", id="verbosity"),
        pytest.param(["--watch-history-size", "64MB"], {}, "must be a number of bytes", id="size of another unit"),
        pytest.param(["--watch-history-size", "0"], {}, "must be a number of bytes", id="size of nothing"),
        pytest.param(["--cluster-outage-tolerance", "5"], {}, "must be a duration", id="duration without unit"),
        pytest.param(
            ["--secure-por", "1"],
            {},
            "unrecognized arguments: --secure-por 1; did you mean --secure-port?",
            id="abbreviated flag",
        ),
        pytest.param(["--secure-por=1"], {}, "--secure-por=1; did you mean --secure-port?", id="flag with a value"),
        pytest.param(["--colour"], {}, "unrecognized arguments: --colour\n", id="a flag like none"),
        pytest.param(
            ["--requestheader-allowed-names", "a"], {}, "needs --requestheader-client-ca-file", id="names without a CA"
        ),
    ],
)
def test_a_bad_value_prints_one_line_and_exits_with_2(
    arguments: list[str], environment: dict[str, str], line: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as stop:
        parse_command_line(["serve", *arguments], environment)
    printed = capsys.readouterr().err
    assert (stop.value.code, printed.count("\n")) == (2, 1)
    assert line in printed


def test_a_certificate_without_a_key_is_rejected(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    certificate = tmp_path / "tls.crt"
    certificate.write_text("")
    with pytest.raises(SystemExit):
        serve("--tls-cert-file", str(certificate))
    assert "must be set together" in capsys.readouterr().err


def test_durations_sizes_and_booleans_are_parsed() -> None:
    assert serve("--cluster-outage-tolerance", "1m30s").cluster_outage_tolerance == 90.0
    assert serve().watch_history_size == serve("--watch-history-size", "64Mi").watch_history_size == 64 * 1024**2
    assert serve("--watch-history-size", "4096").watch_history_size == 4096
    assert not serve().authentication_tolerate_lookup_failure
    assert serve("--authentication-tolerate-lookup-failure").authentication_tolerate_lookup_failure


def test_the_other_commands_are_parsed() -> None:
    assert isinstance(parse_command_line(["standalone"], {}), StandaloneOptions)
    assert isinstance(parse_command_line(["version"], {}), VersionOptions)
    kubeconfig = parse_command_line(["kubeconfig", "--user", "alice", "--groups", "a,b"], {})
    assert isinstance(kubeconfig, KubeconfigOptions)
    assert kubeconfig.groups == ("a", "b")


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        pytest.param(["backup", "--to", ""], "tenant-apiserver backup: --to=: must be the path of a file", id="empty"),
        pytest.param(
            ["backup", "--to", "-"],
            "tenant-apiserver backup: --to=-: must be a file, as a backup is not written to standard output",
            id="backup to standard output",
        ),
        pytest.param(
            ["kubeconfig", "--user=bob", "--output="],
            "tenant-apiserver kubeconfig: --output=: must be the path of a file, or '-' for standard output",
            id="empty output",
        ),
    ],
)
def test_a_file_that_cannot_be_written_is_reported_by_its_flag(
    arguments: list[str], line: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as stop:
        parse_command_line(arguments, {})
    assert (stop.value.code, capsys.readouterr().err) == (2, f"{line}\n")


@pytest.mark.parametrize(("text", "path"), [("-", None), ("./-", Path("-")), ("bob", Path("bob"))])
def test_a_kubeconfig_is_written_to_standard_output_at_a_hyphen(text: str, path: Path | None) -> None:
    options = parse_command_line(["kubeconfig", "--user=bob", f"--output={text}"], {})
    assert isinstance(options, KubeconfigOptions)
    assert options.output == path


OLD_FLAG, OLD_VARIABLE = "--host-outage-tolerance", "TENANT_APISERVER_HOST_OUTAGE_TOLERANCE"
NEW_FLAG, NEW_VARIABLE = "--cluster-outage-tolerance", "TENANT_APISERVER_CLUSTER_OUTAGE_TOLERANCE"
FLAG_WARNING = f"{OLD_FLAG} is deprecated: use {NEW_FLAG}"
VARIABLE_WARNING = f"${OLD_VARIABLE} is deprecated: use ${NEW_VARIABLE}"


@pytest.mark.parametrize(
    ("arguments", "environment", "seconds", "warnings"),
    [
        pytest.param([], {}, 300.0, (), id="neither"),
        pytest.param([NEW_FLAG, "1m"], {}, 60.0, (), id="new flag"),
        pytest.param([OLD_FLAG, "1m"], {}, 60.0, (FLAG_WARNING,), id="old flag"),
        pytest.param([], {NEW_VARIABLE: "2m"}, 120.0, (), id="new variable"),
        pytest.param([], {OLD_VARIABLE: "2m"}, 120.0, (VARIABLE_WARNING,), id="old variable"),
        pytest.param([NEW_FLAG, "1m", OLD_FLAG, "60s"], {}, 60.0, (FLAG_WARNING,), id="both flags, same value"),
        pytest.param(
            [], {NEW_VARIABLE: "2m", OLD_VARIABLE: "120s"}, 120.0, (VARIABLE_WARNING,), id="both variables, same value"
        ),
        pytest.param([OLD_FLAG, "1m"], {NEW_VARIABLE: "2m"}, 60.0, (FLAG_WARNING,), id="old flag beats new variable"),
        pytest.param(
            [NEW_FLAG, "1m"], {OLD_VARIABLE: "2m"}, 60.0, (VARIABLE_WARNING,), id="new flag beats old variable"
        ),
        pytest.param([OLD_FLAG, "0"], {}, 0.0, (FLAG_WARNING,), id="zero by the old flag"),
    ],
)
def test_a_deprecated_name_still_works_and_yields_a_warning(
    arguments: list[str], environment: dict[str, str], seconds: float, warnings: tuple[str, ...]
) -> None:
    options = serve(*arguments, **environment)
    assert options.cluster_outage_tolerance == seconds
    assert options.deprecations == warnings


@pytest.mark.parametrize(
    ("arguments", "environment", "line"),
    [
        pytest.param(
            [NEW_FLAG, "1m", OLD_FLAG, "2m"],
            {},
            f"{NEW_FLAG}=1m and {OLD_FLAG}=2m differ: remove {OLD_FLAG}, the old name",
            id="flags",
        ),
        pytest.param(
            [],
            {NEW_VARIABLE: "1m", OLD_VARIABLE: "2m"},
            f"${NEW_VARIABLE}=1m and ${OLD_VARIABLE}=2m differ: remove ${OLD_VARIABLE}, the old name",
            id="variables",
        ),
        pytest.param([OLD_FLAG, "5"], {}, f"{OLD_FLAG}=5: must be a duration", id="bad value of the old flag"),
        pytest.param(
            [], {OLD_VARIABLE: "x"}, f"${OLD_VARIABLE}=x: must be a duration", id="bad value of the old variable"
        ),
    ],
)
def test_conflicting_or_bad_values_of_a_deprecated_name_print_one_line_and_exit_with_2(
    arguments: list[str], environment: dict[str, str], line: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as stop:
        parse_command_line(["serve", *arguments], environment)
    printed = capsys.readouterr().err
    assert (stop.value.code, printed.count("\n")) == (2, 1)
    assert line in printed


def test_the_help_shows_only_the_new_name(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        parse_command_line(["serve", "--help"], {})
    printed = capsys.readouterr().out
    assert NEW_FLAG in printed
    assert OLD_FLAG not in printed


def test_the_server_logs_a_warning_for_a_deprecated_flag(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(log_format, "configure", lambda **_: None)
    wrong = tmp_path / "platform.yaml"
    wrong.write_text("no: {such: key}")
    assert run_server(serve(OLD_FLAG, "1m", "--config", str(wrong))) == 2
    assert [(record.levelname, record.getMessage()) for record in caplog.records] == [("WARNING", FLAG_WARNING)]


def test_a_shadow_runs_nothing_that_writes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    options = serve("--shadow", f"--cert-dir={tmp_path}", "--controllers=*", "--leader-elect")
    assert (options.shadow, options.controllers, options.leader_elect) == (True, (), False)
    with pytest.raises(SystemExit):
        serve("--shadow")
    assert "it stores no certificate in the cluster" in capsys.readouterr().err


def test_the_commands_of_operators_are_parsed() -> None:
    preflight = parse_command_line(["preflight", "--for=shadow", "-o", "json"], {})
    assert preflight == PreflightOptions(kubeconfig=None, groups=(), step="shadow", output="json")
    move = parse_command_line(["replace", "--groups=apps.cozystack.io", "--timeout=5s"], {})
    assert move == MoveOptions(kubeconfig=None, dry_run=False, timeout=5.0, groups=("apps.cozystack.io",))
    assert isinstance(parse_command_line(["back", "--dry-run"], {}), BackOptions)
    named = parse_command_line(["preflight", "-v"], {"TENANT_APISERVER_V": "0"})
    assert isinstance(named, PreflightOptions)
    assert named.verbose
    removal = parse_command_line(["uninstall", "--keep-objects"], {})
    assert isinstance(removal, UninstallOptions)
    assert (removal.keep_objects, removal.dry_run, removal.timeout) == (True, False, 120.0)


@pytest.mark.parametrize("command", ["preflight", "replace"])
@pytest.mark.parametrize(
    ("text", "unknown"),
    [
        pytest.param("apps", "apps", id="not the whole name"),
        pytest.param("apps.cozystack.io,core.cozystack.com", "core.cozystack.com", id="one of two"),
        pytest.param("", "''", id="empty"),
        pytest.param(",", "','", id="no name"),
    ],
)
def test_a_group_that_does_not_exist_is_an_error(
    capsys: pytest.CaptureFixture[str], command: str, text: str, unknown: str
) -> None:
    """Nothing would move, and the command would succeed."""
    with pytest.raises(SystemExit) as exit:
        parse_command_line([command, f"--groups={text}"], {})
    assert exit.value.code == 2
    expected = "apps.cozystack.io, core.cozystack.io, sdn.cozystack.io"
    assert capsys.readouterr().err == (
        f"tenant-apiserver {command}: --groups={text}: unknown group {unknown}: use {expected}\n"
    )


def test_the_version_is_printed_by_a_flag_too(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as exited:
        parse_command_line(["--version"], {})
    assert exited.value.code == 0
    assert capsys.readouterr().out == f"tenant-apiserver {__version__}\n"


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        pytest.param(
            [], "tenant-apiserver: a command is missing; the commands are serve, standalone, ", id="no command"
        ),
        pytest.param(
            ["--secure-port=1"],
            "tenant-apiserver: unrecognized arguments: --secure-port=1 and no command; the commands are serve, ",
            id="a flag only",
        ),
        pytest.param(
            ["render"],
            "tenant-apiserver render: the following arguments are required: platform-routes\n",
            id="nothing to render",
        ),
    ],
)
def test_what_is_missing_is_named(arguments: list[str], told: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        parse_command_line(arguments, {})
    assert ended.value.code == 2
    assert capsys.readouterr().err.startswith(told)
