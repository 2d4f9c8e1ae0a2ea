"""The words that may follow on the command line, for the completion of kubectl."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

from apiserver.meta.resource import Object
from tenant_apiserver.kubectl_tenant.lists import list_tenants, workload_namespace
from tenant_apiserver.kubectl_tenant.requests import Kubectl, RequestFailed
from tenant_apiserver.kubectl_tenant.words import (
    ADDRESSES,
    COMMANDS,
    FILE,
    FLAGS,
    OUTPUTS,
    SUBJECTS,
    PluginFlag,
    flag_named,
    split,
    takes_next,
)

_NO_FILES, _FILES = 4, 0
"""ShellCompDirectiveNoFileComp and ShellCompDirectiveDefault of cobra."""
_SECONDS = 5


class Completion(NamedTuple):
    """The words, each with its description behind a tab if it has one, and cobra's directive."""

    words: Sequence[str]
    directive: int


def print_completion(words: Sequence[str]) -> int:
    """The last of `words` is the one to complete, and may be empty."""
    found = completion(words, _kubectl)
    # the contexts of a kubeconfig have any names
    sys.stdout.buffer.write("".join(f"{each}\n" for each in (*found.words, f":{found.directive}")).encode())
    sys.stdout.flush()
    return 0


def completion(words: Sequence[str], kubectl: Callable[[Sequence[str]], Kubectl]) -> Completion:
    """`kubectl` makes a client of the flags of kubectl among the words. Nothing follows where kubectl fails."""
    *before, last = words or [""]
    flags, others = split(before[:-1] if before and takes_next(before[-1]) else before)
    client = kubectl([*_flags_of_kubectl(flags), f"--request-timeout={_SECONDS}s"])
    try:
        if before and takes_next(before[-1]):
            return _of_value(flag_named(before[-1]), last, flags, client)
        if last.startswith("--") and "=" in last:
            return _of_value(flag_named(last), last.partition("=")[2], flags, client)
        if last.startswith("-"):
            return _matching(_flags_of(others[0] if others else ""), last)
        return _of_position(others, last, _value_of("namespace", flags), client)
    except RequestFailed:
        return Completion((), _NO_FILES)


def _of_position(others: Sequence[str], last: str, namespace: str, kubectl: Kubectl) -> Completion:
    match others:
        case []:
            return _matching([f"{name}\t{text}" for name, text in COMMANDS.items()], last)
        case ["explain"]:
            return _matching(SUBJECTS, last)
        case ["tree" | "quota" | "who-can-see" | "diff"] | ["explain", "tenant"]:
            return _matching(_names(kubectl, last, namespace), last)
        case ["explain", "namespace"]:
            return _matching(_namespaces(kubectl), last)
        case ["explain", "host"]:
            return _matching(_hosts(list_tenants(kubectl)), last)
    return Completion((), _NO_FILES)


def _of_value(flag: PluginFlag | None, last: str, flags: Sequence[str], kubectl: Kubectl) -> Completion:
    match flag.name if flag is not None else "":
        case "output":
            return _matching(OUTPUTS, last)
        case "namespace":
            return _matching(_namespaces(kubectl), last)
        case "tenant":
            return _matching(_names(kubectl, last, _value_of("namespace", flags)), last)
        case "context":
            return _matching(kubectl.lines("config", "get-contexts", "-o", "name"), last)
        case "cluster":
            return _matching(kubectl.lines("config", "get-clusters")[1:], last)
        case "user":
            return _matching(kubectl.lines("config", "get-users")[1:], last)
        case "address":
            return _matching(ADDRESSES, last)
    is_file = flag is not None and flag.metavar == FILE
    return Completion((), _FILES if is_file else _NO_FILES)


def _flags_of(command: str) -> Iterable[str]:
    """Long flags only, as those of kubectl are completed."""
    if command == "preflight":
        # imported late, because the other commands need no options of the server
        from tenant_apiserver.options.lifecycle import PREFLIGHT

        return [f"{flag.name}\t{flag.help}" for flag in PREFLIGHT]
    return [
        f"--{flag.name}\t{flag.help}" for flag in FLAGS if (flag.belongs_to(command) if command else not flag.commands)
    ]


def _names(kubectl: Kubectl, last: str, namespace: str) -> Iterable[str]:
    """NAMESPACE/NAME as soon as a slash is typed."""
    found = [each["metadata"] for each in list_tenants(kubectl)]
    if "/" in last:
        return {f"{each['namespace']}/{each['name']}" for each in found}
    return {each["name"] for each in found if namespace in ("", each["namespace"])}


def _namespaces(kubectl: Kubectl) -> Iterable[str]:
    """Those that a visible tenant is in, and their own."""
    tenants = list_tenants(kubectl)
    return {each["metadata"]["namespace"] for each in tenants} | {workload_namespace(each) for each in tenants} - {""}


def _hosts(tenants: Sequence[Object]) -> Iterable[str]:
    return {str(((each.get("status") or {}).get("host") or {}).get("value") or "") for each in tenants} - {""}


def _matching(choices: Iterable[str], last: str) -> Completion:
    """Sorted, but for choices that have an order of their own. A line is a word, and a shell prints it: others than
    printable ones, which a domain may have that nobody admitted, are left out."""
    ordered = sorted(choices) if isinstance(choices, set) else choices
    words = (each for each in ordered if each.partition("\t")[0].isprintable())
    return Completion([each for each in words if each.startswith(last)], _NO_FILES)


def _flags_of_kubectl(flags: Sequence[str]) -> Sequence[str]:
    found: list[str] = []
    for at, word in enumerate(flags):
        flag = flag_named(word)
        if flag is not None and flag.of_kubectl:
            found += flags[at : at + 2] if takes_next(word) else [word]
    return found


def _value_of(name: str, flags: Sequence[str]) -> str:
    """The value of a flag with the long or the short name; empty without one."""
    value = ""
    for at, word in enumerate(flags):
        flag = flag_named(word)
        if flag is None or flag.name != name:
            continue
        if takes_next(word):
            value = flags[at + 1] if at + 1 < len(flags) else ""
        else:
            value = word.partition("=")[2] if word.startswith("--") else word[2:].removeprefix("=")
    return value


def _kubectl(flags: Sequence[str]) -> Kubectl:
    return Kubectl(flags)
