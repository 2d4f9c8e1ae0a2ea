"""A flag of the command line, with its environment variable."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from apiserver.meta.suggestion import suggest

ENVIRONMENT_PREFIX = "TENANT_APISERVER_"


@dataclass(frozen=True, slots=True)
class Flag:
    name: str
    parse: Callable[[str], Any]
    default: Any
    help: str
    boolean: bool = False
    deprecated_name: str = ""
    attribute: str = ""
    """The option's field, if it has another name than the flag."""

    @property
    def field(self) -> str:
        return self.attribute or attribute_of(self.name)

    @property
    def variable(self) -> str:
        return variable_of(self.name)

    @property
    def help_text(self) -> str:
        """The help, with the default unless the help itself says it or there is none."""
        shown = str(self.default).lower() if self.boolean else self.default
        has_default = isinstance(shown, str | int | Path) and shown != "" and "default" not in self.help
        return (
            f"{self.help} (default: {shown}) [${self.variable}]" if has_default else f"{self.help} [${self.variable}]"
        )

    @property
    def names(self) -> Sequence[str]:
        """The current name, then the deprecated one if there is any."""
        return (self.name, self.deprecated_name) if self.deprecated_name else (self.name,)


def with_value(name: str, value: object) -> str:
    """A flag as messages about its value name it; one that is not set has none."""
    return name if value is None else f"{name}={value}"


def unrecognized(arguments: Sequence[str], flags: Sequence[Flag]) -> str:
    """The problem with arguments that no flag is called, with the flag that is most like the first of them."""
    problem = f"unrecognized arguments: {' '.join(arguments)}"
    names = [name for flag in flags for name in flag.names]
    return problem + suggest(arguments[0].partition("=")[0], names)


def no_command(arguments: Sequence[str], commands: Iterable[str]) -> str:
    """The problem with arguments of which none is a command."""
    problem = f"{unrecognized(arguments, ())} and no command" if arguments else "a command is missing"
    return f"{problem}; the commands are {', '.join(commands)}"


def variable_of(name: str) -> str:
    return ENVIRONMENT_PREFIX + attribute_of(name).upper()


def attribute_of(name: str) -> str:
    return name.lstrip("-").replace("-", "_")
