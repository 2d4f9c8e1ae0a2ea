"""A wheel has one top level, whose name is ours, and its command finds the packages that are bundled in it."""

from __future__ import annotations

import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from tenant_apiserver import __version__
from tests.conftest import PROJECT_PACKAGES

ROOT = Path(__file__).parents[2]
SUFFIXES = (".py", ".json", ".typed", ".html", ".js", ".css", ".svg")
FILES = ("pyproject.toml", "setup.py", "README.md")


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder with what an installed wheel has."""
    folder = tmp_path_factory.mktemp("wheel")
    source = folder / "source"
    for name in (*PROJECT_PACKAGES, "requirements"):
        shutil.copytree(ROOT / name, source / name, ignore=shutil.ignore_patterns("__pycache__"))
    for name in FILES:
        shutil.copy(ROOT / name, source / name)
    command = [sys.executable, "-m", "pip", "wheel", "--no-deps", "--no-build-isolation", "--no-index"]
    done = subprocess.run(
        [*command, f"--wheel-dir={folder}", str(source)], capture_output=True, text=True, timeout=240, cwd=folder
    )
    assert done.returncode == 0, done.stdout + done.stderr
    [wheel] = folder.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(folder / "site-packages")
    return folder / "site-packages"


def run(installed: Path, *arguments: str) -> str:
    command = [sys.executable, *arguments]
    done = subprocess.run(
        command, capture_output=True, text=True, timeout=120, cwd=installed.parent, env={"PYTHONPATH": str(installed)}
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_no_top_level_can_clash_with_that_of_another_project(installed: Path) -> None:
    assert sorted(path.name for path in installed.iterdir()) == [
        "tenant_apiserver",
        f"tenant_apiserver-{__version__}.dist-info",
    ]


def test_every_module_and_data_file_is_in_it(installed: Path) -> None:
    def contents(root: Path, name: str) -> set[str]:
        return {
            str(path.relative_to(root))
            for path in (root / name).rglob("*")
            if path.suffix in SUFFIXES and "_packages" not in path.relative_to(root).parts
        }

    for name in PROJECT_PACKAGES:
        root = installed if name == "tenant_apiserver" else installed / "tenant_apiserver" / "_packages"
        assert contents(root, name) == contents(ROOT, name)


def test_the_command_of_a_wheel_runs_with_its_own_packages(installed: Path) -> None:
    assert run(installed, "-m", "tenant_apiserver", "--version") == f"tenant-apiserver {__version__}\n"
    program = "import tenant_apiserver.serve, controller, registry.names; print(registry.names.__file__)"
    assert Path(run(installed, "-c", program).strip()).is_relative_to(installed / "tenant_apiserver" / "_packages")


def test_the_page_of_a_wheel_has_its_files(installed: Path) -> None:
    program = (
        "from tenant_apiserver.ui.static_files import load_static_files; print(*sorted(load_static_files()), sep='\\n')"
    )
    found = run(installed, "-c", program).split()
    assert found == sorted(path.name for path in (ROOT / "tenant_apiserver" / "ui" / "static").iterdir())
    assert "index.html" in found
