"""The file of platform settings: defaults, errors that name the key, and changes while the server runs."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from controller.platform.settings import PlatformSettings, ReloadableSettings
from registry.tenant.release_settings import ReleaseSettings
from tenant_apiserver.options import settings_file as config
from tenant_apiserver.options.settings_file import SettingsFile, load


def written(directory: Path, text: str) -> Path:
    """As an editor leaves it: never half written."""
    path, fresh = directory / "platform.yaml", directory / "fresh.yaml"
    fresh.write_text(text)
    return fresh.rename(path)


def test_no_file_and_an_empty_one_are_the_defaults(tmp_path: Path) -> None:
    assert load(None) == load(written(tmp_path, "")) == PlatformSettings()
    assert load(None).release.to_release_settings() == ReleaseSettings()


@pytest.mark.parametrize(
    ("text", "said"),
    [
        pytest.param(
            "publishing: {hots: a}", "platform.yaml: publishing.hots: is not a key that is known", id="unknown key"
        ),
        pytest.param("publishing: {host: Example.org}", "publishing.host: must be in lower case", id="capitals"),
        pytest.param("release: {maxHistory: x}", "release.maxHistory: must be a valid integer", id="wrong type"),
        pytest.param("release: {chartRef: 1}", "release.chartRef: must be a mapping", id="wrong section"),
        pytest.param("gateway: {tlsPassthroughServices: api}", "tlsPassthroughServices: must be a list", id="no list"),
        pytest.param("a: [", "platform.yaml: line 2: did not find", id="broken YAML"),
        pytest.param("a: 1\na: 2", 'platform.yaml: line 2: key "a" already set in map', id="a key that is there twice"),
        pytest.param("[1]", "the document: must be a mapping", id="no mapping"),
        pytest.param("gateway: {a: 1, enabled: x}", "gateway.enabled: must be a valid boolean; gateway.a: ", id="two"),
        pytest.param(
            "publishing: {certificates: {acmeServers: {own: {email: a@example.org}}}}",
            "publishing.certificates.acmeServers.own.server: must be set",
            id="a server without a URL",
        ),
        pytest.param(
            "publishing: {certificates: {solver: dns01, dns01: {provider: rfc2136}}}",
            "platform.yaml: publishing.certificates.dns01.rfc2136.nameserver: must be set",
            id="R-166",
        ),
        pytest.param(
            "publishing: {certificates: {dns01: {provider: linode}}}",
            "dns01.provider: must be 'cloudflare', 'route53', 'digitalocean' or 'rfc2136'",
            id="R-173",
        ),
        pytest.param(
            "publishing: {certificates: {solver: dns01, dns01: {provider: route53}}}",
            "platform.yaml: publishing.certificates.dns01.route53.region: must be set",
            id="R-162",
        ),
        pytest.param(
            "publishing: {certificates: {issuerName: mine}}",
            "publishing.certificates.issuerName: 'mine' is not known: must be one of letsencrypt-prod, ",
            id="R-147 R-295 R-309",
        ),
    ],
)
def test_a_bad_file_is_one_line_that_names_the_key(tmp_path: Path, text: str, said: str) -> None:
    with pytest.raises(ValueError, match=r"platform\.yaml") as refusal:
        load(written(tmp_path, text))
    assert said in str(refusal.value)
    assert "\n" not in str(refusal.value)


def test_what_is_said_of_a_broken_file_holds_nothing_of_it(tmp_path: Path) -> None:
    """Everybody may read readyz."""
    with pytest.raises(ValueError, match="line 2") as refusal:
        load(written(tmp_path, "release:\n  token: [hunter2 : : {"))
    assert "hunter2" not in str(refusal.value)


def test_a_section_with_nothing_below_it_has_its_defaults(tmp_path: Path) -> None:
    assert load(written(tmp_path, "publishing:\ngateway:\n  # enabled: true\n")) == PlatformSettings()


def test_a_file_that_is_not_there_is_told(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"platform\.yaml: No such file or directory"):
        load(tmp_path / "platform.yaml")


@asynccontextmanager
async def following(file: SettingsFile) -> AsyncIterator[None]:
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
    monkeypatch.setattr(config, "_POLL_SECONDS", 0.005)


@pytest.mark.usefixtures("quick")
async def test_a_changed_file_holds_at_once_and_a_wrong_one_changes_nothing(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async def write(text: str) -> Path:
        return await asyncio.to_thread(written, tmp_path, text)

    path = await write("publishing: {host: a.example}")
    settings, heard = ReloadableSettings(await asyncio.to_thread(load, path)), list[str | None]()
    file = SettingsFile(path, settings)
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


@pytest.mark.usefixtures("quick")
@pytest.mark.parametrize(
    ("spoil", "said"),
    [
        pytest.param(lambda path: path.write_text(""), "it is empty", id="emptied"),
        pytest.param(lambda path: path.unlink(), "it cannot be read: No such file", id="deleted"),
        pytest.param(lambda path: path.write_bytes(b"\xff"), "can't decode byte", id="no text"),
        pytest.param(lambda path: path.write_text("gateway: {a: 1}"), "gateway.a: is not a key", id="a wrong key"),
    ],
)
async def test_what_is_no_file_of_settings_is_told_until_the_old_one_is_back(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, spoil: Callable[[Path], object], said: str
) -> None:
    text = "publishing: {host: a.example}"
    path = await asyncio.to_thread(written, tmp_path, text)
    settings = ReloadableSettings(await asyncio.to_thread(load, path))
    before, file = settings.current, SettingsFile(path, settings)
    async with following(file):
        await asyncio.to_thread(spoil, path)
        await until(lambda: said in file.refused)
        await asyncio.sleep(0.05)
        assert settings.current is before
        assert len([each for each in caplog.records if each.levelno == logging.ERROR]) == 1
        await asyncio.to_thread(written, tmp_path, text)
        await until(lambda: file.refused == "")
    assert settings.current is before


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
    settings = ReloadableSettings(await asyncio.to_thread(load, path))
    async with following(SettingsFile(path, settings)):
        await asyncio.to_thread((tmp_path / "..new").rename, tmp_path / "..data")
        await until(lambda: settings.current.publishing.host == "b.example")


async def test_a_file_that_is_just_being_written_is_not_judged_by_its_beginning(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    last = b"publishing: {host: b.example}"
    looks = iter([b"publishing: {host: a.example}", b"", b"publishing: {}"])
    changed = asyncio.Event()
    monkeypatch.setattr(config, "_read", lambda path: next(looks, last))
    monkeypatch.setattr(config, "_POLL_SECONDS", 0)
    settings = ReloadableSettings(PlatformSettings.model_validate({"publishing": {"host": "a.example"}}))
    heard: list[str | None] = []
    settings.subscribe(lambda: heard.append(settings.current.publishing.host))
    settings.subscribe(changed.set)
    file = SettingsFile(tmp_path / "platform.yaml", settings)
    async with following(file):
        await asyncio.wait_for(changed.wait(), 5)
    assert (heard, file.refused) == (["b.example"], "")


async def test_without_a_file_there_is_nothing_to_follow() -> None:
    await asyncio.wait_for(SettingsFile(None, ReloadableSettings(PlatformSettings())).follow(), 1)
