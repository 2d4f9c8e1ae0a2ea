"""The command line of `kubectl tenant`. A wrong one ends the process with 2 and one line, as kubectl tells it."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import NoReturn

from apiserver.meta.suggestion import suggest
from registry.names import asked_host_error
from tenant_apiserver.kubectl_tenant.words import (
    ADDRESSES,
    COMMANDS,
    FLAGS,
    OUTPUTS,
    SUBJECTS,
    PluginFlag,
    flag_named,
    split,
    takes_next,
)

_LAST_PORT = 65535
_CHOICES = {"output": OUTPUTS, "address": ADDRESSES}
_NEEDS_A_NAME = ("who-can-see", "diff")
_OPERANDS = {
    **dict.fromkeys(_NEEDS_A_NAME, ("NAME",)),
    "explain": ("SUBJECT", "[NAME]"),
    "hosts": (),
    "ui": (),
}
"""As the usage shows them; of the other commands an optional NAME."""


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        problem = message.removeprefix("argument ").replace("expected one argument", "a value is missing")
        self.exit(2, f"error: {problem}\nSee '{self.prog} --help' for usage.\n")


def parse(arguments: Sequence[str]) -> argparse.Namespace:
    """Ends the process with 2 for a wrong argument. `flags` are those that are passed to kubectl. A name of the form
    NAMESPACE/NAME becomes `name` and `namespace`. Flags may come before the command."""
    parser = _Parser(prog="kubectl tenant", description="Tenants: their tree, and why it is as it is.")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND")
    parsers = {name: _command(commands, name, text) for name, text in COMMANDS.items()}
    flags, others = split(arguments)
    if others[:1] == ["preflight"]:
        rest = list(arguments)
        rest.remove("preflight")
        return argparse.Namespace(command="preflight", rest=rest)
    _check_words(parser, flags, others)
    # argparse takes an optional NAME for missing if a flag is before it
    found, rest = parser.parse_known_args([*others[:1], *flags, "--", *others[1:]])
    own = parsers[found.command]
    if superfluous := [each for each in rest if each != "--"]:
        own.error(_superfluous(found, superfluous))
    found.flags = _flags_of_kubectl(found)
    if problem := _problem(found) or _take_namespace(found):
        own.error(problem)
    return found


def _check_words(parser: _Parser, flags: Sequence[str], others: Sequence[str]) -> None:
    """Ends the process with 2 without a command that exists, or with 0 after the help."""
    if any(_is_no_text(each) for each in (*flags, *others)):
        parser.error("the arguments are no UTF-8")
    if others and others[0] in COMMANDS:
        return
    if not others and any(each in ("-h", "--help") for each in flags):
        parser.parse_args(["--help"])
    values = {at + 1 for at, each in enumerate(flags) if takes_next(each)}
    unknown = [each for at, each in enumerate(flags) if at not in values and flag_named(each) is None]
    if not others and unknown:
        parser.error(f"unknown flag: {unknown[0]}")
    all_of_them = f"the commands are {', '.join(COMMANDS)}"
    if not others:
        parser.error(f"a command is missing; {all_of_them}")
    parser.error(f"unknown command {others[0]}{suggest(others[0], COMMANDS) or f'; {all_of_them}'}")


def _is_no_text(word: str) -> bool:
    """Bytes of an argument that are no UTF-8 are surrogates in Python, which no request can have."""
    try:
        word.encode()
    except UnicodeEncodeError:
        return True
    return False


def _command(commands: argparse._SubParsersAction[_Parser], name: str, text: str) -> _Parser:
    if name == "preflight":
        # its arguments are those of tenant-apiserver preflight
        return commands.add_parser(name, help=text, add_help=False)
    operands = "".join(f" {each}" for each in _OPERANDS.get(name, ("[NAME]",)))
    usage = f"kubectl tenant {name}{operands} [flags]"
    parser = commands.add_parser(name, help=text, description=text, usage=usage, allow_abbrev=False)
    if name == "explain":
        subjects = ", ".join(SUBJECTS)
        parser.add_argument("subject", nargs="?", default="", metavar="SUBJECT", help=f"one of {subjects}")
    if operands:
        of_a_route = "; of a route NAMESPACE/NAME" if name == "explain" else ""
        parser.add_argument(
            "name",
            nargs="?",
            default="",
            metavar="NAME",
            help=f"of a tenant NAME or NAMESPACE/NAME{of_a_route}",
        )
    for flag in FLAGS:
        if flag.belongs_to(name):
            _add_flag(parser, flag)
    return parser


def _add_flag(parser: _Parser, flag: PluginFlag) -> None:
    if not flag.metavar:
        parser.add_argument(*flag.names, dest=flag.attribute, action="store_true", help=flag.help)
    elif flag.repeated:
        parser.add_argument(
            *flag.names, dest=flag.attribute, action="append", default=[], metavar=flag.metavar, help=flag.help
        )
    elif flag.name == "port":
        parser.add_argument(*flag.names, type=_port, default=0, metavar=flag.metavar, help=flag.help)
    else:
        default = ADDRESSES[0] if flag.name == "address" else ""
        parser.add_argument(*flag.names, dest=flag.attribute, default=default, metavar=flag.metavar, help=flag.help)


def _port(text: str) -> int:
    if not text.isdecimal() or int(text) > _LAST_PORT:
        raise argparse.ArgumentTypeError(f"must be a number from 0 to {_LAST_PORT}, not {text}")
    return int(text)


def _superfluous(found: argparse.Namespace, rest: Sequence[str]) -> str:
    unknown = [each for each in rest if each.startswith("-") and each != "-"]
    if not unknown:
        hint = "; a route is NAMESPACE/NAME" if getattr(found, "subject", "") == "route" else ""
        return f"{found.command} has too many arguments: {' '.join(rest)}{hint}"
    flag = unknown[0].partition("=")[0]
    names = [name for each in FLAGS if each.belongs_to(found.command) for name in each.names if len(name) > 2]
    return f"unknown flag: {flag}{suggest(flag, names)}"


def _flags_of_kubectl(found: argparse.Namespace) -> list[str]:
    flags = []
    for flag in FLAGS:
        if flag.of_kubectl:
            value = getattr(found, flag.attribute)
            flags += [f"--{flag.name}={each}" for each in (value if flag.repeated else [value]) if each]
    return flags


def _problem(found: argparse.Namespace) -> str:
    """The fault of the values; empty if there is none."""
    for name, choices in _CHOICES.items():
        value = getattr(found, name, "")
        if value and value not in choices:
            return f"--{name} must be {', '.join(choices[:-1])} or {choices[-1]}, not {value}"
    if found.command in _NEEDS_A_NAME and not found.name:
        return f"{found.command} needs the NAME of a tenant"
    if found.command != "explain":
        return ""
    if found.subject not in SUBJECTS:
        return f"explain needs one of {', '.join(SUBJECTS)}{f', not {found.subject}' if found.subject else ''}"
    if found.subject != "tenant" and not found.name:
        return f"explain {found.subject} needs a name"
    if found.group and found.subject != "user":
        return "--group is only for explain user"
    return _wrong_name(found.subject, found.name) or _wrong_tenant(found)


def _wrong_tenant(found: argparse.Namespace) -> str:
    """The fault of a tenant or a namespace that would be ignored; empty if there is none."""
    subject, name, tenant, namespace = found.subject, found.name, found.tenant, found.namespace
    if tenant:
        return f"explain tenant {name} names the tenant; leave out --tenant" if subject == "tenant" and name else ""
    if subject in ("route", "namespace") and namespace not in ("", name.partition("/")[0]):
        return (
            f"explain {subject} {name} is not about namespace {namespace}; leave out -n, or name a tenant by --tenant"
        )
    return ""


def _wrong_name(subject: str, name: str) -> str:
    """The fault in the form of a name; empty if there is none."""
    if subject == "host" and any(each in name for each in "/:"):
        return f"explain host needs a hostname without scheme, port and path, such as shop.example.org, not {name}"
    if subject == "host" and (problem := asked_host_error(name)):
        return problem
    if subject == "route" and [bool(each) for each in name.split("/")] != [True, True]:
        return f"explain route needs NAMESPACE/NAME, not {name}"
    return ""


def _take_namespace(found: argparse.Namespace) -> str:
    """Takes the namespace from names of the form NAMESPACE/NAME; returns the fault, empty if there is none."""
    if getattr(found, "all_namespaces", False):
        # as of kubectl, -A counts if both are given
        found.namespace = ""
    is_tenant = found.command != "explain" or found.subject == "tenant"
    for attribute in (*(("name",) if is_tenant else ()), "tenant"):
        value = getattr(found, attribute, "")
        if "/" not in value:
            continue
        namespace, _, name = value.partition("/")
        if not namespace or not name or "/" in name:
            return f"a tenant is NAME or NAMESPACE/NAME, not {value}"
        if found.namespace not in ("", namespace):
            return f"{value} is not in namespace {found.namespace}; leave out -n"
        found.namespace = namespace
        setattr(found, attribute, name)
    return ""
