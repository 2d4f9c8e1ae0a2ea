"""The file of platform settings: defaults, errors that name the key, and reloads while the server runs."""

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
from tenant_apiserver.options.settings_file import SettingsFile, load_settings


def written(directory: Path, content: str | bytes) -> Path:
    """Writes the file atomically, as an editor does."""
    path, fresh = directory / "platform.yaml", directory / "fresh.yaml"
    fresh.write_bytes(content if isinstance(content, bytes) else content.encode())
    return fresh.rename(path)


def test_no_file_or_an_empty_one_yields_the_defaults(tmp_path: Path) -> None:
    assert load_settings(None) == load_settings(written(tmp_path, "")) == PlatformSettings()
    assert load_settings(None).release.to_release_settings() == ReleaseSettings()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        pytest.param("publishing: {hots: a}", "platform.yaml: publishing.hots: is not a known key", id="unknown key"),
        pytest.param(
            "gateway: {platformroutes: true}",
            "gateway.platformroutes: is not a known key; did you mean platformRoutes?",
            id="unknown key in other letters",
        ),
        pytest.param("gatway: {}", "gatway: is not a known key; did you mean gateway?", id="unknown section"),
        pytest.param(
            "publishing: {certificates: {acmeServers: {mine: {servr: a}}}}",
            "publishing.certificates.acmeServers.mine.servr: is not a known key; did you mean server?",
            id="unknown key of an entry",
        ),
        pytest.param("publishing: {host: Example.org}", "publishing.host: must be in lower case", id="capitals"),
        pytest.param("release: {maxHistory: x}", "release.maxHistory: must be a valid integer", id="wrong type"),
        pytest.param("release: {chartRef: 1}", "release.chartRef: must be a mapping", id="wrong section"),
        pytest.param(
            "gateway: {tlsPassthroughServices: api}",
            "tlsPassthroughServices: must be a list",
            id="text instead of a list",
        ),
        pytest.param("a: [", "platform.yaml: line 2: did not find", id="broken YAML"),
        pytest.param("a: 1\na: 2", 'platform.yaml: line 2: key "a" already set in map', id="a duplicate key"),
        pytest.param("[1]", "the document: must be a mapping", id="a list instead of a mapping"),
        pytest.param(
            "gateway: {a: 1, enabled: x}", "gateway.enabled: must be a valid boolean; gateway.a: ", id="two errors"
        ),
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
def test_an_error_in_the_file_is_one_line_that_names_the_key(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(ValueError, match=r"platform\.yaml") as error:
        load_settings(written(tmp_path, text))
    assert message in str(error.value)
    assert "\n" not in str(error.value)


def test_the_error_of_a_malformed_file_quotes_nothing_of_it(tmp_path: Path) -> None:
    """readyz shows the error to everyone who may get /metrics, and the log to everyone who reads it."""
    with pytest.raises(ValueError, match="line 2") as error:
        load_settings(written(tmp_path, "release:\n  token: [hunter2 : : {"))
    assert "hunter2" not in str(error.value)


def test_an_empty_section_has_its_defaults(tmp_path: Path) -> None:
    assert load_settings(written(tmp_path, "publishing:\ngateway:\n  # enabled: true\n")) == PlatformSettings()


def test_a_missing_file_is_reported(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"platform\.yaml: No such file or directory"):
        load_settings(tmp_path / "platform.yaml")


@asynccontextmanager
async def following(file: SettingsFile) -> AsyncIterator[None]:
    task = asyncio.create_task(file.follow())
    try:
        yield
    finally:
        task.cancel()
        await asyncio.wait([task])


async def until(condition: object, seconds: float = 60.0) -> None:
    assert callable(condition)
    async with asyncio.timeout(seconds):
        while not condition():  # noqa: ASYNC110  files have no events
            await asyncio.sleep(0.005)


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(config, "_POLL_SECONDS", 0.005)


@pytest.mark.usefixtures("quick")
async def test_a_changed_file_takes_effect_and_an_invalid_one_changes_nothing(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async def write(text: str) -> Path:
        return await asyncio.to_thread(written, tmp_path, text)

    path = await write("publishing: {host: a.example}")
    settings, hosts = ReloadableSettings(await asyncio.to_thread(load_settings, path)), list[str | None]()
    file = SettingsFile(path, settings)
    settings.subscribe(lambda: hosts.append(settings.current.publishing.host))
    async with following(file):
        await write("publishing: {host: b.example}  # changed")
        await until(lambda: hosts == ["b.example"])
        with caplog.at_level(logging.ERROR):
            await write("publishing: {host: '*'}")
            await until(lambda: file.error)
        assert "publishing.host" in file.error
        assert settings.current.publishing.host == "b.example"
        assert [record.getMessage().partition(":")[0] for record in caplog.records] == ["--config"]
        await write("publishing: {host: c.example}")
        await until(lambda: hosts == ["b.example", "c.example"])
        assert file.error == ""


@pytest.mark.usefixtures("quick")
@pytest.mark.parametrize(
    ("damage", "message"),
    [
        pytest.param(lambda path: written(path.parent, ""), "it is empty", id="emptied"),
        pytest.param(lambda path: path.unlink(), "it cannot be read: No such file", id="deleted"),
        pytest.param(lambda path: written(path.parent, b"\xff"), "can't decode byte", id="not UTF-8"),
        pytest.param(
            lambda path: written(path.parent, "gateway: {a: 1}"), "gateway.a: is not a known key", id="an unknown key"
        ),
    ],
)
async def test_an_unusable_file_is_reported_until_a_valid_one_is_back(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, damage: Callable[[Path], object], message: str
) -> None:
    text = "publishing: {host: a.example}"
    path = await asyncio.to_thread(written, tmp_path, text)
    settings = ReloadableSettings(await asyncio.to_thread(load_settings, path))
    before, file = settings.current, SettingsFile(path, settings)
    async with following(file):
        await asyncio.to_thread(damage, path)
        await until(lambda: message in file.error)
        await asyncio.sleep(0.05)
        assert settings.current is before
        assert len([each for each in caplog.records if each.levelno == logging.ERROR]) == 1
        await asyncio.to_thread(written, tmp_path, text)
        await until(lambda: file.error == "")
    assert settings.current is before


def mounted(directory: Path) -> Path:
    """A ConfigMap as the kubelet mounts it, and a second version next to the one that the symlink points to."""
    for name, host in (("one", "a.example"), ("two", "b.example")):
        (directory / name).mkdir()
        written(directory / name, f"publishing: {{host: {host}}}")
    (directory / "..data").symlink_to("one")
    (directory / "..new").symlink_to("two")
    path = directory / "platform.yaml"
    path.symlink_to("..data/platform.yaml")
    return path


@pytest.mark.usefixtures("quick")
async def test_a_mounted_configmap_is_followed_through_its_symlinks(tmp_path: Path) -> None:
    path = await asyncio.to_thread(mounted, tmp_path)
    settings = ReloadableSettings(await asyncio.to_thread(load_settings, path))
    async with following(SettingsFile(path, settings)):
        await asyncio.to_thread((tmp_path / "..new").rename, tmp_path / "..data")
        await until(lambda: settings.current.publishing.host == "b.example")


async def test_a_file_that_is_being_written_is_not_loaded_half(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    last = b"publishing: {host: b.example}"
    reads = iter([b"publishing: {host: a.example}", b"", b"publishing: {}"])
    changed = asyncio.Event()
    monkeypatch.setattr(config, "_read", lambda path: next(reads, last))
    monkeypatch.setattr(config, "_POLL_SECONDS", 0)
    settings = ReloadableSettings(PlatformSettings.model_validate({"publishing": {"host": "a.example"}}))
    hosts: list[str | None] = []
    settings.subscribe(lambda: hosts.append(settings.current.publishing.host))
    settings.subscribe(changed.set)
    file = SettingsFile(tmp_path / "platform.yaml", settings)
    async with following(file):
        await asyncio.wait_for(changed.wait(), 60)
    assert (hosts, file.error) == (["b.example"], "")


async def test_following_no_file_returns_at_once() -> None:
    await asyncio.wait_for(SettingsFile(None, ReloadableSettings(PlatformSettings())).follow(), 60)
