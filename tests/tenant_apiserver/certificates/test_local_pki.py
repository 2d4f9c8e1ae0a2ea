"""The command that writes a kubeconfig."""

from __future__ import annotations

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
