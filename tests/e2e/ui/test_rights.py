"""The page of people who may not do everything: it offers what they may do, and says what they may not."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from tests.e2e.support.browser.chromium import Chromium
from tests.e2e.support.browser.page_process import PageProcess
from tests.e2e.support.clusters.cluster import E2eCluster
from tests.e2e.support.clusters.embedded import EmbeddedCluster
from tests.e2e.support.tenants import Tenants
from tests.e2e.ui.test_page import row

_BUTTONS = """return [...document.querySelectorAll("button")]
    .filter(each => each.checkVisibility()).map(each => each.textContent)"""
_CHANGES = {"Edit", "New child", "Delete", "New tenant"}


@contextmanager
def page_of(chromium: Chromium, cluster: E2eCluster, user: str, group: str, directory: Path) -> Iterator[None]:
    """The page of a user of one group in the browser. Their kubeconfig has no namespace."""
    identity = cluster.identity(user, (group,))
    kubeconfig = directory / "kubeconfig"
    lines = identity.kubeconfig.read_text().splitlines(keepends=True)
    kubeconfig.write_text("".join(each for each in lines if not each.strip().startswith("namespace:")))
    serving = PageProcess(replace(identity, kubeconfig=kubeconfig), directory)
    chromium.look()
    try:
        chromium.open(serving.login_url())
        chromium.wait_for_text("#connection", "Live")
        yield
    finally:
        chromium.open("about:blank")
        status = serving.stop()
    assert status == 0


def offered(chromium: Chromium) -> set[str]:
    """The buttons that change something."""
    return _CHANGES & set(chromium.run(_BUTTONS))


def test_the_administrator_of_a_tenant_creates_one_below_it_where_the_root_is_hidden(
    chromium: Chromium, embedded: EmbeddedCluster, tenants: Tenants, unique: str, tmp_path: Path
) -> None:
    namespace = tenants.create_with_namespace()
    top, name = namespace.removeprefix("tenant-"), tenants.new_name()
    with page_of(chromium, embedded, unique, f"{namespace}-admin", tmp_path):
        chromium.wait_for_text(row(top), "Ready")
        assert not chromium.run("return document.querySelector(arguments[0])", row("root"))
        chromium.click("#create")
        chromium.wait_for_text("dialog h2", f"New tenant in {top}")
        chromium.write("[data-field=name]", name)
        chromium.wait_for_text(".preview", f"{namespace}-{name}")
        chromium.click("dialog button", "Create")
        chromium.wait_for_text("tenant-panel h2", name)
        chromium.find("tenant-panel button", "New child")
        assert offered(chromium) == _CHANGES
    assert tenants.get(name, namespace)


def test_who_may_only_view_is_offered_no_change_and_told_why(
    chromium: Chromium, embedded: EmbeddedCluster, tenants: Tenants, unique: str, tmp_path: Path
) -> None:
    namespace = tenants.create_with_namespace()
    top = namespace.removeprefix("tenant-")
    with page_of(chromium, embedded, unique, f"{namespace}-view", tmp_path):
        chromium.click(row(top))
        chromium.wait_for_text("tenant-panel .note", "You may not edit, add children to or delete this tenant.")
        chromium.wait_for_text(".toolbar .note", "You may not create tenants")
        assert chromium.find(".toolbar .note")
        assert offered(chromium) == set()
        assert chromium.violations() == []


def test_the_administrator_of_a_tenant_may_not_delete_it_but_what_is_below(
    chromium: Chromium, embedded: EmbeddedCluster, tenants: Tenants, unique: str, tmp_path: Path
) -> None:
    namespace = tenants.create_with_namespace()
    top = namespace.removeprefix("tenant-")
    child = tenants.create(namespace)["metadata"]["name"]
    tenants.wait_until_settled(child, namespace)
    with page_of(chromium, embedded, unique, f"{namespace}-admin", tmp_path):
        chromium.click(row(top))
        chromium.wait_for_text("tenant-panel .note", "You may not edit or delete this tenant.")
        assert offered(chromium) == {"New child", "New tenant"}
        chromium.click(row(child, namespace))
        chromium.wait_for_text("tenant-panel h2", child)
        chromium.wait_for_text("tenant-panel h3", "Events")
        assert offered(chromium) == _CHANGES
