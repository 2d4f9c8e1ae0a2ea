"""docs/troubleshooting.md: its commands are typed where its faults are, and print what the page shows."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import pytest

from tests.e2e.support.clusters import ROOT, E2eCluster, tenants_path
from tests.e2e.support.gateways import MERGE, Gateways
from tests.e2e.support.processes import REPOSITORY
from tests.e2e.support.tenants import Object, Tenants, manifest

PAGE = (REPOSITORY / "docs" / "troubleshooting.md").read_text()
BLOCK = re.compile(r"^```console\n\$ kubectl (?P<command>[^\n]+)\n(?P<output>.*?)^```", re.MULTILINE | re.DOTALL)
LEFT_OUT = "..."
# What is another at every try: uids, and ages.
CHANGING = re.compile(r"\b[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}\b|\b\d+m?s\b")
LONG_HOST = "long-names-are-what-this-customer-likes.subsidiary.example.com"
KEEP = "example.com/keep"


class Shown(NamedTuple):
    command: str
    output: Sequence[str]


def shown() -> dict[str, Shown]:
    """The command under each heading of the page; the first of all has none."""
    found = {}
    for section in re.split(r"^(?=##? )", PAGE, flags=re.MULTILINE):
        if block := BLOCK.search(section):
            heading = section.partition("\n")[0].strip("# ")
            found[heading] = Shown(block["command"], lines(block["output"]))
    return found


def lines(text: str) -> Sequence[str]:
    """Without what depends on time, chance and the widths of columns."""
    return [" ".join(CHANGING.sub("*", line).split()) for line in text.splitlines()]


class Reader:
    """Types the commands of the page."""

    def __init__(self, cluster: E2eCluster, gateways: Gateways) -> None:
        self._cluster = cluster
        self._gateways = gateways
        self._left = shown()

    def reads(self, heading: str) -> None:
        """Wait until the command under this heading prints what is shown there."""
        command, expected = self._left.pop(heading)
        printed: Sequence[str] = []

        def agrees() -> bool:
            nonlocal printed
            printed = lines(self._cluster.kubectl(*shlex.split(command)).stdout)
            if LEFT_OUT in expected:
                return set(expected) - {LEFT_OUT} <= set(printed)
            return printed == expected

        try:
            self._gateways.wait_until(f"what is shown under {heading!r}", agrees, seconds=20)
        except AssertionError as error:
            raise AssertionError("\n".join(["shown:", *expected, "printed:", *printed])) from error

    def has_read_all(self) -> bool:
        return not self._left


@pytest.fixture
def reader(cluster: E2eCluster, gateways: Gateways) -> Reader:
    return Reader(cluster, gateways)


@pytest.fixture
def named(cluster: E2eCluster) -> Iterator[None]:
    """The page's tenants are gone after the test."""
    yield
    client = cluster.client()
    for name in ("acme", "bob", "long"):
        client.request("DELETE", tenants_path(ROOT, name), query={"propagationPolicy": "Foreground"})


def create(cluster: E2eCluster, name: str, namespace: str = ROOT, *, spec: Object | None = None) -> None:
    cluster.client().request("POST", tenants_path(namespace), manifest(name, namespace, spec=spec)).expect(201)


@pytest.mark.controller_manager
@pytest.mark.usefixtures("named")
def test_the_commands_of_the_page_print_what_it_shows(
    cluster: E2eCluster, tenants: Tenants, gateways: Gateways, reader: Reader
) -> None:
    create(cluster, "acme", spec={"gateway": True, "host": "acme.example"})
    reader.reads("Troubleshooting")
    create(cluster, "dev", "tenant-acme")
    reader.reads("A child's route is not accepted on its ancestor's Gateway")

    create(cluster, "long")
    tenants.wait_for_namespace("tenant-long")
    create(cluster, "dev", "tenant-long", spec={"gateway": True})
    tenants.patch("long", {"spec": {"host": LONG_HOST}})
    reader.reads("There is no TenantGateway")

    gateways.create_route("tenant-acme", "shop", "shop.acme.example", to="tenant-acme", port=443)
    reader.reads("Ready=False, another reason")
    gateways.create_named_namespace("cozy-shop")
    gateways.create_route("cozy-shop", "front", "shop.acme.example", to="tenant-acme")
    reader.reads("A route is refused: HostnameConflict")

    create(cluster, "bob", spec={"gateway": True})
    gateways.wait_until("bob's gateway", lambda: gateways.listener_hostnames("tenant-bob"))
    gateways.patch("gateways", "tenant-bob", "cozystack", {"metadata": {"ownerReferences": None}})
    reader.reads("Ready=False, ReconcileError")
    gateways.delete("gateways", "tenant-bob")

    held: Object = {"metadata": {"name": "held", "finalizers": [KEEP]}}
    maps = "/api/v1/namespaces/tenant-bob/configmaps"
    cluster.client().request("POST", maps, held).expect(201)
    try:
        cluster.client().request("DELETE", tenants_path(ROOT, "bob")).expect(200)
        reader.reads("A tenant does not go away")
    finally:
        body = {"metadata": {"finalizers": None}}
        cluster.client().request("PATCH", f"{maps}/held", body, content_type=MERGE).expect(200)
    assert reader.has_read_all()


def test_the_error_messages_on_the_page_are_those_of_the_server(cluster: E2eCluster, tenants: Tenants) -> None:
    refused = PAGE.partition("## Refusals")[2]
    quoted = re.findall(r"^\| `(?P<message>[^`]+)` \|", refused, re.MULTILINE)
    client, alice = cluster.client(), cluster.client("alice", [f"{ROOT}-admin"])
    taken = tenants.create(spec={"host": f"{tenants.new_name()}.example"})["spec"]["host"]
    parent = tenants.create_with_namespace(spec={"resourceQuotas": {"cpu": "4"}})
    asked = [
        (alice, ROOT, {"host": f"{tenants.new_name()}.example"}),
        (client, ROOT, {"host": taken}),
        (client, parent, {"resourceQuotas": {"cpu": "5"}}),
    ]
    refusals = [
        who.request("POST", tenants_path(namespace), manifest(tenants.new_name(namespace), namespace, spec=spec)).json()
        for who, namespace, spec in asked
    ]
    assert len(quoted) == len(refusals)
    for message, refusal in zip(quoted, refusals, strict=True):
        parts = [re.escape(part.strip()) for part in message.split("…")]
        assert re.search(".*".join(parts), refusal["message"]), refusal
