"""The command line of `kubectl tenant`."""

from __future__ import annotations

import argparse
from collections.abc import Sequence

from registry.names import canonical_host, host_errors

COMMANDS = ("tree", "explain", "who-can-see", "quota", "hosts", "diff", "ui", "preflight")
SUBJECTS = ("tenant", "host", "route", "namespace", "user")
_LAST_PORT = 65535
OUTPUTS = ("wide", "json", "yaml")
_OF_KUBECTL = ("context", "kubeconfig", "cluster", "user", "as", "as-uid", "token", "server")


def parse(arguments: Sequence[str]) -> argparse.Namespace:
    """Ends the process with 2 for a wrong argument. `flags` are those that are passed to kubectl."""
    parser = argparse.ArgumentParser(prog="kubectl tenant", description="Tenants: their tree, and why it is as it is.")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    tree = _command(commands, "tree", "the hierarchy, with host, gateway, quota and readiness")
    tree.add_argument("name", nargs="?", default="", metavar="NAME")
    tree.add_argument("-A", "--all-namespaces", action="store_true", help="all tenants that you may see (the default)")
    tree.add_argument("-w", "--watch", action="store_true", help="print the tree again after each change")
    explain = _command(commands, "explain", "why a tenant, a host, a route, a namespace or a user is as it is")
    explain.add_argument("subject", choices=SUBJECTS)
    explain.add_argument("name", nargs="?", default="", metavar="NAME", help="of a route NAMESPACE/NAME")
    explain.add_argument("--tenant", default="", help="the tenant to ask (default: the one that the name belongs to)")
    readers = _command(commands, "who-can-see", "the bindings whose subjects may get a tenant")
    readers.add_argument("name", metavar="NAME")
    quota = _command(commands, "quota", "what is declared, allocated, used and left")
    quota.add_argument("name", nargs="?", default="", metavar="NAME")
    _command(commands, "hosts", "every hostname with its route and certificate")
    diff = _command(commands, "diff", "what the controllers would change for a tenant")
    diff.add_argument("name", metavar="NAME")
    diff.add_argument("-f", "--filename", default="", metavar="FILE", help="the tenant as FILE would make it")
    page = _command(commands, "ui", "the tenants as a page in a browser, until Ctrl-C")
    page.add_argument("--address", choices=("127.0.0.1", "::1"), default="127.0.0.1", help="the address to listen on")
    page.add_argument("--port", type=_port, default=0, help="the port to listen on (default: 0, any free one)")
    page.add_argument("--open", action="store_true", help="open the page in the default browser")
    page.add_argument("--read-only", action="store_true", help="refuse every write")
    # its arguments are those of tenant-apiserver preflight
    commands.add_parser("preflight", help="whether this server can be installed here", add_help=False)
    if arguments[:1] == ["preflight"]:
        return argparse.Namespace(command="preflight", rest=list(arguments[1:]))
    found = parser.parse_args(list(arguments))
    found.flags = [f"--{name}={value}" for name in _OF_KUBECTL if (value := getattr(found, f"kubectl_{name}"))]
    found.flags += [f"--as-group={group}" for group in found.as_group]
    if found.command == "explain" and found.subject in ("host", "route", "namespace", "user") and not found.name:
        parser.error(f"explain {found.subject} needs a name")
    if found.command == "explain" and (problem := _wrong_name(found.subject, found.name)):
        parser.error(problem)
    return found


def _port(text: str) -> int:
    if not text.isdecimal() or int(text) > _LAST_PORT:
        raise argparse.ArgumentTypeError(f"must be a number from 0 to {_LAST_PORT}, not {text}")
    return int(text)


def _wrong_name(subject: str, name: str) -> str:
    """The fault in the form of a name; empty if there is none."""
    if subject == "host" and any(each in name for each in "/:"):
        return f"explain host needs a hostname without scheme, port and path, such as shop.example.org, not {name}"
    if subject == "host" and (problems := host_errors(canonical_host(name).removeprefix("*."))):
        return f"{name} is not a DNS name: {problems[0]}"
    if subject == "route" and [bool(each) for each in name.split("/")] != [True, True]:
        return f"explain route needs NAMESPACE/NAME, not {name}"
    return ""


def _command(
    commands: argparse._SubParsersAction[argparse.ArgumentParser], name: str, text: str
) -> argparse.ArgumentParser:
    parser = commands.add_parser(name, help=text, description=text)
    parser.add_argument("-n", "--namespace", default="", help="the namespace of the tenant")
    parser.add_argument("-o", "--output", choices=OUTPUTS, default="", help="the form of the output")
    for flag in _OF_KUBECTL:
        parser.add_argument(f"--{flag}", default="", dest=f"kubectl_{flag}", help="as kubectl's")
    parser.add_argument("--as-group", action="append", default=[], help="as kubectl's; can be repeated")
    return parser
