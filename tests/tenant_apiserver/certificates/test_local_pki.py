"""The command that writes a kubeconfig."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest

from tenant_apiserver.certificates.local_pki import LocalPki, admin_kubeconfig, kubeconfig
from tenant_apiserver.options.command_line import KubeconfigOptions, parse_command_line


def test_a_directory_that_does_not_exist_is_reported_in_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    data, missing = tmp_path / "data", tmp_path / "missing" / "file"
    data.mkdir()
    pki = LocalPki(data / "pki")
    (data / "kubeconfig").write_text(admin_kubeconfig(pki, "https://127.0.0.1:8443"))
    options = parse_command_line(["kubeconfig", f"--data-dir={data}", "--user=bob", f"--output={missing}"], {})
    assert isinstance(options, KubeconfigOptions)
    assert kubeconfig(options) == 1
    assert capsys.readouterr().err == f"tenant-apiserver kubeconfig: --output={missing}: No such file or directory\n"


def test_another_directory_than_that_of_a_server_names_the_flag(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    options = parse_command_line(["kubeconfig", f"--data-dir={tmp_path}", "--user=bob"], {})
    assert isinstance(options, KubeconfigOptions)
    assert kubeconfig(options) == 1
    problem = f"{tmp_path} is not the data directory of a standalone server; name it with --data-dir"
    assert capsys.readouterr().err == f"tenant-apiserver kubeconfig: {problem}\n"


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """A data directory with a CA and a kubeconfig."""
    directory = tmp_path / "data"
    directory.mkdir()
    (directory / "kubeconfig").write_text(admin_kubeconfig(LocalPki(directory / "pki"), "https://127.0.0.1:8443"))
    return directory


def write_kubeconfig(data: Path, output: Path) -> None:
    options = parse_command_line(["kubeconfig", f"--data-dir={data}", "--user=bob", f"--output={output}"], {})
    assert isinstance(options, KubeconfigOptions)
    assert kubeconfig(options) == 0


def test_a_link_at_the_output_or_at_the_former_temporary_name_is_not_followed(data: Path, tmp_path: Path) -> None:
    """Somebody else who may write to the directory prepares a link, and reads the key at its target."""
    victim, output = tmp_path / "victim", tmp_path / "bob.kubeconfig"
    for link in (output, tmp_path / ".bob.kubeconfig.new"):
        victim.write_text("untouched")
        link.symlink_to(victim)
    write_kubeconfig(data, output)
    assert victim.read_text() == "untouched"
    assert not output.is_symlink()
    assert "client-key-data" in output.read_text()


def test_the_output_gets_mode_0600_whatever_was_there(data: Path, tmp_path: Path) -> None:
    output = tmp_path / "bob.kubeconfig"
    for path in (output, tmp_path / ".bob.kubeconfig.new"):
        path.touch()
        path.chmod(0o666)
    write_kubeconfig(data, output)
    assert stat.S_IMODE(output.stat().st_mode) == 0o600
