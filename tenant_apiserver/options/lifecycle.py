"""The options of the commands that bring the server onto a live cluster and off again."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from tenant_apiserver.options.flag import Flag
from tenant_apiserver.options.flag_values import boolean, duration, names, one_of, readable_file, verbosity

GROUPS = ("apps.cozystack.io", "core.cozystack.io", "sdn.cozystack.io")
"""The groups that cozystack-api serves, all in version v1alpha1, and that can be moved."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PreflightOptions:
    """`step` is shadow, replace, register or proxy; `output` table or json. No `groups` are all."""

    kubeconfig: Path | None
    groups: tuple[str, ...]
    step: str
    output: str
    verbose: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class MoveOptions:
    """Of `replace`. `timeout` in seconds, for the APIServices to become available. No `groups` are all."""

    kubeconfig: Path | None
    dry_run: bool
    timeout: float
    groups: tuple[str, ...] = ()


class BackOptions(MoveOptions):
    """Of `back`, which is about all groups."""


@dataclass(frozen=True, slots=True, kw_only=True)
class UninstallOptions:
    """`timeout` in seconds, for the replicas to end."""

    kubeconfig: Path | None
    dry_run: bool
    keep_objects: bool
    keep_managed_fields: bool
    timeout: float


_OPERATORS = Flag("--kubeconfig", readable_file, None, "kubeconfig of an operator (default: as kubectl's)")


def api_groups(text: str) -> tuple[str, ...]:
    """Names of groups that this version serves, at least one."""
    chosen = names(text)
    if unknown := [each for each in chosen if each not in GROUPS] or ([repr(text)] if not chosen else []):
        raise ValueError(f"unknown group {', '.join(unknown)}: use {', '.join(GROUPS)}")
    return chosen


def _verbose(text: str) -> bool:
    """The same variable of the environment is the verbosity of the server's log."""
    return verbosity(text) > 0 if text.isdigit() else boolean(text)


_GROUPS = Flag(
    "--groups", api_groups, (), "API groups to move, comma-separated (default: all that this version serves)"
)
PREFLIGHT = (
    _OPERATORS,
    _GROUPS,
    Flag("--for", one_of("shadow", "replace", "register", "proxy"), "replace", "step to judge", attribute="step"),
    Flag("-o", one_of("table", "json"), "table", "form of the output: table or json", attribute="output"),
    Flag("-v", _verbose, False, "name each object in the table", boolean=True, attribute="verbose"),
)
_DRY_RUN = Flag("--dry-run", boolean, False, "say what would be written, and write nothing", boolean=True)
BACK = (
    _OPERATORS,
    _DRY_RUN,
    Flag("--timeout", duration, 60.0, "how long to wait until the APIServices are available (default: 60s)"),
)
REPLACE = (*BACK, _GROUPS)
UNINSTALL = (
    _OPERATORS,
    _DRY_RUN,
    Flag("--keep-objects", boolean, False, "leave the Deployment, roles and policies, with no replicas", boolean=True),
    Flag("--keep-managed-fields", boolean, False, "leave who applied which field of a Tenant", boolean=True),
    Flag("--timeout", duration, 120.0, "how long to wait for the end of the replicas (default: 2m)"),
)
