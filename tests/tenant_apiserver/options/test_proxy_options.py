from __future__ import annotations

import pytest

from tenant_apiserver.options.command_line import parse_command_line


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "--tls-cert-file or --cert-dir is required: the proxy serves HTTPS only"),
        ([f"--tls-cert-file={__file__}"], "--tls-cert-file and --tls-private-key-file must be set together"),
    ],
)
def test_a_proxy_without_a_serving_certificate_is_rejected(
    arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as exit:
        parse_command_line(["proxy", *arguments], {})
    assert exit.value.code == 2
    assert capsys.readouterr().err == f"tenant-apiserver proxy: {message}\n"
