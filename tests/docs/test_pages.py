"""The pages agree with the code: flags, metrics and links are ones that exist."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tenant_apiserver.options import command_line as options

ROOT = Path(__file__).parents[2]
PAGES = sorted([ROOT / "README.md", ROOT / "CONTRIBUTING.md", *(ROOT / "docs").rglob("*.md")])
METRIC = re.compile(r"`((?:apiserver|workqueue)_[a-z_]+)`")
CODE_PATH = re.compile(
    r"`((?:apiserver|registry|admission|controller|tenant_apiserver|tests|manifests|docs)/[\w/.-]*)`"
)
LINK = re.compile(r"\]\((?!http)([^)#]+)")


@pytest.mark.parametrize(
    "flag", sorted({flag.name for flag in (*options._COMMON, *options._HELMRELEASES, *options._SERVE)})
)
def test_every_flag_of_serve_is_told(flag: str) -> None:
    assert f"`{flag}`" in (ROOT / "docs" / "install.md").read_text()


@pytest.mark.parametrize("name", sorted(set(METRIC.findall((ROOT / "docs" / "operations.md").read_text()))))
def test_a_metric_that_is_told_of_exists(name: str) -> None:
    packages = ("apiserver", "admission", "controller")
    sources = [path.read_text() for package in packages for path in (ROOT / package).rglob("*.py")]
    assert any(f'"{name.removesuffix("_total")}' in source for source in sources)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_somewhere(page: Path) -> None:
    for target in LINK.findall(page.read_text()):
        assert (page.parent / target).exists(), target


@pytest.mark.parametrize(
    "page", [ROOT / "CONTRIBUTING.md", ROOT / "docs" / "architecture.md"], ids=lambda page: page.name
)
def test_every_file_that_a_page_names_exists(page: Path) -> None:
    named = CODE_PATH.findall(page.read_text())
    assert len(named) > 5
    assert [path for path in named if not (ROOT / path).exists()] == []


def test_the_index_lists_every_page() -> None:
    index = (ROOT / "docs" / "README.md").read_text()
    pages = [page.relative_to(ROOT / "docs") for page in (ROOT / "docs").rglob("*.md") if page.name != "README.md"]
    assert [str(page) for page in pages if f"]({page})" not in index] == []
