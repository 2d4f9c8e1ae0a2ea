"""The files of a stand-alone server's data directory, and where the commands may write others.

A file that is written at a user's path replaces what is there: never the server's own files, which it would lose its
data with, and never what is no file, such as /dev/stdout.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterator
from pathlib import Path

DATABASE = "host.db"
PKI = "pki"
KUBECONFIG = "kubeconfig"
_KERNEL = Path("/proc")
_KINDS = (
    (stat.S_ISDIR, "a directory"),
    (stat.S_ISCHR, "a device"),
    (stat.S_ISBLK, "a device"),
    (stat.S_ISFIFO, "a FIFO"),
    (stat.S_ISSOCK, "a socket"),
)


class TargetRefused(Exception):
    """The text says why, and reads well after the path."""


def check_replaceable(target: Path, data: Path) -> None:
    """Raises TargetRefused if a new file cannot or must not take the place of `target`. A symbolic link to a file may
    be replaced."""
    try:
        check_foreign(target, data)
        parent = Path(os.path.realpath(target.parent, strict=True))
        mode = _mode(target)
    except OSError as error:
        raise TargetRefused(error.strerror or str(error)) from error
    if not parent.is_dir():
        raise TargetRefused(os.strerror(errno.ENOTDIR))
    if kind := refused_kind(mode):
        raise TargetRefused(f"is {kind}" if kind == "a directory" else f"is {kind}: choose a file")
    # such a link stands for an open file of each process, whatever kind it has at the moment
    link = parent / target.readlink() if target.is_symlink() else parent
    if link.is_relative_to(_KERNEL):
        raise TargetRefused("is an open file of a process: choose another file")


def refused_kind(mode: int) -> str:
    """The kind of what has this `st_mode`, empty for a regular file."""
    return next((kind for is_kind, kind in _KINDS if is_kind(mode)), "")


def check_foreign(target: Path, data: Path) -> None:
    """Raises TargetRefused if `target` is a file of the server with this data directory, under whatever name. Raises
    OSError."""
    if any(_is_same(target, each) for each in _own_files(data)) or _is_below(target, data / PKI):
        raise TargetRefused("belongs to the server: choose another file")


def _own_files(data: Path) -> Iterator[Path]:
    database = data / DATABASE
    # SQLite puts its other files beside the file that a link leads to
    for path in (database, _real(database)):
        yield path
        yield from (path.with_name(f"{path.name}-{suffix}") for suffix in ("wal", "shm", "journal"))
        yield from path.parent.glob(f"{path.name}-*")
    yield data / KUBECONFIG
    yield data / PKI


def _is_same(target: Path, own: Path) -> bool:
    """True if both are one name in one directory, or one file."""
    if target.name == own.name and _is_same_file(target.parent, own.parent):
        return True
    return not target.is_symlink() and _is_same_file(target, own)


def _is_same_file(one: Path, other: Path) -> bool:
    try:
        return one.samefile(other)
    except OSError:
        return False


def _is_below(target: Path, directory: Path) -> bool:
    parent = _real(target.parent)
    return any(_is_same_file(each, directory) for each in (parent, *parent.parents))


def _real(path: Path) -> Path:
    return Path(os.path.realpath(path))


def _mode(target: Path) -> int:
    """The mode of what a link leads to, and that of a file if there is nothing yet. Raises OSError."""
    try:
        return target.stat().st_mode
    except FileNotFoundError:
        return stat.S_IFREG
