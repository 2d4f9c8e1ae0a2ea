"""The page in a real browser, as a user sees it: the tree, a tenant, the forms, and the ways to them."""

from __future__ import annotations

from pathlib import Path

import pytest
from selenium.webdriver.common.keys import Keys

from tests.e2e.support.browser.chromium import NARROW, Chromium
from tests.e2e.support.browser.earlier_server import earlier_server
from tests.e2e.support.browser.page_process import PageProcess
from tests.e2e.support.clusters.cluster import ROOT, E2eCluster, tenants_path
from tests.e2e.support.clusters.embedded import EmbeddedCluster
from tests.e2e.support.tenants import Tenants

_HOSTILE = "<img src=x onerror=document.title='broken'><script src=x>"


def row(name: str, namespace: str = ROOT) -> str:
    return f'.row[data-key="{namespace}/{name}"]'


def search(page: Chromium, text: str) -> None:
    page.write("#search", text)


def show(page: Chromium, name: str, namespace: str = ROOT) -> None:
    """Opens a tenant as a user does who knows its name."""
    search(page, name)
    page.click(row(name, namespace))
    page.wait_for_text("tenant-panel h2", name)
    page.wait_for_text("tenant-panel h3", "Events")


def test_the_printed_url_leads_to_a_tree_that_follows_the_cluster(
    page: Chromium, tenants: Tenants, cluster: E2eCluster
) -> None:
    assert page.run("return location.href").endswith("/"), "the code is not in the address any more"
    assert "root" in page.find(row("root")).text
    assert page.text("#identity")
    name = tenants.new_name()
    search(page, name)
    page.wait_for_text(".empty", "No tenant matches")
    cluster.client().request("POST", tenants_path(ROOT), {"metadata": {"name": name}}).expect(201)
    page.wait_for_text(row(name), "Ready")
    page.wait_for_text("#announcements", name)
    cluster.client().request("DELETE", tenants_path(ROOT, name)).expect(200)
    page.wait_for_text(".empty", "No tenant matches")
    assert page.messages() == []


def test_a_tenant_shows_what_it_has_and_from_whom_and_why(
    page: Chromium, tenants: Tenants, embedded: EmbeddedCluster
) -> None:
    namespace = tenants.create_with_namespace(spec={"resourceQuotas": {"cpu": "8"}, "etcd": False})
    parent = namespace.removeprefix("tenant-")
    child = tenants.create(namespace, spec={"resourceQuotas": {"cpu": "2"}})["metadata"]["name"]
    tenants.wait_until_settled(child, namespace)
    show(page, parent)
    page.wait_for_text(".quota", "6 left of 8")
    page.wait_for_text(".services", "from root")
    page.click(".why", "etcd")
    page.wait_for_text(".chain .rule", "runs etcd, or the root")
    page.press(Keys.ESCAPE)
    assert "etcd" in page.focused(), "the focus is back at the button"
    page.click("tenant-panel button", "What may I do?")
    page.wait_for_text(".explanation .callout", f"may see tenant {ROOT}/{parent}")
    assert "Yes" not in page.text(".explanation .callout"), "the question has a what, so that Yes is no answer"
    page.press(Keys.ESCAPE)
    show(page, child, namespace)
    page.click(".trail button", parent)
    page.wait_for_text("tenant-panel h2", parent)
    page.run("location.hash = '#/%'")
    page.wait_for_text("body:not(.opened)", "root")
    page.run(f"location.hash = '#/{namespace}/{child}'")
    page.wait_for_text("tenant-panel h2", child)
    assert page.messages() == []


def test_a_change_while_a_tenant_is_read_is_read_soon(
    page: Chromium, tenants: Tenants, embedded: EmbeddedCluster
) -> None:
    """The first events of a new tenant come while the panel reads it: it shows Ready in less than ten seconds."""
    name = tenants.create()["metadata"]["name"]
    tenants.wait_until_settled(name)
    show(page, name)
    # the read ends before the change is due, however slow the machine is
    page.run(
        "window.delays = []; const later = window.setTimeout, panel = document.querySelector('tenant-panel');"
        "const isFirst = (delay) => delay === 700 && delays.filter((each) => each === 700).length === 1;"
        "window.setTimeout = (what, delay) => "
        "  { delays.push(delay); return later(what, isFirst(delay) ? 100_000 : delay); };"
        f"panel.clear(); panel.show('{ROOT}/{name}'); panel.update();"
    )
    page.wait("it has been read", "window.delays.includes(10_000)")
    delays = [each for each in page.run("return window.delays") if each in (700, 10_000)]
    assert delays[:2] == [700, 700], "by the change, and again behind the read that had begun before it"


def test_enter_in_the_search_goes_to_what_it_has_found(
    page: Chromium, tenants: Tenants, embedded: EmbeddedCluster
) -> None:
    """Not to the tenant above it, which was opened before, and which the tree shows as the way there."""
    namespace = tenants.create_with_namespace()
    parent = namespace.removeprefix("tenant-")
    child = tenants.create(namespace)["metadata"]["name"]
    tenants.wait_until_settled(child, namespace)
    show(page, parent)
    page.click("tenant-panel .close")
    search(page, child)
    page.wait_for_text(row(child, namespace), child)
    page.press(Keys.ENTER)
    page.wait("the row has the focus", "document.activeElement.dataset.key === arguments[0]", f"{namespace}/{child}")
    page.press(Keys.ENTER)
    page.wait_for_text("tenant-panel h2", child)


def test_a_quota_bar_shows_what_admission_grants_and_why(
    page: Chromium, tenants: Tenants, embedded: EmbeddedCluster
) -> None:
    """The platform divides cpu by ten, for requests."""
    namespace = tenants.create_with_namespace(spec={"resourceQuotas": {"requests.cpu": "4"}})
    parent = namespace.removeprefix("tenant-")
    child = tenants.create(namespace, spec={"resourceQuotas": {"cpu": "16"}})["metadata"]["name"]
    heir = tenants.create(namespace)["metadata"]["name"]
    tenants.wait_until_settled(child, namespace)
    tenants.wait_until_settled(heir, namespace)
    show(page, parent)
    page.wait_for_text(".quota", "2400m left of 4")
    page.wait_for_text(row(parent), "requests.cpu 2400m left")
    page.click(".quota .why")
    page.wait_for_text(".chain .value", "its children declare 1600m; 2400m left")
    page.press(Keys.ESCAPE)
    show(page, heir, namespace)
    page.click(".why", "Whose quota applies")
    page.wait_for_text(".chain .value", "4, shared with those below that declare none")
    assert page.messages() == []


def test_the_events_of_an_open_tenant_are_read_again(page: Chromium, tenants: Tenants, cluster: E2eCluster) -> None:
    """As all that changes without the tenant itself."""
    tenant = tenants.create()
    name = tenant["metadata"]["name"]
    tenants.wait_until_settled(name)
    show(page, name)
    page.wait_for_text("tenant-panel", "the tenant is up to date")
    event = {
        "metadata": {"name": f"{name}.1"},
        "involvedObject": {"kind": "Tenant", "namespace": ROOT, "name": name, "uid": tenant["metadata"]["uid"]},
        "reason": "Noticed",
        "message": "somebody was here",
        "type": "Normal",
    }
    cluster.client().request("POST", f"/api/v1/namespaces/{ROOT}/events", event).expect(201)
    page.wait_for_text("tenant-panel", "somebody was here")
    assert page.messages() == []


def test_a_hostname_finds_its_tenant_and_why_it_is_not_served(
    page: Chromium, tenants: Tenants, embedded: EmbeddedCluster
) -> None:
    name = tenants.create()["metadata"]["name"]
    host = f"shop.{tenants.wait_until_settled(name)['status']['host']['value']}"
    search(page, host)
    assert name in page.find(row(name)).text
    page.click("#hint button")
    page.wait_for_text(".explanation .callout", "Gateway serves the tenant")
    page.wait_for_text(".remedy", "create an HTTPRoute")


def test_a_tenant_is_created_after_its_domain_is_refused_beside_the_field(
    page: Chromium, tenants: Tenants, embedded: EmbeddedCluster
) -> None:
    taken = tenants.create(spec={"host": "taken.example.net"})["metadata"]["name"]
    tenants.wait_until_settled(taken)
    name = tenants.new_name()
    page.click("#create")
    page.write("[data-field=name]", name)
    page.write("[data-field=host]", "No such domain")
    page.wait_for_text("dialog .error", "DNS name")
    field = page.find("[data-field=host]")
    assert field.get_attribute("aria-invalid") == "true"
    described = str(field.get_attribute("aria-describedby")).split()
    assert any("DNS name" in page.text(f"#{each}") for each in described), "a screen reader says it with the field"
    page.click("dialog button", "Create")
    assert "Domain" in page.focused(), "the first field with an error has the focus"
    page.write("[data-field=host]", f"{name}.example.net")
    page.wait_for_text(".preview", f"tenant-{name}")
    page.click("dialog button", "Create")
    page.wait_for_text("tenant-panel h2", name)
    page.wait("the dialog is gone", "!document.querySelector('dialog')")
    assert tenants.get(name)["spec"]["host"] == f"{name}.example.net"


def test_an_edit_sends_what_was_changed_and_tells_of_the_change_of_another(
    page: Chromium, tenants: Tenants, embedded: EmbeddedCluster
) -> None:
    name = tenants.create(spec={"resourceQuotas": {"cpu": "8", "memory": "4Gi"}})["metadata"]["name"]
    tenants.wait_until_settled(name)
    show(page, name)
    page.click("tenant-panel button", "Edit")
    page.write(".quota-row input[aria-label=Amount]", "9")
    tenants.patch(name, {"spec": {"schedulingClass": "", "resourceQuotas": {"memory": "5Gi"}}})
    page.click("dialog button", "Save")
    page.wait_for_text("dialog .callout", "changed by another")
    page.click("dialog button", "Load the newer version")
    page.wait_for_text(".preview", "accepts")
    page.click("dialog button", "Save")
    page.wait("the dialog is gone", "!document.querySelector('dialog')")
    assert tenants.get(name)["spec"]["resourceQuotas"] == {"cpu": "9", "memory": "5Gi"}
    page.wait_for_text(".quota", "9 left of 9")


def refused_deletion(page: Chromium, tenants: Tenants) -> tuple[str, str, str]:
    """Opens the dialog that deletes a tenant with a child. Returns the tenant, its namespace and the child."""
    namespace = tenants.create_with_namespace()
    parent = namespace.removeprefix("tenant-")
    child = tenants.create(namespace)["metadata"]["name"]
    tenants.wait_until_settled(child, namespace)
    show(page, parent)
    page.click("tenant-panel button", "Delete")
    page.wait_for_text("dialog .callout", "the tenant has child tenants")
    return parent, namespace, child


def test_a_tenant_with_children_is_not_deleted_and_one_without_is(
    page: Chromium, tenants: Tenants, embedded: EmbeddedCluster
) -> None:
    parent, namespace, child = refused_deletion(page, tenants)
    assert f"1 child: {child}" in page.text("dialog")
    page.write("dialog input", parent)
    assert not page.find("dialog button[type=submit]").is_enabled()
    page.press(Keys.ESCAPE)
    show(page, child, namespace)
    page.click("tenant-panel button", "Delete")
    page.write("dialog input", child)
    page.click("dialog button[type=submit]")
    page.wait("its row is gone", "!document.querySelector(arguments[0])", row(child, namespace))
    page.wait_for_text("tenant-panel", "Choose a tenant")


def test_a_deletion_that_was_refused_is_offered_as_soon_as_it_is_not(
    page: Chromium, tenants: Tenants, embedded: EmbeddedCluster
) -> None:
    """The dialog stays open while somebody deletes the child."""
    parent, namespace, child = refused_deletion(page, tenants)
    page.write("dialog input", parent)
    embedded.client().request("DELETE", tenants_path(namespace, child)).expect(200)
    page.wait("the button is enabled", "document.querySelector('dialog button[type=submit]:enabled')")
    assert "child" not in page.text("dialog")
    page.click("dialog button[type=submit]")
    page.wait("its row is gone", "!document.querySelector(arguments[0])", row(parent))


def test_a_tenant_stays_until_its_deletion_is_confirmed(
    page: Chromium, tenants: Tenants, embedded: EmbeddedCluster
) -> None:
    """The dialog asks the server by a dry run as soon as it opens."""
    name = tenants.create()["metadata"]["name"]
    tenants.wait_until_settled(name)
    show(page, name)
    page.run(
        "window.deletions = []; const send = window.fetch;"
        "window.fetch = async (url, options) => { const answer = await send(url, options);"
        "if (options?.method === 'DELETE') deletions.push(answer.status); return answer; }"
    )
    page.click("tenant-panel button", "Delete")
    page.wait("the dry run is answered", "window.deletions.length > 0")
    assert page.run("return window.deletions") == [200]
    page.press(Keys.ESCAPE)
    assert "deletionTimestamp" not in tenants.get(name)["metadata"]


def test_markup_that_a_tenant_writes_stays_text(page: Chromium, tenants: Tenants, embedded: EmbeddedCluster) -> None:
    name = tenants.create()["metadata"]["name"]
    tenants.wait_until_settled(name)
    event = {
        "metadata": {"name": name},
        "involvedObject": {
            "apiVersion": "apps.cozystack.io/v1alpha1",
            "kind": "Tenant",
            "name": name,
            "namespace": ROOT,
        },
        "reason": "Hostile",
        "message": _HOSTILE,
        "type": "Warning",
    }
    embedded.client().request("POST", f"/api/v1/namespaces/{ROOT}/events", event).expect(201)
    search(page, _HOSTILE)
    show(page, name)
    page.wait_for_text("tenant-panel .event", _HOSTILE)
    assert page.run("return document.title").startswith(name)
    assert page.run("return document.querySelectorAll('tenant-panel img, tenant-panel script').length") == 0
    assert page.messages() == []


def test_the_keyboard_alone_reaches_a_tenant_and_its_explanation(
    page: Chromium, tenants: Tenants, embedded: EmbeddedCluster
) -> None:
    namespace = tenants.create_with_namespace()
    parent = namespace.removeprefix("tenant-")
    child = tenants.create(namespace)["metadata"]["name"]
    tenants.wait_until_settled(child, namespace)
    page.wait(
        "both are listed", "document.querySelector('tenant-tree').store.nodes.has(arguments[0])", f"{namespace}/{child}"
    )
    page.press("/")
    page.press(*parent, Keys.ENTER)
    assert page.focused().startswith(parent), "what the search has found, and not the root above it"
    page.press(Keys.HOME)
    assert page.focused().startswith("root")
    page.press(*parent[:3])
    assert page.focused().startswith(parent)
    page.press(Keys.END)
    assert page.focused().startswith(child)
    page.press(Keys.ARROW_LEFT)
    page.press(Keys.ARROW_LEFT)
    assert page.find(row(parent)).get_attribute("aria-expanded") == "true", "a search shows what is below"
    page.press(Keys.ENTER)
    page.wait_for_text("tenant-panel h3", "Events")
    assert page.focused() == parent, "the heading of the tenant has the focus"
    page.press(Keys.TAB, Keys.TAB, Keys.TAB, Keys.TAB)
    assert page.focused().startswith("Why? gateway")
    page.press(Keys.ENTER)
    page.wait_for_text(".chain .rule", "serves it")
    page.press(Keys.ESCAPE)
    assert page.focused().startswith("Why? gateway")
    page.press(Keys.ESCAPE)
    assert page.focused().startswith(parent), "the row has the focus"


@pytest.mark.parametrize("look", [{}, {"dark": True}, {"size": NARROW}], ids=["light", "dark", "narrow"])
def test_axe_finds_nothing_to_mend(
    page: Chromium, tenants: Tenants, embedded: EmbeddedCluster, look: dict[str, object]
) -> None:
    name = tenants.create(spec={"gateway": True, "etcd": True, "resourceQuotas": {"cpu": "8"}})["metadata"]["name"]
    tenants.wait_until_settled(name)
    page.look(**look)  # type: ignore[arg-type]
    search(page, name)
    page.find(row(name))
    found = [*page.violations()]
    page.click(row(name))
    page.wait_for_text("tenant-panel h3", "Events")
    assert page.run("return document.documentElement.scrollWidth <= innerWidth"), "nothing scrolls sideways"
    found += page.violations()
    page.click(".why", "gateway")
    page.find(".chain")
    found += page.violations()
    page.press(Keys.ESCAPE)
    page.click("tenant-panel button", "Edit")
    page.write("[data-field=host]", "No such domain")
    page.wait_for_text("dialog .error", "DNS name")
    assert [*found, *page.violations()] == []


def test_what_an_earlier_server_of_the_port_has_left_in_the_browser_does_not_reach_the_page(
    chromium: Chromium, embedded: EmbeddedCluster, tmp_path: Path
) -> None:
    with earlier_server() as port:
        chromium.open(f"http://127.0.0.1:{port}/")
        chromium.wait("the worker is there", "document.title === 'left behind'")
        chromium.open("about:blank")
    serving = PageProcess(embedded.admin, tmp_path, f"--port={port}")
    chromium.open(serving.login_url())
    chromium.wait_for_text("#connection", "Live")
    assert chromium.run("return [document.title, navigator.serviceWorker.controller]") == ["Tenants", None]
    chromium.open(f"http://127.0.0.1:{port}/")
    assert chromium.run("return document.title") == "not the page", "the worker still has its own origin"
    chromium.open("about:blank")
    assert serving.stop() == 0


def test_a_server_that_has_ended_is_told(chromium: Chromium, embedded: EmbeddedCluster, tmp_path: Path) -> None:
    serving = PageProcess(embedded.admin, tmp_path)
    chromium.open(serving.login_url())
    chromium.wait_for_text("#connection", "Live")
    assert serving.stop() == 0
    chromium.wait_for_text("#connection", "Reconnecting")
    assert chromium.find(row("root")), "what was known stays"
    chromium.open("about:blank")


def test_a_page_that_only_reads_offers_no_change(
    chromium: Chromium, embedded: EmbeddedCluster, tenants: Tenants, unique: str, tmp_path: Path
) -> None:
    """For a person of one tenant, who sees it and what is below it, and nothing else."""
    namespace = tenants.create_with_namespace()
    parent = namespace.removeprefix("tenant-")
    child = tenants.create(namespace)["metadata"]["name"]
    tenants.wait_until_settled(child, namespace)
    serving = PageProcess(embedded.identity(unique, (f"{namespace}-view",)), tmp_path, "--read-only")
    chromium.look()
    chromium.open(serving.login_url())
    chromium.wait_for_text(row(parent), "Ready")
    chromium.click(row(child, namespace))
    chromium.wait_for_text("tenant-panel h3", "Events")
    assert chromium.text("#count-all") == "2"
    texts = chromium.run(
        "return [...document.querySelectorAll('button')].map(each => each.checkVisibility() && each.textContent)"
    )
    assert not {"Edit", "Delete", "New child", "New tenant"} & set(texts)
    chromium.open("about:blank")
    assert serving.stop() == 0
