"""ATTACK-13: one tenant sends expensive requests; other tenants must not notice.

The limit of 64 listeners is tested in tests/e2e/gateways/test_rules.py, the limits of request bodies in
tests/e2e/api/test_bad_input.py.
"""

from __future__ import annotations

import itertools
import json
import socket
import ssl
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from urllib.parse import urlencode, urlsplit

import pytest

from tests.attacks.support.expensive_requests import ATTACKS, MIB, Attack, oversized_objects
from tests.attacks.support.load_probe import (
    MAX_ATTACK_SECONDS,
    AttackImpact,
    Bystander,
    measure_impact,
    resident_memory_bytes,
)
from tests.attacks.support.proxied_replica import Replica, started_replica
from tests.attacks.support.two_tenants import TenantAdmin
from tests.e2e.support.applying import MERGE
from tests.e2e.support.clusters.cluster import PATIENCE, ROOT, E2eCluster, tenants_path
from tests.e2e.support.clusters.processes import wait_until
from tests.e2e.support.gateways import DNS01, HOST_LABEL, LABEL, Gateways
from tests.e2e.support.http.https_client import Client, Response
from tests.e2e.support.http.pace import Pace
from tests.e2e.support.http.raw_tls import RawTls
from tests.e2e.support.peer_lessons import helmrelease_path
from tests.e2e.support.tenants import Tenants, manifest

MAX_GROWTH_BYTES = 200 * MIB
APEX = "foo.example.com"


@pytest.fixture
def bystander(bob: TenantAdmin) -> Iterator[Bystander]:
    created = Bystander(bob.client, tenants_path())
    yield created
    created.close()


def change_child(tenants: Tenants, party: TenantAdmin) -> None:
    changed = not tenants.get(party.child, party.namespace)["spec"]["etcd"]
    tenants.patch(party.child, {"spec": {"etcd": changed}}, party.namespace)


def max_growth_bytes(found: AttackImpact) -> int:
    """Of the attempts, which only a busy machine needs, the first four may each let the memory grow."""
    return MAX_GROWTH_BYTES * min(found.attempts, 4)


@pytest.mark.parametrize(("attack", "expected"), ATTACKS)
@pytest.mark.lasting("alice", "bob")
def test_an_expensive_request_does_not_slow_down_other_users(
    cluster: E2eCluster, alice: TenantAdmin, bystander: Bystander, attack: Attack, expected: set[int]
) -> None:
    """The request succeeds or fails with a 4xx; bob's p99 stays acceptable and the server's memory bounded."""
    before, pace = resident_memory_bytes(cluster), Pace(cluster.direct_client())
    found = measure_impact(bystander, lambda: attack(alice).status, is_short=partial(pace.allows, MAX_ATTACK_SECONDS))
    assert found.codes
    assert set(found.codes) <= expected, found
    assert pace.allows(MAX_ATTACK_SECONDS, found.attack_seconds), found
    assert found.is_acceptable, found
    assert resident_memory_bytes(cluster) - before < max_growth_bytes(found)


@pytest.mark.parametrize("object_id", [each for each, _ in oversized_objects()])
@pytest.mark.lasting("alice", "bob")
def test_an_oversized_object_does_not_slow_down_other_users(
    cluster: E2eCluster, alice: TenantAdmin, bob: TenantAdmin, tenants: Tenants, bystander: Bystander, object_id: str
) -> None:
    """An accepted object and a rejected one affect neither bob's reads and writes nor the bound of the server's
    memory."""
    before, fields = resident_memory_bytes(cluster), dict(oversized_objects())[object_id]
    pace = Pace(cluster.direct_client())

    # encoded once: the attackers would otherwise delay the bystander in this process instead of at the server
    body = json.dumps(manifest(tenants.new_name(alice.namespace), alice.namespace, **fields))

    def send() -> int:
        query = {"dryRun": "All", "fieldValidation": "Strict"}
        return alice.client.request("POST", alice.children, body, query=query).status

    found = measure_impact(bystander, send, is_short=partial(pace.allows, MAX_ATTACK_SECONDS))
    assert all(code == 201 or 400 <= code < 500 for code in found.codes), found
    assert pace.allows(MAX_ATTACK_SECONDS, found.attack_seconds), found
    assert found.is_acceptable, found
    change_child(tenants, bob)
    assert resident_memory_bytes(cluster) - before < max_growth_bytes(found)


@pytest.mark.lasting("bob")
def test_the_depth_of_nested_tenants_is_limited(alice: TenantAdmin, bob: TenantAdmin, tenants: Tenants) -> None:
    """A hundred levels do not fit in the name of a namespace: the first level that does not fit is rejected."""
    client, namespace, depth = tenants.client, alice.namespace, 0
    while depth < 100:
        answer = client.request("POST", tenants_path(namespace), manifest("a", namespace))
        if answer.status != 201:
            break
        namespace, depth = f"{namespace}-a", depth + 1
        tenants.wait_for_namespace(namespace)
    assert answer.status == 422, answer.body
    assert "must have no more than 63" in answer.json()["message"]
    assert depth < 32
    change_child(tenants, bob)


MAX_IN_FLIGHT = 12


@pytest.fixture(scope="module")
def small_replica(cluster: E2eCluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Replica]:
    """A second server with few places for requests."""
    directory = tmp_path_factory.mktemp("small-replica")
    with started_replica(cluster, directory, f"--max-requests-inflight={MAX_IN_FLIGHT}") as running:
        yield running


@pytest.mark.lasting("alice", "bob")
def test_one_user_cannot_take_all_watches(small_replica: Replica, alice: TenantAdmin, bob: TenantAdmin) -> None:
    """kcp#3472: a user with too many watches gets a 429, while other users can still watch."""
    attacker, victim = small_replica.client(alice.user), small_replica.client(bob.user)
    with ExitStack() as stack:
        wait_until("the replica has synced", lambda: len(attacker.get(tenants_path()).expect(200)["items"]) == 1)
        version = attacker.get(tenants_path()).expect(200)["metadata"]["resourceVersion"]
        target = f"{tenants_path()}?{urlencode({'watch': 'true', 'resourceVersion': version})}"
        heads = []
        for _ in range(4 * MAX_IN_FLIGHT + 20):
            connection = stack.enter_context(RawTls(attacker))
            connection.send_request_head("GET", target)
            heads.append(connection.read_until(b"\r\n\r\n").split(b" ", 2)[1])
        assert heads == [b"200"] * (4 * MAX_IN_FLIGHT) + [b"429"] * 20
        watched = stack.enter_context(RawTls(victim))
        watched.send_request_head("GET", target)
        assert watched.read_until(b"\r\n\r\n").startswith(b"HTTP/1.1 200")
        for client in (attacker, victim):
            client.get(tenants_path()).expect(200)


@pytest.mark.lasting("alice", "bob")
def test_one_user_cannot_take_all_requests_in_flight(
    small_replica: Replica, alice: TenantAdmin, bob: TenantAdmin
) -> None:
    """Writes whose bodies never arrive occupy their places until the deadline, but at most the share of one user."""
    share = MAX_IN_FLIGHT * 3 // 4
    attacker, victim = small_replica.client(alice.user), small_replica.client(bob.user)
    with ExitStack() as stack:
        wait_until("the replica has synced", lambda: len(victim.get(tenants_path()).expect(200)["items"]) == 1)
        fields = {"Content-Type": "application/json", "Content-Length": "2", "Expect": "100-continue"}
        for _ in range(share):
            connection = stack.enter_context(RawTls(attacker))
            connection.send_request_head("POST", alice.children, fields)
            assert connection.read_until(b"\r\n\r\n").startswith(b"HTTP/1.1 100 ")
        rejected = attacker.get(tenants_path())
        assert rejected.expect(429)["reason"] == "TooManyRequests"
        assert int(rejected.headers["Retry-After"]) >= 1
        for _ in range(20):
            victim.get(tenants_path()).expect(200)


def open_watch_without_reading(client: Client, target: str) -> ssl.SSLSocket:
    """Opens a watch with a small receive buffer that is never read."""
    parts = urlsplit(client.url)
    plain = socket.socket()
    plain.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    plain.settimeout(PATIENCE)
    plain.connect((parts.hostname, parts.port))
    tls = client.tls.wrap_socket(plain, server_hostname=parts.hostname)
    tls.sendall(f"GET {target} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
    assert tls.recv(12) == b"HTTP/1.1 200"
    return tls


def test_a_watch_that_never_reads_is_closed(
    cluster: E2eCluster, alice: TenantAdmin, tenants: Tenants, tmp_path: Path
) -> None:
    """Meanwhile a watch of the same user that reads receives every event."""
    with started_replica(cluster, tmp_path, "--watch-history-size=1Mi") as replica:
        client = replica.client(alice.user)
        wait_until("the replica has synced", lambda: len(client.get(tenants_path()).expect(200)["items"]) == 1)
        version = client.get(tenants_path()).expect(200)["metadata"]["resourceVersion"]
        query = {"watch": "true", "resourceVersion": version}
        stuck = [open_watch_without_reading(client, f"{tenants_path()}?{urlencode(query)}") for _ in range(5)]
        with client.stream(tenants_path(), query=query) as frames:
            for number in range(63):
                text = f"{number}-{'x' * 240_000}"
                tenants.patch(alice.child, {"metadata": {"annotations": {"big": text}}}, alice.namespace)
                received = ""
                while received != text:
                    frame = next(frames)
                    assert frame["type"] == "MODIFIED", frame["type"]
                    received = frame["object"]["metadata"]["annotations"].get("big", "")
        for tls in stuck:
            assert _was_closed(tls)
        client.get(tenants_path()).expect(200)


def _nested(levels: int) -> str:
    return '{"a":' * levels + "1" + "}" * levels


# kube-apiserver lists the number with all its digits
UNUSUAL_VALUES = {"number": "100000000000000000000"} | {
    f"{levels} levels": _nested(levels) for levels in (200, 300, 1000, 1100, 3000)
}


def _patch_release(client: Client, name: str, values: bytes) -> Response:
    """kube-apiserver itself needs seconds for thousands of levels, and on a busy machine more than the 34 s after
    which it gives up with a 504; the patch is then sent again."""
    for _ in range(3):
        response = client.request("PATCH", helmrelease_path(name), values, content_type=MERGE)
        if response.status != 504:
            return response
    return response


def test_unusual_values_of_one_helmrelease_do_not_break_other_tenants(
    cluster: E2eCluster, tenants: Tenants, tmp_path: Path
) -> None:
    """A HelmRelease may have any values that the cluster accepts. They break neither a running server nor one that
    starts later, and its Tenant can still be written without losing them."""
    client, stored = cluster.client(), dict[str, str]()
    for description, value in UNUSUAL_VALUES.items():
        name = tenants.create()["metadata"]["name"]
        values = f'{{"spec":{{"values":{{"odd":{value}}}}}}}'.encode()
        answer = _patch_release(client, name, values)
        if cluster.kind == "embedded" and "levels" in description:
            # the embedded cluster rejects such an object
            assert answer.status == 400, description
        else:
            assert answer.status == 200, description
            stored[name] = value
    assert stored
    tenants.wait_until_settled(tenants.create()["metadata"]["name"])
    with started_replica(cluster, tmp_path) as replica:
        for name, value in stored.items():
            _check_write_arrives(replica.client(), client, tenants_path(ROOT, name))
            release = client.get(helmrelease_path(name)).content.decode()
            assert value in release.replace("1e+20", UNUSUAL_VALUES["number"])
    for name in stored:
        _patch_release(client, name, b'{"spec":{"values":{"odd":null}}}').expect(200)


@pytest.mark.lasting("bob")
def test_changes_of_a_helmrelease_full_of_brackets_do_not_slow_down_other_users(
    cluster: E2eCluster, tenants: Tenants, bystander: Bystander
) -> None:
    """Each change of the HelmRelease, however small, makes our server read all of it: 60,000 brackets, below 300
    levels. A kube-apiserver itself needs so long for more of them that it may give up with a 504."""
    client, name = cluster.client(), tenants.create()["metadata"]["name"]
    brackets = "[" * 300 + "[]," * 30_000 + "1" + "]" * 300
    whole = f'{{"spec":{{"values":{{"odd":{brackets}}}}}}}'.encode()
    changes = itertools.count()

    def change() -> int:
        if cluster.kind == "embedded":
            # which rejects the object
            return client.request("PATCH", helmrelease_path(name), whole, content_type=MERGE).status
        return _patch_release(client, name, b'{"spec":{"values":{"turn":%d}}}' % next(changes)).status

    rejected = {400, 413} if cluster.kind == "embedded" else set()
    assert _patch_release(client, name, whole).status in (rejected or {200})
    found = measure_impact(bystander, change)
    assert set(found.codes) <= (rejected or {200, 504}), found
    assert found.is_acceptable, found
    tenants.wait_until_settled(name)


def _check_write_arrives(one: Client, other: Client, path: str) -> None:
    """Writes a Tenant through one server and waits until the other one returns it."""
    patched = one.request("PATCH", path, {"spec": {"etcd": True}}, content_type=MERGE).expect(200)
    version = int(patched["metadata"]["resourceVersion"])
    wait_until("the other server returns the write", lambda: _version(other, path) >= version, seconds=PATIENCE)
    assert other.get(path).expect(200)["spec"]["etcd"] is True


def _version(client: Client, path: str) -> int:
    return int(client.get(path).expect(200)["metadata"]["resourceVersion"])


def _was_closed(tls: ssl.SSLSocket) -> bool:
    """True if the connection ends long before all 15 MB of events have arrived."""
    received, deadline = 0, time.monotonic() + PATIENCE
    try:
        while time.monotonic() < deadline:
            data = tls.recv(65536)
            if not data:
                break
            received += len(data)
    except OSError:
        pass
    finally:
        tls.close()
    return received < 10 * MIB and time.monotonic() < deadline


def _create_routes(gateways: Gateways, owner: str, guest: str, number: int) -> None:
    def create(first: int) -> None:
        hostnames = [f"h{each}.{guest}.{APEX}" for each in range(first, first + 16)]
        gateways.create_route(guest, f"r{first}", *hostnames, to=owner)

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(create, range(0, number, 16)))


def test_five_thousand_hostnames_leave_room_for_another_namespace(gateways: Gateways) -> None:
    """cozystack#3787: namespaces take turns, so that one with thousands of hostnames does not keep another from its
    first. A condition names the hostnames that do not fit, and the Gateway stays valid."""
    foo = gateways.create_owner()
    greedy, modest = (gateways.create_namespace(name, labels={LABEL: foo}) for name in ("a-greedy", "z-modest"))
    _create_routes(gateways, foo, greedy, 5000)
    gateways.create_route(modest, "only", f"only.{APEX}", to=foo)
    gateways.create_tenantgateway(foo, APEX)
    gateways.wait_until(
        "the only hostname of its namespace has a listener", lambda: f"only.{APEX}" in gateways.listener_hostnames(foo)
    )
    assert len(gateways.get("gateways", foo)["spec"]["listeners"]) <= 64
    gateways.wait_until("a condition names the others", lambda: "ListenersTruncated" in gateways.conditions(foo))
    # the length that a condition's message may have
    assert len(gateways.conditions(foo)["ListenersTruncated"]["message"]) <= 32 * 1024
    gateways.wait_until("each hostname has a certificate", lambda: len(gateways.names("certificates", foo)) == 63)


def test_an_invalid_hostname_does_not_prevent_other_listeners(gateways: Gateways) -> None:
    """GW-18: an invalid hostname is reported, and the valid ones get their listeners."""
    foo = gateways.create_owner()
    bad = ["Bad_Name", "x" * 70, "-a", "a..b", "ok"]
    gateways.create_tenantgateway(foo, APEX, tlsPassthroughServices=bad)
    gateways.create_route(foo, "good", f"{'g' * 63}.{APEX}", f"good.{APEX}", to=foo, port=443)
    gateways.wait_until(
        "the valid hostnames have listeners",
        lambda: {f"ok.{APEX}", f"good.{APEX}"} <= set(gateways.listener_hostnames(foo)),
    )
    gateways.wait_until("the others are errors", lambda: gateways.ready_reason(foo) == "ReconcileError")
    message = gateways.conditions(foo)["Ready"]["message"]
    assert all(f'"{name.lower()}"' in message for name in bad if name != "ok")


def test_a_certificate_has_at_most_one_hundred_names(gateways: Gateways, cluster: E2eCluster) -> None:
    """Certificate authorities accept at most a hundred names. A condition names the hostnames that are left out."""
    foo = gateways.create_owner()
    gateways.create_tenantgateway(foo, APEX, **DNS01)

    def create(number: int) -> None:
        gateways.create_namespace("heir", labels={LABEL: foo, HOST_LABEL: f"heir{number:03}.{APEX}"})

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(create, range(110)))
    certificate = f"/apis/cert-manager.io/v1/namespaces/{foo}/certificates/cozystack-gateway-tls"

    def names() -> list[str]:
        answer = cluster.client().get(certificate)
        return list(answer.json()["spec"]["dnsNames"]) if answer.status == 200 else []

    gateways.wait_until("the certificate has a hundred names", lambda: len(names()) == 100)
    assert names()[:2] == [APEX, f"*.{APEX}"]
    gateways.wait_until(
        "a condition names the others",
        lambda: "HostnamesLeftOut" in gateways.conditions(foo) or _certificate_is_full(gateways, foo),
    )
    assert len(gateways.get("gateways", foo)["spec"]["listeners"]) <= 64


def _certificate_is_full(gateways: Gateways, foo: str) -> bool:
    return any("Certificate" in type_ for type_ in gateways.conditions(foo))


@pytest.mark.lasting("bob")
def test_a_flood_of_writes_does_not_delay_other_users(
    cluster: E2eCluster, alice: TenantAdmin, bob: TenantAdmin, tenants: Tenants, bystander: Bystander
) -> None:
    """While alice writes as fast as possible, bob's reads and writes stay fast."""
    name = tenants.create(alice.namespace)["metadata"]["name"]
    path = tenants_path(alice.namespace, name)

    def flood() -> int:
        body = {"metadata": {"annotations": {"x": str(time.monotonic())}}}
        return alice.client.request("PATCH", path, body, content_type=MERGE).status

    pace = Pace(cluster.direct_client())
    found = measure_impact(bystander, flood)
    assert set(found.codes) <= {200, 409, 429}, found
    assert found.is_acceptable, found
    started = time.monotonic()
    change_child(tenants, bob)
    elapsed = time.monotonic() - started
    assert elapsed < pace.limit(2)
    assert tenants.exists("root", ROOT)
