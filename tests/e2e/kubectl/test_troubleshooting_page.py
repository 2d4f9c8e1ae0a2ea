"""docs/troubleshooting.md: its commands print the output shown there once its problems have been provoked."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import pytest

from tests.e2e.support.clusters.cluster import ROOT, E2eCluster, tenants_path
from tests.e2e.support.clusters.processes import REPOSITORY
from tests.e2e.support.gateways import LABEL, MERGE, Gateways
from tests.e2e.support.tenants import Object, Tenants, manifest

PAGE = (REPOSITORY / "docs" / "troubleshooting.md").read_text()
BLOCK = re.compile(r"^```console\n\$ kubectl (?P<command>[^\n]+)\n(?P<output>.*?)^```", re.MULTILINE | re.DOTALL)
LEFT_OUT = "..."
# uids and ages differ between runs
CHANGING = re.compile(r"\b[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}\b|\b\d+m(\d+s)?\b|\b\d+m?s\b")
LONG_HOST = "long-names-are-what-this-customer-likes.subsidiary.example.com"
KEEP = "example.com/keep"


class PageExample(NamedTuple):
    command: str
    output: Sequence[str]


def page_examples() -> dict[str, PageExample]:
    """The command and the output under each heading of the page."""
    found = {}
    for section in re.split(r"^(?=##? )", PAGE, flags=re.MULTILINE):
        if block := BLOCK.search(section):
            heading = section.partition("\n")[0].strip("# ")
            found[heading] = PageExample(block["command"], lines(block["output"]))
    return found


def lines(text: str) -> Sequence[str]:
    """The lines without uids, ages and column widths."""
    return [" ".join(CHANGING.sub("*", line).split()) for line in text.splitlines()]


class PageChecker:
    """Runs the commands of the page."""

    def __init__(self, cluster: E2eCluster, gateways: Gateways) -> None:
        self._cluster = cluster
        self._gateways = gateways
        self._remaining = page_examples()

    def expect_output(self, heading: str) -> None:
        """Waits until the command under this heading prints the output shown there."""
        command, expected = self._remaining.pop(heading)
        printed: Sequence[str] = []

        def matches() -> bool:
            nonlocal printed
            printed = lines(self._cluster.kubectl(*shlex.split(command)).stdout)
            if LEFT_OUT in expected:
                return set(expected) - {LEFT_OUT} <= set(printed)
            return printed == expected

        try:
            self._gateways.wait_until(f"the output under {heading!r} is printed", matches)
        except AssertionError as error:
            raise AssertionError("\n".join(["shown:", *expected, "printed:", *printed])) from error

    def is_complete(self) -> bool:
        return not self._remaining


@pytest.fixture
def checker(cluster: E2eCluster, gateways: Gateways) -> PageChecker:
    return PageChecker(cluster, gateways)


@pytest.fixture
def page_tenants(cluster: E2eCluster) -> Iterator[None]:
    """Deletes the tenants of the page after the test."""
    yield
    client = cluster.client()
    for name in ("acme", "bob", "long"):
        client.request("DELETE", tenants_path(ROOT, name), query={"propagationPolicy": "Foreground"})


def create(cluster: E2eCluster, name: str, namespace: str = ROOT, *, spec: Object | None = None) -> None:
    cluster.client().request("POST", tenants_path(namespace), manifest(name, namespace, spec=spec)).expect(201)


@pytest.mark.controller_manager
@pytest.mark.usefixtures("page_tenants")
def test_the_commands_of_the_page_print_what_it_shows(
    cluster: E2eCluster, tenants: Tenants, gateways: Gateways, checker: PageChecker
) -> None:
    create(cluster, "acme", spec={"gateway": True, "host": "acme.example"})
    checker.expect_output("Troubleshooting")
    create(cluster, "dev", "tenant-acme")
    checker.expect_output("A child's route is not accepted on its ancestor's Gateway")

    create(cluster, "long")
    tenants.wait_for_namespace("tenant-long")
    create(cluster, "dev", "tenant-long", spec={"gateway": True})
    tenants.patch("long", {"spec": {"host": LONG_HOST}})
    checker.expect_output("There is no TenantGateway")

    gateways.create_route("tenant-acme", "shop", "shop.acme.example", to="tenant-acme", port=443)
    checker.expect_output("Ready=False, another reason")
    gateways.create_named_namespace("cozy-shop", labels={LABEL: "tenant-acme"})
    gateways.create_route("cozy-shop", "front", "shop.acme.example", to="tenant-acme")
    checker.expect_output("A route is rejected: HostnameConflict")

    create(cluster, "bob", spec={"gateway": True})
    gateways.wait_until("the Gateway of bob has listeners", lambda: gateways.listener_hostnames("tenant-bob"))
    gateways.patch("gateways", "tenant-bob", "cozystack", {"metadata": {"ownerReferences": None}})
    checker.expect_output("Ready=False, ReconcileError")
    gateways.delete("gateways", "tenant-bob")

    blocked: Object = {"metadata": {"name": "held", "finalizers": [KEEP]}}
    maps = "/api/v1/namespaces/tenant-bob/configmaps"
    cluster.client().request("POST", maps, blocked).expect(201)
    try:
        cluster.client().request("DELETE", tenants_path(ROOT, "bob")).expect(200)
        checker.expect_output("A tenant stays in deletion")
    finally:
        body = {"metadata": {"finalizers": None}}
        cluster.client().request("PATCH", f"{maps}/held", body, content_type=MERGE).expect(200)
    assert checker.is_complete()


def test_the_error_messages_on_the_page_are_those_of_the_server(cluster: E2eCluster, tenants: Tenants) -> None:
    section = PAGE.partition("## Rejected writes")[2]
    quoted = re.findall(r"^\| `(?P<message>[^`]+)` \|", section, re.MULTILINE)
    client, alice = cluster.client(), cluster.client("alice", [f"{ROOT}-admin"])
    taken = tenants.create(spec={"host": f"{tenants.new_name()}.example"})["spec"]["host"]
    parent = tenants.create_with_namespace(spec={"resourceQuotas": {"cpu": "4"}})
    requests = [
        (alice, ROOT, {"host": f"{tenants.new_name()}.example"}),
        (client, ROOT, {"host": taken}),
        (client, parent, {"resourceQuotas": {"cpu": "5"}}),
        (client, ROOT, {"resourceQuotas": {"count/cpu": "1"}}),
    ]
    errors = [
        sender.request(
            "POST", tenants_path(namespace), manifest(tenants.new_name(namespace), namespace, spec=spec)
        ).json()
        for sender, namespace, spec in requests
    ]
    assert len(quoted) == len(errors)
    for message, error in zip(quoted, errors, strict=True):
        parts = [re.escape(part.strip()) for part in message.split("…")]
        assert re.search(".*".join(parts), error["message"]), error
