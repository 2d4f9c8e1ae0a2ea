"""The page while the cluster is away, and after: what was known stays, and what has changed since is read."""

from __future__ import annotations

from pathlib import Path

from tests.e2e.support.browser.chromium import Chromium
from tests.e2e.support.browser.page_process import PageProcess
from tests.e2e.support.clusters.cluster import ROOT, tenants_path
from tests.e2e.support.clusters.embedded import EmbeddedCluster
from tests.e2e.support.tenants import Tenants
from tests.e2e.ui.test_page import row


def test_a_page_goes_on_after_an_outage_without_what_was_deleted_meanwhile(
    chromium: Chromium, own_embedded: EmbeddedCluster, tmp_path: Path
) -> None:
    """The restarted server has no history of changes, so that the page has to list again (410)."""
    cluster, tenants = own_embedded, Tenants(own_embedded)
    kept, deleted = (tenants.create()["metadata"]["name"] for _ in range(2))
    version = tenants.client.get(tenants_path()).expect(200)["metadata"]["resourceVersion"]
    serving = PageProcess(cluster.admin, tmp_path)
    chromium.look()
    chromium.open(serving.login_url())
    chromium.wait_for_text(row(deleted), "Ready")
    chromium.wait_for_text("#connection", "Live")
    assert cluster.stop() == 0
    chromium.wait_for_text("#connection", "Reconnecting")
    assert chromium.find(row(deleted)), "what was known stays"
    cluster.start()
    tenants.client.request("DELETE", tenants_path(ROOT, deleted)).expect(200)
    created = tenants.create()["metadata"]["name"]
    query = {"watch": "true", "resourceVersion": version}
    with tenants.client.stream(tenants_path(), query=query) as frames:
        assert next(iter(frames))["object"]["code"] == 410
    chromium.wait_for_text("#connection", "Live")
    chromium.wait_for_text(row(created), "Ready")
    chromium.wait("the deleted one is gone", "!document.querySelector(arguments[0])", row(deleted))
    assert chromium.find(row(kept))
    chromium.open("about:blank")
    assert serving.stop() == 0
