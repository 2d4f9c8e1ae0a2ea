"""The page of the platform's settings: its YAML is what the process reads, its errors are what the process says."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from controller.platform.settings import PlatformSettings, acme_server
from tenant_apiserver.options.settings_file import load_settings, parse_settings

PAGE = (Path(__file__).parents[2] / "docs" / "settings.md").read_text()
DEFAULTS, OWN_SERVER = re.findall(r"```yaml\n(.*?)```", PAGE, re.DOTALL)


def keys(value: Any) -> Any:
    """The keys of mappings, all the way down."""
    return {key: keys(inner) for key, inner in value.items()} if isinstance(value, dict) else None


def test_every_key_is_told_with_its_default() -> None:
    """VAP-8."""
    assert parse_settings(DEFAULTS.encode()) == PlatformSettings()
    assert keys(yaml.load(DEFAULTS, Loader=yaml.CSafeLoader)) == keys(
        PlatformSettings().model_dump(by_alias=True, mode="json")
    )


def test_an_acme_server_of_ones_own_is_used() -> None:
    settings = parse_settings(OWN_SERVER.encode())
    server = acme_server(settings, settings.publishing.certificates.issuer_name)
    assert server is not None
    assert server.server == "https://ca.example.com/acme/acme/directory"


def test_the_error_at_the_start_is_the_one_that_is_shown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = re.search(r"\$ cat platform\.yaml\n(.*?)\$ .*?--config: ([^\n]*)", PAGE, re.DOTALL)
    assert found is not None
    (tmp_path / "platform.yaml").write_text(found[1])
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ValueError, match="platform") as refusal:
        load_settings(Path("platform.yaml"))
    assert str(refusal.value) == found[2]


def test_the_error_in_readyz_is_the_one_that_is_shown() -> None:
    shown = re.search(r"previous settings stay in force: ([^\n]*)", PAGE)
    assert shown is not None
    with pytest.raises(ValueError, match="gateway") as refusal:
        parse_settings(b"gateway: {enable: true}")
    assert str(refusal.value) == shown[1]
