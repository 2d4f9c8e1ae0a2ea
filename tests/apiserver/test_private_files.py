"""Private files are readable by their owner only, and links in their place are not followed."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable
from pathlib import Path

import pytest

from apiserver.private_files import create_private, write_private


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def write(path: Path) -> None:
    write_private(path, b"secret")


@pytest.mark.parametrize("make", [write, create_private])
@pytest.mark.parametrize("umask", [0, 0o022, 0o077])
def test_a_new_file_is_readable_by_its_owner_only(tmp_path: Path, make: Callable[[Path], None], umask: int) -> None:
    before = os.umask(umask)
    try:
        make(tmp_path / "file")
    finally:
        os.umask(before)
    assert mode(tmp_path / "file") == 0o600


@pytest.mark.parametrize("make", [write, create_private])
def test_an_existing_file_that_others_may_read_gets_the_mode(tmp_path: Path, make: Callable[[Path], None]) -> None:
    path = tmp_path / "file"
    path.touch()
    path.chmod(0o666)
    make(path)
    assert mode(path) == 0o600


def test_what_is_written_replaces_the_file_so_that_an_open_descriptor_sees_nothing_of_it(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"old")
    with path.open("rb") as opened:
        write_private(path, b"secret")
        assert opened.read() == b"old"
    assert path.read_bytes() == b"secret"
    assert [each.name for each in tmp_path.iterdir()] == ["file"]


def test_a_link_in_the_place_of_the_file_is_replaced(tmp_path: Path) -> None:
    victim = tmp_path / "victim"
    victim.write_bytes(b"untouched")
    (tmp_path / "file").symlink_to(victim)
    write_private(tmp_path / "file", b"secret")
    assert (tmp_path / "file").read_bytes() == b"secret"
    assert not (tmp_path / "file").is_symlink()
    assert victim.read_bytes() == b"untouched"


@pytest.mark.parametrize("scratch", [".file.new", ".file.{}"])
def test_a_link_at_a_temporary_name_is_not_followed(
    tmp_path: Path, scratch: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A link at the former fixed name, and one at a name that an attacker has guessed."""
    victim = tmp_path / "victim"
    victim.write_bytes(b"untouched")
    monkeypatch.setattr("apiserver.private_files.secrets.token_hex", lambda size: "0" * size)
    (tmp_path / scratch.format("0" * 8)).symlink_to(victim)
    if scratch == ".file.new":
        write_private(tmp_path / "file", b"secret")
    else:
        with pytest.raises(FileExistsError):
            write_private(tmp_path / "file", b"secret")
    assert victim.read_bytes() == b"untouched"


def test_a_write_that_fails_leaves_nothing_behind(tmp_path: Path) -> None:
    (tmp_path / "file").mkdir()
    with pytest.raises(IsADirectoryError):
        write_private(tmp_path / "file", b"secret")
    assert [each.name for each in tmp_path.iterdir()] == ["file"]


def test_a_link_in_the_place_of_a_created_file_is_an_error(tmp_path: Path) -> None:
    victim = tmp_path / "victim"
    victim.write_bytes(b"untouched")
    victim.chmod(0o644)
    (tmp_path / "file").symlink_to(victim)
    with pytest.raises(OSError, match="symbolic links"):
        create_private(tmp_path / "file")
    assert (victim.read_bytes(), mode(victim)) == (b"untouched", 0o644)


def test_an_existing_file_keeps_its_content(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"rows")
    create_private(path)
    assert path.read_bytes() == b"rows"
