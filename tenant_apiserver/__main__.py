"""The entry point of `tenant-apiserver`; `tenant-apiserver --help` lists the commands."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from tenant_apiserver import __version__
from tenant_apiserver.closed_output import quiet_end
from tenant_apiserver.options.command_line import (
    BackupOptions,
    KubeconfigOptions,
    Options,
    RenderOptions,
    ServeOptions,
    StandaloneOptions,
    parse_command_line,
)
from tenant_apiserver.options.lifecycle import BackOptions, MoveOptions, PreflightOptions, UninstallOptions
from tenant_apiserver.options.proxy import ProxyOptions
from tenant_apiserver.server_import import without_collections


def main() -> None:
    """Exits with 2 for a bad option, 1 if the server cannot start or fails, 0 after a clean shutdown; with 141 if
    nobody reads what a command prints."""
    _have_a_home()
    # --help and --version end in it
    with quiet_end():
        options = parse_command_line(sys.argv[1:], os.environ)
    raise SystemExit(_run(options))


def _have_a_home() -> None:
    """kubernetes_asyncio asks for the home directory when it is imported, and fails for an account that has none. Its
    home is / then, as container runtimes have it."""
    try:
        Path.home()
    except RuntimeError:
        os.environ["HOME"] = "/"


def _run(options: Options) -> int:
    match options:
        case ServeOptions():
            # imported late, so that `version` and invalid flags do not load the server's libraries
            with without_collections():
                from tenant_apiserver.serve import serve

            return serve(options)
        case StandaloneOptions():
            with without_collections():
                from tenant_apiserver.standalone import standalone

            return standalone(options)
        case ProxyOptions():
            with without_collections():
                from tenant_apiserver.proxy.command import proxy

            return proxy(options)
        case PreflightOptions() | BackOptions() | MoveOptions() | UninstallOptions():
            return _run_lifecycle_command(options)
        case _:
            with quiet_end():
                return _print(options)


def _print(options: Options) -> int:
    """Runs a command that serves nothing."""
    match options:
        case KubeconfigOptions():
            from tenant_apiserver.certificates.local_pki import kubeconfig

            return kubeconfig(options)
        case BackupOptions():
            from tenant_apiserver.backup import backup

            return backup(options)
        case RenderOptions():
            from tenant_apiserver.render import render

            return render(options)
        case _:
            print(f"tenant-apiserver {__version__}")
            return 0


def _run_lifecycle_command(options: PreflightOptions | BackOptions | MoveOptions | UninstallOptions) -> int:
    """Runs a command of docs/live-cozystack.md. Returns its exit status."""
    match options:
        case PreflightOptions():
            from tenant_apiserver.lifecycle.preflight import preflight

            return preflight(options)
        case BackOptions():
            from tenant_apiserver.lifecycle.back import back

            return back(options)
        case MoveOptions():
            from tenant_apiserver.lifecycle.move import replace

            return replace(options)
        case UninstallOptions():
            from tenant_apiserver.lifecycle.uninstall import uninstall

            return uninstall(options)


if __name__ == "__main__":
    main()
