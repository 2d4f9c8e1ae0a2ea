"""One browser for the tests of a module, and the page of the cluster in it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.e2e.support.browser.chromium import Chromium, missing_programs
from tests.e2e.support.browser.page_process import PageProcess
from tests.e2e.support.clusters.cluster import E2eCluster


@pytest.fixture(scope="module")
def chromium(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Chromium]:
    if missing := missing_programs():
        pytest.skip(f"needs {' and '.join(missing)}: install Debian's packages chromium and chromium-driver")
    running = Chromium(tmp_path_factory.mktemp("chromium"))
    yield running
    running.close()


@pytest.fixture(scope="module")
def page_address(
    running_cluster: E2eCluster, chromium: Chromium, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[str]:
    """The origin of a page in which the browser has logged in as the administrator."""
    serving = PageProcess(running_cluster.admin, tmp_path_factory.mktemp("ui"))
    chromium.open(serving.login_url())
    yield str(chromium.run("return location.origin"))
    chromium.open("about:blank")
    assert serving.stop() == 0


@pytest.fixture
def page(chromium: Chromium, page_address: str) -> Chromium:
    """The page as it is when one opens it, in a wide window and in the light."""
    chromium.look()
    chromium.messages()
    # a change of the fragment alone loads nothing
    chromium.open("about:blank")
    chromium.open(f"{page_address}/")
    chromium.wait_for_text("#connection", "Live")
    return chromium
