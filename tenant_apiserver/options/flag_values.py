"""Parsers of flag values. Each raises ValueError with a reason that reads well after the flag's name."""

from __future__ import annotations

import ipaddress
import os
import re
from collections.abc import Callable
from pathlib import Path

from registry.application.go_duration import canonical_duration
from registry.names import host_errors

CONTROLLERS = ("tenant", "root-tenant", "tenantgateway")
_DURATION = re.compile(r"(?P<number>\d+)(?P<unit>ms|s|m|h)")
_SIZE = re.compile(r"(?P<number>[1-9][0-9]{0,15})(?P<unit>|Ki|Mi|Gi)")
_BYTES = {"": 1, "Ki": 1024, "Mi": 1024**2, "Gi": 1024**3}
_SECONDS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0}


def port(text: str) -> int:
    if not text.isascii() or not text.isdigit() or not 1 <= int(text) <= 65535:
        raise ValueError("must be a number between 1 and 65535")
    return int(text)


def port_or_any(text: str) -> int:
    """0 stands for any free port."""
    return 0 if text == "0" else port(text)


def address(text: str) -> str:
    try:
        ipaddress.ip_address(text)
    except ValueError:
        raise ValueError("must be an IP address, such as 127.0.0.1 or ::1") from None
    return text


def positive(text: str) -> int:
    if not text.isascii() or not text.isdigit() or int(text) < 1:
        raise ValueError("must be a number of at least 1")
    return int(text)


def verbosity(text: str) -> int:
    if not text.isascii() or not text.isdigit() or int(text) > 10:
        raise ValueError("must be a number between 0 and 10")
    return int(text)


def duration(text: str) -> float:
    """Parses a Go duration such as 5m, 1m30s or 0 into seconds."""
    if text == "0":
        return 0.0
    if not text or _DURATION.sub("", text):
        raise ValueError("must be a duration such as 30s, 5m or 0")
    return sum(int(match["number"]) * _SECONDS[match["unit"]] for match in _DURATION.finditer(text))


def go_duration(text: str) -> str:
    """Returns the duration as Flux writes it: 5m0s for 5m."""
    found = canonical_duration(text)
    if found == "0s":
        raise ValueError("must be longer than 0")
    return found


def count(text: str) -> int:
    if not text.isascii() or not text.isdigit():
        raise ValueError("must be a number of at least 0")
    return int(text)


def size(text: str) -> int:
    """Parses a quantity such as 64Mi, 512Ki or 1000000 into bytes."""
    match = _SIZE.fullmatch(text)
    if match is None:
        raise ValueError("must be a number of bytes such as 64Mi or 512Ki")
    return int(match["number"]) * _BYTES[match["unit"]]


def readable_file(text: str) -> Path:
    path = Path(text)
    if not path.is_file() or not os.access(path, os.R_OK):
        raise ValueError("no such file, or not readable")
    return path


def directory(text: str) -> Path:
    path = Path(text)
    if path.exists() and not path.is_dir():
        raise ValueError("exists and is not a directory")
    return path


def writable_file(text: str) -> Path | None:
    path = Path(text)
    if text != "-" and not path.parent.is_dir():
        raise ValueError("its directory does not exist")
    return path


def new_file(text: str) -> Path:
    if text == "-":
        raise ValueError("must be a file, as a backup is not written to standard output")
    if not text:
        raise ValueError("must be the path of a file")
    return Path(text)


def new_file_or_standard_output(text: str) -> Path | None:
    """None is standard output."""
    if not text:
        raise ValueError("must be the path of a file, or '-' for standard output")
    return None if text == "-" else Path(text)


def hostname(text: str) -> str:
    if problems := host_errors(text):
        raise ValueError(problems[0])
    return text


def names(text: str) -> tuple[str, ...]:
    return tuple(part.strip() for part in text.split(",") if part.strip())


def origin_patterns(text: str) -> tuple[str, ...]:
    """Regular expressions, each bound to the start and the end of the host, as kube-apiserver demands: without that,
    `example.org` would match https://example.org.attacker.net."""
    found = names(text)
    for each in found:
        try:
            re.compile(each)
        except re.error as error:
            raise ValueError(f"has an invalid regular expression {each}: {error}") from None
        if not (each.startswith("^") or "//" in each) or not (each.endswith("$") or ":" in each.rpartition("//")[2]):
            raise ValueError(f"has {each}, which does not begin with ^ or contain //, and end with $ or a port")
    return found


def controllers(text: str) -> tuple[str, ...]:
    """'*', 'none', or names of CONTROLLERS; '-name' after '*' leaves one out, as in kube-controller-manager."""
    chosen = names(text)
    if chosen == ("none",):
        return ()
    unknown = [name for name in chosen if name != "*" and name.removeprefix("-") not in CONTROLLERS]
    if unknown or not chosen:
        allowed = ", ".join(CONTROLLERS)
        raise ValueError(f"unknown controller {', '.join(unknown) or repr(text)}: use '*', 'none' or some of {allowed}")
    if "*" in chosen:
        return tuple(name for name in CONTROLLERS if f"-{name}" not in chosen)
    return tuple(name for name in CONTROLLERS if name in chosen)


def one_of(*allowed: str) -> Callable[[str], str]:
    def parse(text: str) -> str:
        if text not in allowed:
            raise ValueError(f"must be one of {', '.join(allowed)}")
        return text

    return parse


def boolean(text: str) -> bool:
    if text.lower() not in ("true", "false", "1", "0"):
        raise ValueError("must be true or false")
    return text.lower() in ("true", "1")
