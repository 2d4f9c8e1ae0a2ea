"""The file of platform settings: defaults, errors that name the key, and changes while the server runs."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from apiserver import tls
from controller.platform import FollowedSettings, PlatformSettings
from registry.tenant.settings import ReleaseSettings
from tenant_apiserver.config import ConfigFile, load


def written(directory: Path, text: str) -> Path:
    path = directory / "platform.yaml"
    path.write_text(text)
    return path


def test_no_file_and_an_empty_one_are_the_defaults(tmp_path: Path) -> None:
    assert load(None) == load(written(tmp_path, "")) == PlatformSettings()
    assert load(None).release.settings() == ReleaseSettings()


@pytest.mark.parametrize(
    ("text", "said"),
    [
        pytest.param("publishing: {hots: a}", "publishing.hots: Extra inputs are not permitted", id="unknown key"),
        pytest.param("publishing: {host: Example.org}", "publishing.host: must be in lower case", id="capitals"),
        pytest.param("release: {maxHistory: x}", "release.maxHistory: ", id="wrong type"),
        pytest.param("release: {chartRef: 1}", "release.chartRef: ", id="wrong section"),
        pytest.param("a: [", "platform.yaml: while parsing", id="broken YAML"),
        pytest.param("[1]", "the document: ", id="no mapping"),
        pytest.param(
            "publishing: {certificates: {solver: dns01, dns01: {provider: route53}}}",
            "platform.yaml: publishing.certificates.dns01.route53.region: must be set",
            id="R-162",
        ),
        pytest.param(
            "publishing: {certificates: {issuerName: mine}}",
            "publishing.certificates.issuerName: 'mine' is not known: must be one of letsencrypt-prod, ",
            id="R-147",
        ),
    ],
)
def test_a_bad_file_is_one_line_that_names_the_key(tmp_path: Path, text: str, said: str) -> None:
    with pytest.raises(ValueError, match=r"platform\.yaml") as refusal:
        load(written(tmp_path, text))
    assert said in str(refusal.value)
    assert "\n" not in str(refusal.value)


@asynccontextmanager
async def following(file: ConfigFile) -> AsyncIterator[None]:
    task = asyncio.create_task(file.follow())
    try:
        yield
    finally:
        task.cancel()
        await asyncio.wait([task])


async def until(condition: object, seconds: float = 5.0) -> None:
    assert callable(condition)
    async with asyncio.timeout(seconds):
        while not condition():  # noqa: ASYNC110  files have no events
            await asyncio.sleep(0.005)


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tls, "_POLL_SECONDS", 0.005)


@pytest.mark.usefixtures("quick")
async def test_a_changed_file_holds_at_once_and_a_wrong_one_changes_nothing(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async def write(text: str) -> Path:
        return await asyncio.to_thread(written, tmp_path, text)

    path = await write("publishing: {host: a.example}")
    settings, heard = FollowedSettings(await asyncio.to_thread(load, path)), list[str | None]()
    file = ConfigFile(path, settings)
    settings.subscribe(lambda: heard.append(settings.current.publishing.host))
    async with following(file):
        await write("publishing: {host: b.example}  # changed")
        await until(lambda: heard == ["b.example"])
        with caplog.at_level(logging.ERROR):
            await write("publishing: {host: '*'}")
            await until(lambda: file.refused)
        assert "publishing.host" in file.refused
        assert settings.current.publishing.host == "b.example"
        assert [record.getMessage().partition(":")[0] for record in caplog.records] == ["--config"]
        await write("publishing: {host: c.example}")
        await until(lambda: heard == ["b.example", "c.example"])
        assert file.refused == ""


def mounted(directory: Path) -> Path:
    """A ConfigMap as the kubelet mounts it, with a second version beside the one that is linked."""
    for name, host in (("one", "a.example"), ("two", "b.example")):
        (directory / name).mkdir()
        written(directory / name, f"publishing: {{host: {host}}}")
    (directory / "..data").symlink_to("one")
    (directory / "..new").symlink_to("two")
    path = directory / "platform.yaml"
    path.symlink_to("..data/platform.yaml")
    return path


@pytest.mark.usefixtures("quick")
async def test_a_mounted_configmap_is_followed_through_its_links(tmp_path: Path) -> None:
    path = await asyncio.to_thread(mounted, tmp_path)
    settings = FollowedSettings(await asyncio.to_thread(load, path))
    async with following(ConfigFile(path, settings)):
        await asyncio.to_thread((tmp_path / "..new").rename, tmp_path / "..data")
        await until(lambda: settings.current.publishing.host == "b.example")


async def test_without_a_file_there_is_nothing_to_follow() -> None:
    await asyncio.wait_for(ConfigFile(None, FollowedSettings(PlatformSettings())).follow(), 1)
