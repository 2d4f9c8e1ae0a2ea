"""Parses the command line. Every flag has an environment variable, and the name that Kubernetes' own servers use; one
that was renamed works under its old name, too. An invalid value ends with one line and status 2."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NoReturn

from apiserver.storage.event_history import HistoryLimits
from registry.application.convert import ReleaseDefaults
from tenant_apiserver import __version__
from tenant_apiserver.options.flag import Flag, attribute_of, no_command, unrecognized, variable_of
from tenant_apiserver.options.flag_values import (
    CONTROLLERS,
    address,
    boolean,
    controllers,
    count,
    directory,
    duration,
    go_duration,
    hostname,
    names,
    new_file,
    new_file_or_standard_output,
    one_of,
    origin_patterns,
    port,
    positive,
    readable_file,
    size,
    verbosity,
    writable_file,
)
from tenant_apiserver.options.lifecycle import (
    BACK,
    PREFLIGHT,
    REPLACE,
    UNINSTALL,
    BackOptions,
    MoveOptions,
    PreflightOptions,
    UninstallOptions,
)
from tenant_apiserver.options.proxy import PROXY, ProxyOptions
from tenant_apiserver.options.standalone import STANDALONE


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        self.exit(2, f"{self.prog}: {message}\n")


_DEFAULTS = ReleaseDefaults()
_VERBOSITY = "log verbosity: 0 warnings and errors, 1 also start and stop, 3 also every request, 4 also debug messages"
_COMMON = (
    Flag("--secure-port", port, 8443, "port to listen on, HTTPS"),
    Flag("--root-host", hostname, "example.org", "domain of the root tenant"),
    Flag(
        "--controllers",
        controllers,
        CONTROLLERS,
        "controllers to run: '*' (default), 'none' or a list of " + ", ".join(CONTROLLERS),
    ),
    Flag("--config", readable_file, None, "YAML file with the platform settings, reloaded when it changes"),
    Flag("--max-requests-inflight", positive, 600, "maximum of concurrent requests, watches excluded; others get 429"),
    Flag("--audit-log-path", writable_file, None, "file for the audit log at level Metadata; '-' for standard output"),
    Flag(
        "--tls-transport",
        one_of("openssl", "asyncio"),
        "openssl",
        "TLS implementation: openssl, or asyncio as the fallback",
    ),
    Flag(
        "--watch-history-size",
        size,
        HistoryLimits().size,
        "memory for past changes, from which watches and paged lists resume, such as 64Mi (the default is in bytes)",
    ),
    Flag(
        "--cors-allowed-origins", origin_patterns, (), "origins of pages that may use the API in a browser, as regexes"
    ),
    Flag("--log-format", one_of("text", "json"), "text", "log format: text or json"),
    Flag("-v", verbosity, 1, _VERBOSITY),
)
_OF_SETTINGS = "of new applications (default: release.{} of the settings)"
_HELMRELEASES = (
    Flag("--helmrelease-interval", go_duration, "", f"spec.interval {_OF_SETTINGS.format('interval')}"),
    Flag(
        "--helmrelease-retry-interval", go_duration, "", f"time to the next try {_OF_SETTINGS.format('retryInterval')}"
    ),
    Flag(
        "--helmrelease-install-timeout",
        go_duration,
        _DEFAULTS.install_timeout,
        "timeout of installing new applications",
    ),
    Flag(
        "--helmrelease-upgrade-timeout", go_duration, _DEFAULTS.upgrade_timeout, "timeout of upgrading new applications"
    ),
    Flag("--helmrelease-max-history", count, None, f"spec.maxHistory {_OF_SETTINGS.format('maxHistory')}"),
)
_TOLERATE = "start even if the cluster denies access to the CAs of clients and front proxies"
_SERVE = (
    Flag("--bind-address", address, "0.0.0.0", "address to listen on"),
    Flag("--kubeconfig", readable_file, None, "kubeconfig of the cluster (default: in-cluster, then ~/.kube/config)"),
    Flag("--cert-dir", directory, None, "directory for a self-signed serving certificate and its CA"),
    Flag("--tls-cert-file", readable_file, None, "PEM file with the serving certificate and its intermediates"),
    Flag("--tls-private-key-file", readable_file, None, "private key of --tls-cert-file"),
    Flag("--service-name", str, "tenant-apiserver", "Service that the APIServices refer to"),
    Flag("--service-namespace", str, "cozy-system", "namespace of that Service, of the Lease and of the Secret"),
    Flag("--client-ca-file", readable_file, None, "CA of client certificates (default: from the cluster)"),
    Flag("--requestheader-client-ca-file", readable_file, None, "CA of front proxies (default: from the cluster)"),
    Flag("--requestheader-allowed-names", names, (), "common names of front proxies (default: any)"),
    Flag(
        "--requestheader-username-headers",
        names,
        ("X-Remote-User",),
        "headers with the user's name (default: X-Remote-User)",
    ),
    Flag("--requestheader-uid-headers", names, (), "headers with the user's uid"),
    Flag(
        "--requestheader-group-headers",
        names,
        ("X-Remote-Group",),
        "headers with the user's groups (default: X-Remote-Group)",
    ),
    Flag(
        "--requestheader-extra-headers-prefix",
        names,
        ("X-Remote-Extra-",),
        "prefixes of headers with extra attributes (default: X-Remote-Extra-)",
    ),
    Flag("--authentication-tolerate-lookup-failure", boolean, False, _TOLERATE, boolean=True),
    Flag(
        "--cluster-outage-tolerance",
        duration,
        300.0,
        "how long cached decisions on tokens and access stay valid while the cluster is unreachable (default: 5m)",
        deprecated_name="--host-outage-tolerance",
    ),
    Flag(
        "--leader-elect",
        boolean,
        True,
        "run controllers on one replica at a time, and share claims to hosts and quotas; false if this is the only one",
        boolean=True,
    ),
    Flag(
        "--visibility",
        one_of("rbac", "reviews"),
        "rbac",
        "what decides who sees a tenant: rbac (RBAC objects) or reviews (access reviews of the cluster)",
    ),
    Flag("--shadow", boolean, False, "only read: every write gets 405; needs --cert-dir or a file", boolean=True),
)
_KUBECONFIG = (
    Flag("--data-dir", directory, Path("data"), "data directory of the standalone server"),
    Flag("--user", str, "", "name of the user"),
    Flag("--groups", names, (), "groups of the user, comma-separated"),
    Flag("--server", str, "", "URL of the server (default: the one in the data directory's kubeconfig)"),
    Flag("--output", new_file_or_standard_output, None, "file to write; '-', the default, is standard output"),
)
_RENDER = (
    Flag("--config", readable_file, None, "YAML file with the platform settings (default: the defaults of all)"),
    Flag("--root-host", hostname, "example.org", "domain of the root tenant, unless the file has publishing.host"),
    Flag("--tlsroute-version", one_of("v1", "v1alpha3", "v1alpha2"), "v1", "version of TLSRoutes to print"),
)
_RENDERABLE = ("platform-routes",)
_BACKUP = (
    Flag("--data-dir", directory, Path("data"), "data directory of the standalone server, which may be running"),
    Flag("--to", new_file, None, "file to write; an existing one is replaced"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class CommonOptions:
    """Options of `serve` and `standalone`."""

    bind_address: str
    secure_port: int
    root_host: str
    controllers: tuple[str, ...]
    config: Path | None
    max_requests_inflight: int
    audit_log_path: Path | None
    tls_transport: str
    watch_history_size: int
    cors_allowed_origins: tuple[str, ...]
    log_format: str
    v: int
    helmrelease_interval: str
    helmrelease_retry_interval: str
    helmrelease_install_timeout: str
    helmrelease_upgrade_timeout: str
    helmrelease_max_history: int | None
    deprecations: tuple[str, ...] = ()
    """A log line for each deprecated flag or environment variable that is set."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ServeOptions(CommonOptions):
    kubeconfig: Path | None
    cert_dir: Path | None
    tls_cert_file: Path | None
    tls_private_key_file: Path | None
    service_name: str
    service_namespace: str
    client_ca_file: Path | None
    requestheader_client_ca_file: Path | None
    requestheader_allowed_names: tuple[str, ...]
    requestheader_username_headers: tuple[str, ...]
    requestheader_uid_headers: tuple[str, ...]
    requestheader_group_headers: tuple[str, ...]
    requestheader_extra_headers_prefix: tuple[str, ...]
    authentication_tolerate_lookup_failure: bool
    cluster_outage_tolerance: float
    leader_elect: bool
    visibility: str
    shadow: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class StandaloneOptions(CommonOptions):
    data_dir: Path
    ui: bool
    ui_port: int


@dataclass(frozen=True, slots=True, kw_only=True)
class KubeconfigOptions:
    data_dir: Path
    user: str
    groups: tuple[str, ...]
    server: str
    output: Path | None


@dataclass(frozen=True, slots=True, kw_only=True)
class BackupOptions:
    data_dir: Path
    to: Path | None


@dataclass(frozen=True, slots=True, kw_only=True)
class RenderOptions:
    """`what` is one of the renderable things."""

    what: str
    config: Path | None
    root_host: str
    tlsroute_version: str


@dataclass(frozen=True, slots=True)
class VersionOptions:
    pass


Options = (
    ServeOptions
    | StandaloneOptions
    | KubeconfigOptions
    | BackupOptions
    | RenderOptions
    | ProxyOptions
    | PreflightOptions
    | MoveOptions
    | BackOptions
    | UninstallOptions
    | VersionOptions
)

_COMMANDS: Mapping[str, tuple[str, type[Any], tuple[Flag, ...]]] = {
    "serve": (
        "serve Tenants behind the API of a Kubernetes cluster",
        ServeOptions,
        (*_COMMON, *_HELMRELEASES, *_SERVE),
    ),
    "standalone": (
        "serve Tenants with an embedded cluster, for evaluation and development",
        StandaloneOptions,
        (*_COMMON, *_HELMRELEASES, *STANDALONE),
    ),
    "proxy": ("serve a cluster's API to tenants: list what they may see", ProxyOptions, PROXY),
    "kubeconfig": ("issue a kubeconfig for a user of the embedded cluster", KubeconfigOptions, _KUBECONFIG),
    "backup": ("copy the data of a standalone server into one file", BackupOptions, _BACKUP),
    "render": ("print what the controllers would write with some settings", RenderOptions, _RENDER),
    "preflight": ("say what a step would change on a live cluster, and break", PreflightOptions, PREFLIGHT),
    "replace": ("move the APIServices of cozystack-api to this server", MoveOptions, REPLACE),
    "back": ("move these APIServices back again", BackOptions, BACK),
    "uninstall": ("remove the server; its tenants stay", UninstallOptions, UNINSTALL),
    "version": ("print the version", VersionOptions, ()),
}


def parse_command_line(arguments: Sequence[str], environment: Mapping[str, str]) -> Options:
    """Parses a command line. Exits with status 2 and one line on standard error if a value is invalid."""
    parser = _Parser(prog="tenant-apiserver", description="An aggregated API server for Tenants.", allow_abbrev=False)
    parser.add_argument("--version", action="version", version=f"tenant-apiserver {__version__}")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", parser_class=_Parser)
    for name, (summary, _, flags) in _COMMANDS.items():
        command = commands.add_parser(name, help=summary, description=summary, allow_abbrev=False)
        if name == "render":
            command.add_argument("what", metavar="|".join(_RENDERABLE), choices=_RENDERABLE, help="objects to print")
        for flag in flags:
            _add(command, flag)
    namespace, unknown = parser.parse_known_args(arguments)
    parsed = vars(namespace)
    if (name := parsed["command"]) is None:
        _fail("tenant-apiserver", no_command(unknown, _COMMANDS))
    _, options, flags = _COMMANDS[name]
    prog = f"tenant-apiserver {name}"
    if unknown:
        _fail(prog, unrecognized(unknown, flags))
    values = {flag.field: _value(prog, flag, parsed, environment) for flag in flags}
    if "what" in parsed:
        values["what"] = parsed["what"]
    if values.get("shadow"):
        values |= {"controllers": (), "leader_elect": False}
    chosen: Options = options(**values)
    if problem := _inconsistency(chosen):
        _fail(prog, problem)
    if isinstance(chosen, CommonOptions):
        return replace(chosen, deprecations=tuple(_deprecations(flags, parsed, environment)))
    return chosen


def _add(command: argparse.ArgumentParser, flag: Flag) -> None:
    for name in flag.names:
        help_text = flag.help_text if name == flag.name else argparse.SUPPRESS
        if flag.boolean:
            command.add_argument(name, nargs="?", const="true", default=None, help=help_text, metavar="true|false")
        else:
            command.add_argument(name, default=None, help=help_text)


def _value(prog: str, flag: Flag, arguments: Mapping[str, str | None], environment: Mapping[str, str]) -> Any:
    """A flag takes precedence over an environment variable. If a current and a deprecated name of the same sort are
    set, their values must be equal."""
    by_flag = {name: arguments[attribute_of(name)] for name in flag.names}
    by_variable = {f"${variable_of(name)}": environment.get(variable_of(name)) for name in flag.names}
    for texts in (by_flag, by_variable):
        values = {source: _parse(prog, flag, source, text) for source, text in texts.items() if text is not None}
        if values:
            return _agreed_value(prog, texts, values)
    return flag.default


def _agreed_value(prog: str, texts: Mapping[str, str | None], values: Mapping[str, Any]) -> Any:
    (current, value), *others = values.items()
    for old, other in others:
        if other != value:
            _fail(prog, f"{current}={texts[current]} and {old}={texts[old]} differ: remove {old}, the old name")
    return value


def _parse(prog: str, flag: Flag, source: str, text: str) -> Any:
    try:
        return flag.parse(text)
    except ValueError as error:
        _fail(prog, f"{source}={text}: {error}")


def _deprecations(
    flags: Sequence[Flag], arguments: Mapping[str, str | None], environment: Mapping[str, str]
) -> Iterator[str]:
    for flag in flags:
        if not flag.deprecated_name:
            continue
        if arguments[attribute_of(flag.deprecated_name)] is not None:
            yield f"{flag.deprecated_name} is deprecated: use {flag.name}"
        if (variable := variable_of(flag.deprecated_name)) in environment:
            yield f"${variable} is deprecated: use ${flag.variable}"


def _inconsistency(options: Options) -> str:
    if isinstance(options, ServeOptions):
        if (options.tls_cert_file is None) != (options.tls_private_key_file is None):
            return "--tls-cert-file and --tls-private-key-file must be set together"
        if options.requestheader_allowed_names and options.requestheader_client_ca_file is None:
            return "--requestheader-allowed-names needs --requestheader-client-ca-file"
        if options.shadow and not (options.tls_cert_file or options.cert_dir):
            return "--shadow needs --cert-dir or --tls-cert-file: it stores no certificate in the cluster"
    if isinstance(options, ProxyOptions):
        return options.inconsistency
    if isinstance(options, KubeconfigOptions) and not options.user:
        return "--user is required"
    if isinstance(options, BackupOptions) and options.to is None:
        return "--to is required"
    return ""


def _fail(prog: str, problem: str) -> NoReturn:
    print(f"{prog}: {problem}", file=sys.stderr)
    raise SystemExit(2)
