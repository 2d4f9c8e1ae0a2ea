"""The words of the command line: commands, subjects and flags, which the parser and the completion share. Data."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

COMMANDS = {
    "tree": "the hierarchy, with host, gateway, quota and readiness",
    "explain": "why a tenant, a host, a route, a namespace or a user is as it is",
    "who-can-see": "the bindings whose subjects may get a tenant",
    "quota": "what is declared, allocated, used and left",
    "hosts": "every hostname with its route and certificate",
    "diff": "what the controllers would change for a tenant",
    "ui": "the tenants as a page in a browser, until Ctrl-C",
    "preflight": "whether this server can be installed here",
}
SUBJECTS = ("tenant", "host", "route", "namespace", "user")
OUTPUTS = ("wide", "json", "yaml")
ADDRESSES = ("127.0.0.1", "::1")
NAME, FILE = "NAME", "FILE"


@dataclass(frozen=True, slots=True, kw_only=True)
class PluginFlag:
    """`metavar` is empty for a flag without a value. `commands` is empty for a flag of all."""

    name: str
    help: str
    metavar: str = ""
    short: str = ""
    commands: Sequence[str] = ()
    of_kubectl: bool = False
    """It is passed to kubectl as it is."""
    repeated: bool = False

    @property
    def names(self) -> Sequence[str]:
        """As they are written, the short one first."""
        return ([f"-{self.short}"] if self.short else []) + [f"--{self.name}"]

    @property
    def attribute(self) -> str:
        """The name of the value in what the parser returns; one of kubectl's does not hide one of ours."""
        return f"kubectl_{self.name}".replace("-", "_") if self.of_kubectl else self.name.replace("-", "_")

    def belongs_to(self, command: str) -> bool:
        """Preflight has flags of its own."""
        return command != "preflight" and (not self.commands or command in self.commands)


FLAGS = (
    PluginFlag(
        name="namespace",
        short="n",
        metavar="NAMESPACE",
        help="the namespace of the tenant, or of what is shown (default: any)",
    ),
    PluginFlag(
        name="all-namespaces",
        short="A",
        help="all tenants that you may see, which is the default",
        commands=("tree", "quota", "hosts"),
    ),
    PluginFlag(
        name="output",
        short="o",
        metavar="FORMAT",
        help="wide, json or yaml",
        commands=[name for name in COMMANDS if name != "ui"],
    ),
    PluginFlag(name="watch", short="w", help="print the tree again after each change", commands=("tree",)),
    PluginFlag(
        name="tenant",
        metavar=NAME,
        help="the tenant to ask (default: the one that the name belongs to)",
        commands=("explain",),
    ),
    PluginFlag(
        name="group",
        metavar="GROUP",
        help="a group of the user, whose groups are not known otherwise; can be repeated",
        commands=("explain",),
        repeated=True,
    ),
    PluginFlag(
        name="filename",
        short="f",
        metavar=FILE,
        help="the tenant as FILE would make it; - is stdin",
        commands=("diff",),
    ),
    PluginFlag(
        name="address",
        metavar="ADDRESS",
        help="the address to listen on, 127.0.0.1 (the default) or ::1",
        commands=("ui",),
    ),
    PluginFlag(name="port", metavar="PORT", help="the port to listen on (default: 0, any free one)", commands=("ui",)),
    PluginFlag(name="open", help="open the page in the default browser", commands=("ui",)),
    PluginFlag(name="read-only", help="refuse every write", commands=("ui",)),
    PluginFlag(name="context", metavar=NAME, help="the context of the kubeconfig", of_kubectl=True),
    PluginFlag(name="kubeconfig", metavar=FILE, help="the kubeconfig", of_kubectl=True),
    PluginFlag(name="cluster", metavar=NAME, help="the cluster of the kubeconfig", of_kubectl=True),
    PluginFlag(name="user", metavar=NAME, help="the user of the kubeconfig", of_kubectl=True),
    PluginFlag(name="as", metavar="USER", help="the user to impersonate", of_kubectl=True),
    PluginFlag(name="as-uid", metavar="UID", help="the UID to impersonate", of_kubectl=True),
    PluginFlag(
        name="as-group",
        metavar="GROUP",
        help="a group to impersonate; can be repeated",
        of_kubectl=True,
        repeated=True,
    ),
    PluginFlag(name="token", metavar="TOKEN", help="the bearer token", of_kubectl=True),
    PluginFlag(name="server", short="s", metavar="URL", help="the address of the API server", of_kubectl=True),
    PluginFlag(
        name="certificate-authority",
        metavar=FILE,
        help="the CA certificates that the API server's is checked with",
        of_kubectl=True,
    ),
)


def flag_named(word: str) -> PluginFlag | None:
    """The flag that a word such as `-n`, `-nNAMESPACE`, `--namespace` or `--namespace=NAMESPACE` is about."""
    name = word.partition("=")[0] if word.startswith("--") else word[:2]
    return next((each for each in FLAGS if name in each.names), None)


def takes_next(word: str) -> bool:
    """True for a flag whose value is the next word."""
    flag = flag_named(word)
    return flag is not None and bool(flag.metavar) and word in flag.names


def split(words: Sequence[str]) -> tuple[list[str], list[str]]:
    """The flags with their values, and the other words, in their order; behind `--` no word is a flag."""
    flags: list[str] = []
    others: list[str] = []
    at = 0
    while at < len(words):
        if words[at] == "--":
            others += words[at + 1 :]
            break
        length = 2 if takes_next(words[at]) else 1
        is_flag = words[at].startswith("-") and words[at] != "-"
        (flags if is_flag else others).extend(words[at : at + length])
        at += length
    return flags, others
