"""ATTACK-19: one connection, one user or a thousand connections try to use up the memory or the time of the server.

Each test measures the cost of an attack. docs/security.md promises the limits in COSTS.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any
from urllib.parse import quote

import pytest

from tests.attacks.support.proxied_replica import Replica
from tests.attacks.support.resource_cost import assert_cheap, least_wait_counts, measured_cost
from tests.attacks.support.two_tenants import TenantAdmin
from tests.e2e.support.clusters.cluster import tenants_path
from tests.e2e.support.clusters.embedded import EmbeddedCluster
from tests.e2e.support.clusters.kube import KubeCluster
from tests.e2e.support.clusters.processes import wait_until
from tests.e2e.support.http.https_client import Client
from tests.e2e.support.http.raw_tls import RawTls
from tests.e2e.support.tenants import Tenants
from tests.faults.support.many_clients import ClientConnections, Connection, in_parallel
from tests.faults.support.process_usage import open_descriptors

MIB = 1024 * 1024
COSTS = {
    "one connection": 8,
    "1,000 connections": 128,
    "1,000 unfinished heads": 96,
    "1,000 pipelines": 160,
    "selectors": 32,
    "1,200 watches": 192,
    "watches with long selectors": 64,
    "bodies": 128,
    "values": 96,
    "refused bodies": 96,
    "long keys": 96,
    "unread objects": 128,
    "bombs": 128,
    "unread errors": 128,
}
"""The greatest permitted cost of an attack, in MiB of memory."""


def head_of(*fields: str, target: str = "/healthz") -> bytes:
    return "\r\n".join([f"GET {target} HTTP/1.1", "Host: h", *fields, "", ""]).encode()


def send_and_read_status(client: Client, *pieces: bytes) -> int:
    """Sends the pieces as long as the server receives them."""
    with RawTls(client) as connection:
        with contextlib.suppress(OSError):
            for piece in pieces:
                connection.send(piece)
        return int(connection.read_until(b"\r\n").split()[1])


# heads


def many(field: str, count: int) -> list[bytes]:
    """The pieces of a head that has a header many times."""
    return [head_of()[:-2], *[f"{field}\r\n".encode()] * count, b"\r\n"]


@pytest.mark.parametrize(
    ("head", "code"),
    [
        pytest.param(many("A: " + "a" * MIB, 600), 431, id="600 headers of 1 MiB"),
        pytest.param(many("Connection: " + "a," * (MIB // 2), 20), 431, id="20 Connection headers of 1 MiB"),
        pytest.param(head_of("Connection: " + "a," * 30_000), 400, id="a long Connection header"),
        pytest.param(head_of("Accept: " + "a/b," * 15_000), 200, id="a long Accept header"),
        pytest.param(head_of("Cookie: " + "a=b;" * 15_000), 200, id="many cookies"),
        pytest.param(head_of("X-Forwarded-For: " + "1.2.3.4," * 7000), 200, id="many forwarders"),
        pytest.param(head_of(*["Impersonate-Group: g"] * 900), 403, id="many impersonated groups"),
        pytest.param(head_of(*["X-Remote-Extra-A: b"] * 900), 401, id="many extras"),
        pytest.param(head_of(*[f"H{number}: a" for number in range(5000)]), 431, id="5,000 headers"),
        pytest.param(head_of(target="/" + "a" * MIB), 414, id="a target of 1 MiB"),
        pytest.param(head_of(target="/a" * 15_000), 403, id="a path of 15,000 segments"),
        pytest.param(head_of(target="/%41" * 8000), 403, id="a path of escapes"),
        pytest.param(head_of(target="/healthz?" + "a&" * 15_000), 400, id="15,000 parameters"),
        pytest.param(head_of(target="/healthz?a=" + "%41" * 10_000), 200, id="a parameter of escapes"),
        pytest.param(head_of(target=f"{tenants_path()}?labelSelector={'a=' * 300_000}"), 414, id="a long selector"),
        pytest.param(head_of(target=f"{tenants_path()}?labelSelector={'a=,' * 10_000}"), 403, id="a shorter selector"),
        pytest.param(head_of(target=f"{tenants_path()}?fieldSelector={'a=%2C' * 5000}"), 403, id="a field selector"),
    ],
)
@least_wait_counts
def test_heads_without_credentials_are_cheap(replica: Replica, head: bytes | list[bytes], code: int) -> None:
    """Each is sent by four connections at a time, as long as the server receives it."""
    client, pieces = replica.anonymous_client(), [head] if isinstance(head, bytes) else head
    with measured_cost(replica) as cost, ThreadPoolExecutor(4) as pool:
        codes = set(pool.map(lambda _: send_and_read_status(client, *pieces), range(20)))
    assert codes == {code}
    assert_cheap(cost, COSTS["one connection"])


@least_wait_counts
def test_a_long_timeout_without_credentials_is_cheap(replica: Replica) -> None:
    with measured_cost(replica) as cost:
        client = replica.client()
        assert send_and_read_status(client, head_of(target="/apis?timeout=" + "1" * 20_000)) == 400
    assert_cheap(cost, COSTS["one connection"])


@least_wait_counts
def test_a_head_in_single_bytes_is_cheap(replica: Replica) -> None:
    head = head_of("A: " + "a" * 20_000)
    with measured_cost(replica) as cost:
        assert send_and_read_status(replica.anonymous_client(), *(bytes([byte]) for byte in head)) == 200
    assert_cheap(cost, COSTS["one connection"])


@pytest.mark.parametrize(("length", "code"), [(60_000, 200), (1_000_000, 200), (1_100_000, 431)])
def test_the_front_proxy_may_send_the_groups_of_its_users(kube: KubeCluster, length: int, code: int) -> None:
    """The same heads are too large for anybody else, also with the name of another proxy."""
    fields = ["X-Remote-User: u", "X-Remote-Group: system:masters", *["X-Remote-Group: " + "g" * 234] * (length // 250)]
    head = head_of(*fields, target=tenants_path())
    assert send_and_read_status(kube.front_proxy_client(), head) == code
    others = ((kube.front_proxy_client("impostor"), 401), (kube.anonymous_client(), 401), (kube.direct_client(), 200))
    for client, status in others:
        assert send_and_read_status(client, head) == (status if length < 65_000 else 431)


@pytest.mark.parametrize(
    ("endless", "code"),
    [
        pytest.param(b"A: " + b"a" * 16_000 + b"\r\n", 431, id="headers"),
        pytest.param(b"a" * 16_000, 431, id="a header"),
    ],
)
@least_wait_counts
def test_an_endless_head_ends(replica: Replica, endless: bytes, code: int) -> None:
    with measured_cost(replica) as cost:
        assert send_and_read_status(replica.anonymous_client(), head_of()[:-2], *[endless] * 10_000) == code
    assert_cheap(cost, COSTS["one connection"])


@pytest.mark.parametrize(
    "endless",
    [
        pytest.param(b"0\r\n" + b"A: b\r\n" * 2000, id="trailers"),
        pytest.param(b"1;" + b"a" * 16_000, id="a chunk extension"),
    ],
)
@least_wait_counts
def test_an_endless_framing_of_a_body_ends(replica: Replica, alice: TenantAdmin, endless: bytes) -> None:
    head = f"POST {alice.children} HTTP/1.1\r\nHost: h\r\nContent-Type: application/json\r\n".encode()
    start = head + b"Transfer-Encoding: chunked\r\n\r\n"
    with measured_cost(replica) as cost:
        assert send_and_read_status(replica.client(alice.user), start, *[endless] * 1000) == 400
    assert_cheap(cost, COSTS["one connection"])


# a thousand connections: these never get to the cluster, so that one is enough


async def send_all(connections: Sequence[Connection], data: bytes) -> None:
    """A connection that is closed meanwhile is no error."""

    async def send(connection: Connection) -> None:
        with contextlib.suppress(OSError):
            connection.writer.write(data)
            await connection.writer.drain()

    await in_parallel([partial(send, each) for each in connections])


async def until_answered(connections: Sequence[Connection]) -> Counter[bytes]:
    """The statuses of the first responses; connections that end without one are counted as b''."""

    async def status(connection: Connection) -> bytes:
        try:
            return (await connection.reader.readuntil(b"\r\n")).split()[1]
        except (OSError, asyncio.IncompleteReadError):
            return b""

    return Counter(await asyncio.gather(*map(status, connections)))


@least_wait_counts
async def test_a_thousand_silent_connections_are_cheap(embedded: EmbeddedCluster, replica: Replica) -> None:
    """Above a thousand the oldest are closed, and new clients are served."""
    pid, anonymous = replica.process.pid, replica.anonymous_client()
    before = open_descriptors(pid)
    with measured_cost(replica) as cost:
        async with ClientConnections(anonymous) as attackers:
            await attackers.open(1200, tls=False)
            await attackers.open(1200)
            assert open_descriptors(pid) - before <= 2100
            for _ in range(10):
                response = await asyncio.to_thread(anonymous.get, "/livez")
                assert response.status == 200
    assert_cheap(cost, COSTS["1,000 connections"])
    await asyncio.to_thread(wait_until, "no connection is left open", lambda: open_descriptors(pid) <= before + 5)


@least_wait_counts
async def test_a_thousand_unfinished_heads_are_cheap(embedded: EmbeddedCluster, replica: Replica) -> None:
    """Together they have the memory of one user."""
    anonymous = replica.anonymous_client()
    with measured_cost(replica) as cost:
        async with ClientConnections(anonymous) as attackers:
            connections = await attackers.open(900)
            await send_all(connections, head_of("A: " + "a" * 60_000)[:-1])
            for _ in range(10):
                response = await asyncio.to_thread(anonymous.get, "/livez")
                assert response.status == 200
            await send_all(connections, b"\n")
            statuses = await until_answered(connections)
    assert set(statuses) <= {b"200", b"429"}
    assert statuses[b"200"] > 100
    assert_cheap(cost, COSTS["1,000 unfinished heads"])


@least_wait_counts
async def test_a_thousand_pipelines_that_are_not_read_are_cheap(embedded: EmbeddedCluster, replica: Replica) -> None:
    """The next request of a connection is parsed after the response to the one before."""
    request = head_of(*[f"H{number}: {'a' * 20}" for number in range(100)])
    with measured_cost(replica) as cost:
        async with ClientConnections(replica.anonymous_client()) as attackers:
            connections = await attackers.open(900, reading=False)
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(3):
                    await send_all(connections, request * 200)
    assert_cheap(cost, COSTS["1,000 pipelines"])


# one user


@least_wait_counts
def test_many_distinct_selectors_are_cheap(replica: Replica, alice: TenantAdmin) -> None:
    """They are parts of the keys of cached decisions."""
    client, values = replica.client(alice.user), ",".join(f"{value:x}" for value in range(3500))

    def list_once(number: int) -> int:
        return client.get(alice.children, query={"labelSelector": f"a!={number},word in ({values})"}).status

    with measured_cost(replica) as cost, ThreadPoolExecutor(4) as pool:
        codes = Counter(pool.map(list_once, range(200)))
    assert set(codes) == {200}
    assert_cheap(cost, COSTS["selectors"])


@pytest.mark.parametrize(
    ("selector", "accepted"),
    [
        pytest.param({"labelSelector": ",".join(f"k{number}!=x" for number in range(100))}, True, id="100 terms"),
        pytest.param({"labelSelector": ",".join(f"k{number}!=x" for number in range(101))}, False, id="101 terms"),
        pytest.param({"labelSelector": f"k in ({'a,' * 8000}a)"}, True, id="8,000 values"),
        pytest.param({"labelSelector": f"k in ({','.join(['a' * 60] * 280)})"}, False, id="a long selector"),
        pytest.param({"labelSelector": f"k>{'1' * 5000}"}, False, id="5,000 digits"),
        pytest.param({"fieldSelector": ",".join(["metadata.name!=a"] * 101)}, False, id="101 fields"),
    ],
)
def test_selectors_are_limited(replica: Replica, alice: TenantAdmin, selector: dict[str, str], accepted: bool) -> None:
    response = replica.client(alice.user).get(alice.children, query=selector)
    assert response.expect(200 if accepted else 400)


@least_wait_counts
async def test_watches_that_are_not_read_are_cheap(
    embedded: EmbeddedCluster, replica: Replica, alice: TenantAdmin, tenants: Tenants
) -> None:
    """As many as a user can have: a third gets a large object first, a third its row in a table, and a third later its
    change."""
    name = tenants.create(alice.namespace, annotations={"text": "x" * 250_000})["metadata"]["name"]
    client, path = replica.client(alice.user), tenants_path(alice.namespace, name)
    version = client.get(alice.children).expect(200)["metadata"]["resourceVersion"]
    table = "Accept: application/json;as=Table;v=v1;g=meta.k8s.io"
    starts = [
        head_of(target=f"{alice.children}?watch=1"),
        head_of(table, target=f"{alice.children}?watch=1"),
        head_of(target=f"{alice.children}?watch=1&resourceVersion={version}"),
    ]
    async with ClientConnections(client) as attackers:
        # handshakes have a test of their own
        connections = await attackers.open(1200, reading=False)
        with measured_cost(replica) as cost:
            for third, start in enumerate(starts):
                await send_all(connections[third::3], start)
            await asyncio.to_thread(wait_until, "all are open", lambda: open_watches(replica) >= 1200)
            change, kind = {"metadata": {"annotations": {"text": "y" * 250_000}}}, "application/merge-patch+json"
            changed = await asyncio.to_thread(lambda: client.request("PATCH", path, change, content_type=kind))
            assert changed.status == 200
            later = await asyncio.to_thread(lambda: client.request("PATCH", path, {}, content_type=kind))
            assert later.status == 200
    assert_cheap(cost, COSTS["1,200 watches"])


@pytest.mark.parametrize(
    "selector",
    [
        pytest.param("word notin ({values})", id="thousands of values"),
        pytest.param(",".join(f"!k{number}-{{number}}" for number in range(100)), id="a hundred requirements"),
    ],
)
@least_wait_counts
async def test_watches_with_long_selectors_are_cheap(
    embedded: EmbeddedCluster, replica: Replica, alice: TenantAdmin, selector: str
) -> None:
    """Parsed, a selector takes up to a hundred times the memory of its text, for as long as the watch lasts."""
    values = ",".join(f"{value:x}" for value in range(3500))
    async with ClientConnections(replica.client(alice.user)) as attackers:
        connections = await attackers.open(900)
        with measured_cost(replica) as cost:
            for number, connection in enumerate(connections):
                text = selector.format(values=f"{values},x{number}", number=number)
                target = f"{alice.children}?watch=1&labelSelector={quote(text, safe='()!,')}"
                await send_all([connection], head_of(target=target))
            statuses = await until_answered(connections)
    assert set(statuses) == {b"200", b"429"}
    assert_cheap(cost, COSTS["watches with long selectors"])


def open_watches(replica: Replica) -> int:
    lines = replica.client().get("/metrics").content.decode().splitlines()
    [line] = [each for each in lines if each.startswith("apiserver_registered_watchers") and '"tenants"' in each]
    return int(float(line.rpartition(" ")[2]))


@least_wait_counts
async def test_stalled_bodies_of_one_user_are_cheap(replica: Replica, alice: TenantAdmin, bob: TenantAdmin) -> None:
    """150 bodies of almost 3 MiB: the user gets 429 with Retry-After, and others can still write."""
    attacker, victim = replica.client(alice.user), replica.client(bob.user)
    length = 3 * MIB - 1000
    head = f"POST {alice.children}?timeout=8s HTTP/1.1\r\nHost: h\r\nContent-Type: application/json\r\n"
    start = f"{head}Content-Length: {length}\r\n\r\n".encode()
    with measured_cost(replica) as cost:
        async with ClientConnections(attacker) as attackers:
            connections = await attackers.open(150)
            # read meanwhile: a connection may be reset after its response
            answers = asyncio.create_task(until_answered(connections))
            await send_all(connections, start + b" " * (length - 1))
            change = {"spec": {"etcd": True}}
            kind = "application/merge-patch+json"
            written = await asyncio.to_thread(
                lambda: victim.request("PATCH", bob.child_path, change, content_type=kind)
            )
            assert written.status == 200
            statuses = await answers
    assert set(statuses) == {b"429", b"504"}
    assert_cheap(cost, COSTS["bodies"])


@pytest.mark.parametrize(
    "body",
    [
        pytest.param(json.dumps({"spec": {"a": [{}] * 770_000}}).encode(), id="objects"),
        pytest.param(b'{"spec":{"a":[' + b"[],[[]],[[[]]]," * 200_000 + b"[]]}}", id="lists"),
        pytest.param(b"spec:\n  a:\n" + b"  - b\n" * 500_000, id="YAML"),
    ],
)
@least_wait_counts
def test_bodies_of_small_values_are_cheap(replica: Replica, alice: TenantAdmin, body: bytes) -> None:
    """They are rejected before the values are created."""
    client = replica.client(alice.user)
    kind = "application/json" if body.startswith(b"{") else "application/yaml"

    def post(_: int) -> int:
        return client.request("POST", alice.children, body, content_type=kind).status

    with measured_cost(replica) as cost, ThreadPoolExecutor(8) as pool:
        codes = Counter(pool.map(post, range(16)))
    assert set(codes) <= {400, 413, 429}
    assert_cheap(cost, COSTS["values"])


LONG_KEY = b"a" * 1_400_000


@pytest.mark.parametrize(
    "body",
    [
        pytest.param(b'{"%s":{%s}}' % (LONG_KEY, b",".join([b'"b":1'] * 2000)), id="JSON with duplicates"),
        pytest.param(b"? &a %s\n: 1\n" % LONG_KEY + b"? *a\n: 1\n" * 200, id="YAML with duplicates"),
        pytest.param(
            b'{"metadata":{"labels":{"%s":{%s}}}}' % (LONG_KEY, b",".join(b'"b%d":1' % each for each in range(2000))),
            id="unknown fields",
        ),
    ],
)
@least_wait_counts
def test_errors_in_many_fields_under_a_long_key_are_cheap(replica: Replica, alice: TenantAdmin, body: bytes) -> None:
    """The path of each field quotes the key."""
    client = replica.client(alice.user)
    kind = "application/json" if body.startswith(b"{") else "application/yaml"
    with measured_cost(replica) as cost:
        path = f"{alice.children}?fieldValidation=Strict"
        codes = {client.request("POST", path, body, content_type=kind).status for _ in range(4)}
    assert codes <= {400, 413}
    assert_cheap(cost, COSTS["long keys"])


LONG_TEXT = b"k" * 1_000_000
BOMBS = {
    "aliases of a text": (
        "POST",
        "application/yaml",
        b"metadata:\n  name: CHILD\n  annotations:\n    a: &a %s\n" % LONG_TEXT
        + b"".join(b"    a%d: *a\n" % number for number in range(1500)),
    ),
    "aliases of a key": (
        "POST",
        "application/yaml",
        b"a: &a {? %s : 1}\nspec:\n" % LONG_TEXT + b"".join(b"  a%d: *a\n" % number for number in range(1500)),
    ),
    "copies of a key": (
        "PATCH",
        "application/json-patch+json",
        json.dumps(
            [
                {"op": "add", "path": "/spec/x", "value": {LONG_TEXT.decode(): 1}},
                *({"op": "copy", "from": "/spec/x", "path": f"/spec/y{number}"} for number in range(1500)),
            ]
        ).encode(),
    ),
    "unknown fields of an item with a long key": (
        "PATCH",
        "application/apply-patch+yaml",
        b'{"apiVersion":"apps.cozystack.io/v1alpha1","kind":"Tenant","metadata":{"ownerReferences":[{"uid":"%s",%s}]}}'
        % (LONG_TEXT, b",".join(b'"f%d":1' % number for number in range(600))),
    ),
    "numbers of many digits in managedFields": (
        "POST",
        "application/json",
        b'{"metadata":{"name":"CHILD","managedFields":[{"manager":"m","operation":"Update","apiVersion":'
        b'"apps.cozystack.io/v1alpha1","time":"2026-01-01T00:00:00Z","fieldsType":"FieldsV1","fieldsV1":'
        b'{"f:spec":{"f:host":{"v:[%s]":{}}}}}]}}' % b",".join([b"1e308"] * 400_000),
    ),
    "a name without printable characters": (
        "POST",
        "application/json",
        b'{"metadata":{"name":"%s"}}' % (b"\x7f" * 2_900_000),
    ),
}


@pytest.mark.parametrize("bomb", list(BOMBS))
@least_wait_counts
def test_bodies_that_say_more_than_they_have_are_cheap(replica: Replica, alice: TenantAdmin, bomb: str) -> None:
    """One text would be written, or quoted, many times."""
    method, kind, body = BOMBS[bomb]
    client, body = replica.client(alice.user), body.replace(b"CHILD", alice.child.encode())
    path = alice.children if method == "POST" else f"{alice.child_path}?fieldManager=attacker"
    with measured_cost(replica) as cost:
        codes = {client.request(method, path, body, content_type=kind).status for _ in range(2)}
    assert codes <= {400, 409, 413, 422, 429}
    assert_cheap(cost, COSTS["bombs"])


@pytest.mark.parametrize(
    ("body", "code"),
    [
        pytest.param("\n".join(["spec:", *(" " * depth + "a:" for depth in range(2, 2300))]).encode(), 400, id="YAML"),
        pytest.param(b'{"spec":{"a":' + b"9" * 3_000_000 + b"}}", 400, id="JSON"),
        pytest.param(b'{"metadata":{"name":"CHILD"},"a":"' + b"9" * 3_000_000 + b'"}', 409, id="of the cluster"),
    ],
)
@least_wait_counts
def test_bodies_that_are_refused_one_after_the_other_are_cheap(
    replica: Replica, alice: TenantAdmin, body: bytes, code: int
) -> None:
    """They are freed at once, and not by the next full garbage collection, which can be minutes away."""
    client = replica.client(alice.user)
    kind = "application/json" if body.startswith(b"{") else "application/yaml"
    body = body.replace(b"CHILD", alice.child.encode())
    with measured_cost(replica) as cost:
        codes = {client.request("POST", alice.children, body, content_type=kind).status for _ in range(100)}
    assert codes == {code}
    assert_cheap(cost, COSTS["refused bodies"])


@pytest.mark.parametrize("form", ["application/json;pretty=1", "application/yaml"])
@least_wait_counts
async def test_indented_objects_that_are_not_read_are_cheap(replica: Replica, alice: TenantAdmin, form: str) -> None:
    """A list of 18,000 numbers at 115 levels has 37 kB, and 4.4 MB with its indentation."""
    client = replica.client(alice.user)
    deep: Any = [1] * 18_000
    for _ in range(115):
        deep = [deep]
    change = {"spec": {"deep": deep}}
    client.request("PATCH", alice.child_path, change, content_type="application/merge-patch+json").expect(200)
    with measured_cost(replica) as cost:
        async with ClientConnections(client) as attackers:
            connections = await attackers.open(60, reading=False)
            targets = (alice.child_path, alice.children)
            for number, connection in enumerate(connections):
                await send_all([connection], head_of(f"Accept: {form}", target=targets[number % 2]))
            # those that wait for the user's share get no answer before the others are read
            answers = [asyncio.create_task(each.reader.readline()) for each in connections]
            answered, waiting = await asyncio.wait(answers, timeout=10)
            statuses = Counter(each.result().split()[1] for each in answered)
            for each in waiting:
                each.cancel()
    assert set(statuses) <= {b"200", b"429"}
    assert_cheap(cost, COSTS["unread objects"])


@pytest.mark.parametrize(
    "start",
    [
        pytest.param(b"", id="ASCII"),
        pytest.param("\U0001f600".encode(), id="a character of four bytes"),
        pytest.param(rb"\ud83d\ude00", id="its escape sequence"),
    ],
)
@least_wait_counts
async def test_errors_that_are_not_read_are_cheap(replica: Replica, alice: TenantAdmin, start: bytes) -> None:
    """40 creates of one user, whose responses quote a name of 2.8 MB twice. A character of four bytes makes Python use
    four bytes for each of the others."""
    client = replica.client(alice.user)
    body = b'{"metadata":{"name":"' + start + b"a." * 1_400_000 + b'"}}'
    head = f"POST {alice.children} HTTP/1.1\r\nHost: h\r\nContent-Type: application/json\r\n"
    with measured_cost(replica) as cost:
        async with ClientConnections(client) as attackers:
            connections = await attackers.open(40, reading=False)
            await send_all(connections, f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body)
            statuses = Counter([(await each.reader.readline()).split()[1] for each in connections])
    assert set(statuses) == {b"422", b"429"}
    assert_cheap(cost, COSTS["unread errors"])
