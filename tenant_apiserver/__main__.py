"""The entry point of `tenant-apiserver`; `tenant-apiserver --help` lists the commands."""

from __future__ import annotations

import os
import sys

from tenant_apiserver import __version__
from tenant_apiserver.options.command_line import (
    BackupOptions,
    KubeconfigOptions,
    RenderOptions,
    ServeOptions,
    StandaloneOptions,
    parse_command_line,
)
from tenant_apiserver.options.lifecycle import BackOptions, MoveOptions, PreflightOptions, UninstallOptions
from tenant_apiserver.options.proxy import ProxyOptions


def main() -> None:
    """Exits with 2 for a bad option, 1 if the server cannot start or fails, 0 after a clean shutdown."""
    options = parse_command_line(sys.argv[1:], os.environ)
    match options:
        case ServeOptions():
            # imported late, so that `version` and invalid flags do not load the server's libraries
            from tenant_apiserver.serve import serve

            raise SystemExit(serve(options))
        case StandaloneOptions():
            from tenant_apiserver.standalone import standalone

            raise SystemExit(standalone(options))
        case ProxyOptions():
            from tenant_apiserver.proxy.command import proxy

            raise SystemExit(proxy(options))
        case KubeconfigOptions():
            from tenant_apiserver.certificates.local_pki import kubeconfig

            raise SystemExit(kubeconfig(options))
        case BackupOptions():
            from tenant_apiserver.backup import backup

            raise SystemExit(backup(options))
        case RenderOptions():
            from tenant_apiserver.render import render

            raise SystemExit(render(options))
        case PreflightOptions() | BackOptions() | MoveOptions() | UninstallOptions():
            raise SystemExit(_run_lifecycle_command(options))
        case _:
            print(f"tenant-apiserver {__version__}")


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
