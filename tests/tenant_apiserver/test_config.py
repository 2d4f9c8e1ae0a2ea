"""Platform settings: defaults, overrides, and errors that name the key."""

from __future__ import annotations

from pathlib import Path

import pytest

from registry.tenant.settings import ReleaseSettings
from tenant_apiserver.config import PlatformConfig, load


def written(directory: Path, text: str) -> Path:
    path = directory / "platform.yaml"
    path.write_text(text)
    return path


def test_no_file_and_an_empty_one_are_the_defaults(tmp_path: Path) -> None:
    assert load(None) == load(written(tmp_path, "")) == PlatformConfig()
    assert load(None).release.settings() == ReleaseSettings()


def test_a_setting_reaches_the_release(tmp_path: Path) -> None:
    config = load(written(tmp_path, "release: {chartRef: {name: other}, maxHistory: 2}"))
    settings = config.release.settings()
    assert (settings.chart_name, settings.chart_namespace, settings.max_history) == ("other", "cozy-system", 2)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        pytest.param("publishing: {hots: a}", "publishing.hots", id="unknown key"),
        pytest.param("publishing: {host: Example.org}", "publishing.host", id="host in capitals"),
        pytest.param("release: {maxHistory: x}", "release.maxHistory", id="wrong type"),
        pytest.param("release: {chartRef: 1}", "release.chartRef", id="wrong section"),
        pytest.param("a: [", "platform.yaml", id="broken YAML"),
    ],
)
def test_a_bad_file_is_one_line_that_names_the_key(tmp_path: Path, text: str, said: str) -> None:
    with pytest.raises(ValueError, match=r"platform\.yaml") as refusal:
        load(written(tmp_path, text))
    assert said in str(refusal.value)
    assert "\n" not in str(refusal.value)
