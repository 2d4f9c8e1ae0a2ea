"""The page of the tenants, with the credentials of its user, and as the stand-alone server serves it."""

from __future__ import annotations

import json
import signal
import socket
import stat
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import yaml

from tests.e2e.support.clusters.cluster import ROOT, E2eCluster, tenants_path
from tests.e2e.support.clusters.embedded import EmbeddedCluster
from tests.e2e.support.clusters.processes import Process
from tests.e2e.support.tenant_page import Browser, start_page
from tests.e2e.support.tenants import Tenants, manifest

Start = Callable[..., Process]
_PLUGIN = """\
#!/bin/sh
printf '{"apiVersion":"client.authentication.k8s.io/v1","kind":"ExecCredential","status":{"token":"%s"}}' "$(cat %s)"
"""


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    """Starts `kubectl tenant ui` with a kubeconfig and further flags."""
    started: list[Process] = []

    def run(kubeconfig: Path, *arguments: str) -> Process:
        process = start_page(kubeconfig, *arguments, log=tmp_path / f"page-{len(started)}.log")
        started.append(process)
        return process

    yield run
    for each in started:
        each.stop()


def test_the_page_has_the_rights_of_its_user_and_no_others(
    cluster: E2eCluster, tenants: Tenants, unique: str, start: Start
) -> None:
    tenant = tenants.create()["metadata"]["name"]
    hidden = tenants.create()["metadata"]["name"]
    tenants.wait_until_settled(tenant)
    cluster.grant(unique, "cozy:tenant:view", f"tenant-{tenant}")
    page = start(cluster.identity(unique).kubeconfig, "-n", f"tenant-{tenant}")
    browser = Browser.of(page)

    status, session = browser.get("/session")
    assert (status, session["user"], session["namespace"]) == (200, unique, f"tenant-{tenant}")
    assert (session["cluster"], session["readOnly"]) == (cluster.url, False)
    own = cluster.client(unique).get(tenants_path()).expect(200)["items"]
    names = [each["metadata"]["name"] for each in browser.get(tenants_path())[1]["items"]]
    assert names == [each["metadata"]["name"] for each in own]
    assert hidden not in names
    status, refused = browser.write("POST", tenants_path(ROOT), manifest(tenants.new_name()))
    assert (status, refused["reason"]) == (403, "Forbidden")
    assert f'User "{unique}" cannot create resource "tenants"' in refused["message"]

    page.signal(signal.SIGINT)
    assert page.wait(seconds=30) == 0, page.log()
    assert "Traceback" not in page.log()


def test_the_page_is_live_and_its_writes_have_the_errors_of_the_api(
    cluster: E2eCluster, tenants: Tenants, start: Start
) -> None:
    browser = Browser.of(start(cluster.admin.kubeconfig))
    version = browser.get(tenants_path(ROOT))[1]["metadata"]["resourceVersion"]
    events = browser.watch(f"{tenants_path(ROOT)}?watch=1&resourceVersion={version}")
    name = tenants.new_name()

    def of_the_new_tenant(event: dict[str, object]) -> bool:
        return json.dumps(event).count(f'"name": "{name}"') > 0

    invalid = manifest(name, spec={"host": "not a host"})
    status, refused = browser.write("POST", f"{tenants_path(ROOT)}?dryRun=All", invalid)
    assert (status, refused["reason"]) == (422, "Invalid")
    assert [each["field"] for each in refused["details"]["causes"]] == ["spec.host"]
    assert browser.write("POST", tenants_path(ROOT), manifest(name))[0] == 201
    assert next(filter(of_the_new_tenant, events))["type"] == "ADDED"
    cluster.kubectl("annotate", "tenant", name, "-n", ROOT, "seen=true")
    changed = next(each for each in filter(of_the_new_tenant, events) if each["object"]["metadata"].get("annotations"))
    assert changed["type"] == "MODIFIED"
    assert browser.write("DELETE", tenants_path(ROOT, name))[0] in (200, 202)


def test_credentials_of_a_plugin_are_renewed_while_the_page_is_open(
    cluster: E2eCluster, namespace: str, start: Start, tmp_path: Path
) -> None:
    cluster.kubectl("create", "serviceaccount", "robot", "-n", namespace)
    token, plugin, kubeconfig = tmp_path / "token", tmp_path / "plugin", tmp_path / "kubeconfig"
    token.write_text("expired")
    plugin.write_text(_PLUGIN.replace("%s)", f"{token})"))
    plugin.chmod(plugin.stat().st_mode | stat.S_IXUSR)
    document = yaml.load(cluster.admin.kubeconfig.read_text(), Loader=yaml.CSafeLoader)
    command = {
        "apiVersion": "client.authentication.k8s.io/v1",
        "command": str(plugin),
        "interactiveMode": "Never",
    }
    document["users"][0]["user"] = {"exec": command}
    kubeconfig.write_text(yaml.safe_dump(document))
    browser = Browser.of(start(kubeconfig))

    assert browser.get(tenants_path())[0] == 401
    issued = cluster.kubectl("create", "token", "robot", "-n", namespace, "--duration=10m").stdout.strip()
    token.write_text(issued)
    cluster.wait_until("the new token is used", lambda: browser.get(tenants_path())[0] == 200)


def test_kubectl_says_what_is_wrong(cluster: E2eCluster, start: Start, tmp_path: Path) -> None:
    failed = start(cluster.admin.kubeconfig, "--context=none")
    assert failed.wait(seconds=60) == 1
    assert 'context "none" does not exist' in failed.log()
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        refused = start(cluster.admin.kubeconfig, f"--port={port}")
        assert refused.wait(seconds=60) == 1
        assert f"error: cannot listen on 127.0.0.1 port {port}: " in refused.log()
        assert "; choose another port with --port\n" in refused.log()


def test_a_namespace_of_no_tenant_has_no_page(cluster: E2eCluster, start: Start, unique: str) -> None:
    failed = start(cluster.admin.kubeconfig, "-n", f"no{unique}")
    assert failed.wait(seconds=60) == 1
    assert f"error: namespace no{unique} is of no tenant that you may see; kubectl tenant tree -A" in failed.log()


def test_the_stand_alone_server_prints_a_url_of_the_page_of_its_administrator(own_embedded: EmbeddedCluster) -> None:
    browser = Browser.of(own_embedded.server)
    session = browser.get("/session")[1]
    assert (session["user"], session["cluster"], session["namespace"]) == ("admin", "stand-alone", ROOT)
    assert [each["metadata"]["name"] for each in browser.get(tenants_path())[1]["items"]] == ["root"]

    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        own_embedded.flags = (f"--ui-port={port}",)
        own_embedded.restart()
        server = own_embedded.server
        told = f"the tenant page is not served: cannot listen on 127.0.0.1 port {port}"
        own_embedded.wait_until("the port is told", lambda: told in server.log())
