"""The `render` command prints the routes of the platform's services, without a cluster."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
import yaml

from tenant_apiserver.options.command_line import RenderOptions, parse_command_line
from tenant_apiserver.render import render

ON = """
publishing: {host: cloud.example.net, exposedServices: [api]}
gateway: {enabled: true, platformRoutes: true}
"""


def printed(file: Path, capsys: pytest.CaptureFixture[str], *flags: str) -> list[dict[str, Any]]:
    options = parse_command_line(["render", "platform-routes", f"--config={file}", *flags], {})
    assert isinstance(options, RenderOptions)
    assert render(options) == 0
    return list(yaml.load_all(capsys.readouterr().out, Loader=yaml.CSafeLoader))


def rendered(flags: Sequence[str], capsys: pytest.CaptureFixture[str]) -> tuple[int, str, str]:
    """The exit status, the output and the messages."""
    options = parse_command_line(["render", "platform-routes", *flags], {})
    assert isinstance(options, RenderOptions)
    status = render(options)
    found = capsys.readouterr()
    return status, found.out, found.err


def test_the_routes_are_printed_as_they_would_be_created(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "platform.yaml"
    file.write_text(ON)
    routes = printed(file, capsys)
    assert [each["metadata"]["name"] for each in routes] == ["keycloak", "grafana", "alerta", "kubernetes-api"]
    api = routes[-1]
    assert (api["apiVersion"], api["kind"]) == ("gateway.networking.k8s.io/v1", "TLSRoute")
    assert api["spec"]["hostnames"] == ["api.cloud.example.net"]
    older = printed(file, capsys, "--tlsroute-version=v1alpha2")
    assert older[-1]["apiVersion"] == "gateway.networking.k8s.io/v1alpha2"
    assert older[:-1] == routes[:-1]


@pytest.mark.parametrize(
    ("content", "why"),
    [
        pytest.param(
            "{}", "gateway.platformRoutes is false, gateway.enabled is false", id="neither of the settings is on"
        ),
        pytest.param("gateway: {enabled: true}", "gateway.platformRoutes is false", id="the routes are the charts'"),
        pytest.param("gateway: {platformRoutes: true}", "gateway.enabled is false", id="Ingresses publish"),
    ],
)
def test_if_there_is_nothing_to_print_the_settings_that_would_change_that_are_told(
    content: str, why: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """As kubectl does: the exit status is 0, and the reason is not part of the output."""
    file = tmp_path / "platform.yaml"
    file.write_text(content)
    assert rendered([f"--config={file}"], capsys) == (0, "", f"No routes: {why} in {file}.\n")


def test_without_a_file_the_defaults_are_named(capsys: pytest.CaptureFixture[str]) -> None:
    _, _, said = rendered([], capsys)
    assert said == "No routes: gateway.platformRoutes is false, gateway.enabled is false by default; see --config.\n"


def test_services_that_no_list_has_are_told_beside_the_routes(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """An empty list is a valid one, and often a mistake."""
    file = tmp_path / "platform.yaml"
    file.write_text("gateway: {enabled: true, platformRoutes: true}")
    status, out, said = rendered([f"--config={file}"], capsys)
    assert (status, out.count("kind: HTTPRoute")) == (0, 3)
    assert said == (
        "No routes of dashboard, api, vm-exportproxy, cdi-uploadproxy: publishing.exposedServices does not have them.\n"
    )


def test_a_wrong_file_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "platform.yaml"
    file.write_text("gateway: {platformRoutes: 7}")
    options = parse_command_line(["render", "platform-routes", f"--config={file}"], {})
    assert isinstance(options, RenderOptions)
    assert render(options) == 2
    assert "gateway.platformRoutes" in capsys.readouterr().err


def test_nothing_else_can_be_rendered(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as refusal:
        parse_command_line(["render", "everything"], {})
    assert refusal.value.code == 2
    assert "platform-routes" in capsys.readouterr().err


def test_the_page_shows_what_is_printed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    page = (Path(__file__).parents[2] / "docs" / "publishing.md").read_text()
    shown = re.search(
        r"`platform.yaml`:\n\n```yaml\n(.*?)```.*?"
        r"\$ tenant-apiserver (render [^\n]*)\n---\n(.*?)\[\.\.\.\]\n---\n(.*?)\n(No routes[^\n]*\n)```",
        page,
        re.DOTALL,
    )
    assert shown is not None
    content, command, first, last, said = shown.groups()
    (tmp_path / "platform.yaml").write_text(content)
    monkeypatch.chdir(tmp_path)
    options = parse_command_line(command.split(), {})
    assert isinstance(options, RenderOptions)
    assert render(options) == 0
    found = capsys.readouterr()
    documents = found.out.split("---\n")
    assert (documents[1], documents[-1], found.err) == (first, f"{last}\n", said)


def test_a_name_of_no_service_is_told_beside_the_routes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """docs/publishing.md, the reason Unknown of the guard."""
    file = tmp_path / "platform.yaml"
    file.write_text(
        "gateway: {enabled: true, platformRoutes: true}\npublishing: {exposedServices: [apii, dashboard, x]}\n"
    )
    status, _, said = rendered([f"--config={file}"], capsys)
    first, *_ = said.splitlines()
    assert status == 0
    assert first.startswith("No such services: apii (did you mean api?), x of publishing.exposedServices; there are ")
    assert "vm-exportproxy" in first
