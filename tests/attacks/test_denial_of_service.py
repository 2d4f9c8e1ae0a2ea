"""ATTACK-13: one tenant that asks for too much, and what another one notices of it.

What becomes of the 65th listener is in tests/e2e/gateways/test_rules.py, what no body may hold in
tests/e2e/api/test_bad_input.py.
"""

from __future__ import annotations

import gzip
import json
import socket
import ssl
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from typing import Any
from urllib.parse import urlencode, urlsplit

import pytest

from tests.attacks.load_probe import MAX_ATTACK_SECONDS, Bystander, measure_impact, resident_memory_bytes
from tests.attacks.proxied_replica import started_replica
from tests.attacks.two_tenants import TenantAdmin
from tests.e2e.support.applying import MERGE
from tests.e2e.support.clusters import ROOT, E2eCluster, tenants_path
from tests.e2e.support.gateways import DNS01, HOST_LABEL, LABEL, Gateways
from tests.e2e.support.https_client import Client, Response
from tests.e2e.support.peer_lessons import JSON_PATCH, helmrelease_path
from tests.e2e.support.processes import wait_until
from tests.e2e.support.raw_tls import RawTls
from tests.e2e.support.tenants import Tenants, manifest

MIB = 1024 * 1024
MAX_GROWTH_BYTES = 200 * MIB
APEX = "foo.example.com"
Attack = Callable[[TenantAdmin], Response]


def _label_values(number: int) -> str:
    return ",".join(f"a{each}" for each in range(number))


def _get(query: Mapping[str, str], headers: Mapping[str, str] | None = None) -> Attack:
    return lambda alice: alice.client.get(tenants_path(), query=query, headers=headers)


def _post(body: bytes, kind: str = "application/json", headers: Mapping[str, str] | None = None) -> Attack:
    return lambda alice: alice.client.request("POST", alice.children, body, content_type=kind, headers=headers)


def _patch(body: Any, kind: str = MERGE) -> Attack:
    return lambda alice: alice.client.request("PATCH", alice.child_path, body, content_type=kind)


def _tenant(**spec: Any) -> bytes:
    return json.dumps(manifest("bomb", spec=spec) | {"metadata": {"name": "bomb"}}).encode()


_DEEP = b'{"spec":' + b'{"a":' * 100_000 + b"1" + b"}" * 100_001
_YAML = "\n".join(["a0: &a0 [x, x, x]", *(f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]" for n in range(1, 30))])
_ZEROS = gzip.compress(bytes(64 * MIB), 9)
_ENCODINGS = {"Accept-Encoding": ", ".join(f"gzip;q=0.{n:03}" for n in range(3000))}
_ACCEPTS = {"Accept": ", ".join(f"application/json;as=x{n};q=0.{n:03}" for n in range(1000))}
_OPERATIONS = [{"op": "copy", "from": "/spec", "path": "/spec/schedulingClass"}] * 12_000
_GROWING = [{"op": "copy", "from": "/spec", "path": f"/spec/x{n}"} for n in range(60)]
_REPEATING = [
    {"op": "add", "path": "/spec/schedulingClass", "value": "x" * MIB},
    *({"op": "copy", "from": "/spec/schedulingClass", "path": f"/spec/resourceQuotas/q{n}"} for n in range(5000)),
]
ATTACKS = [
    pytest.param(_get({"labelSelector": f"word in ({_label_values(10_000)})"}), {200}, id="10,000 values"),
    pytest.param(
        _get({"labelSelector": f"word notin ({_label_values(10_000)})"}), {200}, id="not one of 10,000 values"
    ),
    pytest.param(_get({"labelSelector": ",".join(f"k{n}!=x" for n in range(4000))}), {200}, id="4,000 terms"),
    pytest.param(_get({"labelSelector": "(" * 20_000}), {400}, id="open brackets"),
    pytest.param(_get({"labelSelector": f"word=({'a+' * 500})+$"}), {400}, id="a regex as a value"),
    pytest.param(_get({"labelSelector": "word=~.*"}), {400}, id="a regex as an operator"),
    pytest.param(_get({"fieldSelector": f"metadata.name={'(a+)+' * 500}$"}), {200}, id="a regex in a field"),
    pytest.param(_get({"fieldSelector": ",".join(["metadata.name!=a"] * 3000)}), {200}, id="3,000 fields"),
    pytest.param(_get({"fieldSelector": "\\" * 20_001}), {400}, id="backslashes"),
    pytest.param(_get({"limit": "1"}), {200}, id="pages of one"),
    pytest.param(_get({"continue": "A" * 50_000, "limit": "1"}), {400}, id="a long token"),
    pytest.param(_get({}, _ENCODINGS), {200}, id="3,000 encodings"),
    pytest.param(_get({}, _ACCEPTS), {200, 406}, id="1,000 media types"),
    pytest.param(_post(_DEEP), {400}, id="deep JSON"),
    pytest.param(_post(b"[" * MIB), {400}, id="open lists"),
    pytest.param(_post(_YAML.encode(), "application/yaml"), {400, 413}, id="YAML that blows up"),
    pytest.param(_post(_ZEROS, headers={"Content-Encoding": "gzip"}), {400, 415}, id="gzip that blows up"),
    pytest.param(_post(b'{"kind":"Tenant","kind":"Tenant"' + b',"a":1' * 200_000 + b"}"), {400, 422}, id="one key"),
    pytest.param(_post(_tenant(host="a" * MIB)), {403, 422}, id="a host of 1 MiB"),
    pytest.param(_post(b'{"spec":{"etcd":' + b"9" * MIB + b"}}"), {400, 422}, id="a long number"),
    pytest.param(_post(b'{"metadata":{"name":"x","annotations":{"a":"' + b"x" * 300_000 + b'"}}}'), {422}, id="300 kB"),
    pytest.param(_post(b" " * (3 * MIB + 1)), {413}, id="over 3 MiB"),
    pytest.param(_patch(_OPERATIONS, JSON_PATCH), {413, 422}, id="12,000 operations"),
    pytest.param(_patch(_GROWING, JSON_PATCH), {400, 413, 422}, id="operations that double"),
    pytest.param(_patch(_REPEATING, JSON_PATCH), {413, 422}, id="operations that repeat a long text"),
    pytest.param(_patch(_DEEP), {400}, id="a deep patch"),
]


@pytest.fixture
def bystander(bob: TenantAdmin) -> Iterator[Bystander]:
    reading = Bystander(bob.client, tenants_path())
    yield reading
    reading.close()


@pytest.mark.parametrize(("attack", "expected"), ATTACKS)
def test_an_expensive_request_does_not_slow_down_other_users(
    cluster: E2eCluster, alice: TenantAdmin, bystander: Bystander, attack: Attack, expected: set[int]
) -> None:
    """It is answered, or refused by a 4xx; bob's p99 stays bearable, and the memory in bounds."""
    before = resident_memory_bytes(cluster)
    found = measure_impact(bystander, lambda: attack(alice).status)
    assert found.codes
    assert set(found.codes) <= expected, found
    assert found.attack_seconds < MAX_ATTACK_SECONDS, found
    assert found.is_acceptable, found
    assert resident_memory_bytes(cluster) - before < MAX_GROWTH_BYTES * found.attempts


def oversized_objects() -> Iterator[tuple[str, dict[str, Any]]]:
    yield "labels", {"labels": {f"k{number}.example.org/{'n' * 60}": "v" * 63 for number in range(2000)}}
    yield "finalizers", {"finalizers": [f"example.org/f{number}" for number in range(2000)]}
    yield "spec", {"spec": {"schedulingClass": "x" * MIB}}
    yield "quotas", {"spec": {"resourceQuotas": {f"example.org/q{number}": "1" for number in range(10_000)}}}
    yield "unknown fields", {"spec": {f"f{number}": number for number in range(20_000)}}
    owner = {"apiVersion": "v1", "kind": "Namespace"}
    owners = [{**owner, "name": f"n{number}", "uid": f"u{number}"} for number in range(2000)]
    yield "owners", {"ownerReferences": owners}


@pytest.mark.parametrize("object_id", [each for each, _ in oversized_objects()])
def test_an_oversized_object_does_not_slow_down_other_users(
    cluster: E2eCluster, alice: TenantAdmin, bob: TenantAdmin, tenants: Tenants, bystander: Bystander, object_id: str
) -> None:
    """Taken or refused, bob's Tenants are written and read as ever, and the server holds no more than it can."""
    before, fields = resident_memory_bytes(cluster), dict(oversized_objects())[object_id]

    def send() -> int:
        name = tenants.new_name(alice.namespace)
        body = manifest(name, alice.namespace, **fields)
        query = {"dryRun": "All", "fieldValidation": "Strict"}
        return alice.client.request("POST", alice.children, body, query=query).status

    found = measure_impact(bystander, send)
    assert all(code == 201 or 400 <= code < 500 for code in found.codes), found
    assert found.attack_seconds < MAX_ATTACK_SECONDS, found
    assert found.is_acceptable, found
    tenants.patch(bob.child, {"spec": {"etcd": True}}, bob.namespace)
    assert resident_memory_bytes(cluster) - before < MAX_GROWTH_BYTES * found.attempts


def test_the_depth_of_nested_tenants_is_limited(alice: TenantAdmin, bob: TenantAdmin, tenants: Tenants) -> None:
    """A hundred levels do not fit in the name of a namespace: the one too many is refused, and the rest goes again."""
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
    tenants.patch(bob.child, {"spec": {"etcd": True}}, bob.namespace)


MAX_IN_FLIGHT = 12


def test_one_user_cannot_take_all_watches(
    cluster: E2eCluster, alice: TenantAdmin, bob: TenantAdmin, tmp_path: Path
) -> None:
    """kcp#3472: ten thousand watches of one user are so many refusals, to that user alone."""
    with (
        started_replica(cluster, tmp_path, f"--max-requests-inflight={MAX_IN_FLIGHT}") as replica,
        ExitStack() as stack,
    ):
        mine, others = replica.client(alice.user), replica.client(bob.user)
        wait_until("the replica has all", lambda: len(mine.get(tenants_path()).expect(200)["items"]) == 1)
        version = mine.get(tenants_path()).expect(200)["metadata"]["resourceVersion"]
        target = f"{tenants_path()}?{urlencode({'watch': 'true', 'resourceVersion': version})}"
        heads = []
        for _ in range(4 * MAX_IN_FLIGHT + 20):
            connection = stack.enter_context(RawTls(mine))
            connection.send_request_head("GET", target)
            heads.append(connection.read_until(b"\r\n\r\n").split(b" ", 2)[1])
        assert heads == [b"200"] * (4 * MAX_IN_FLIGHT) + [b"429"] * 20
        watched = stack.enter_context(RawTls(others))
        watched.send_request_head("GET", target)
        assert watched.read_until(b"\r\n\r\n").startswith(b"HTTP/1.1 200")
        for client in (mine, others):
            client.get(tenants_path()).expect(200)


def test_one_user_cannot_take_all_requests_in_flight(
    cluster: E2eCluster, alice: TenantAdmin, bob: TenantAdmin, tmp_path: Path
) -> None:
    """Writes whose bodies do not come hold what they hold until their deadline."""
    share = MAX_IN_FLIGHT * 3 // 4
    with (
        started_replica(cluster, tmp_path, f"--max-requests-inflight={MAX_IN_FLIGHT}") as replica,
        ExitStack() as stack,
    ):
        mine, others = replica.client(alice.user), replica.client(bob.user)
        wait_until("the replica has all", lambda: len(others.get(tenants_path()).expect(200)["items"]) == 1)
        fields = {"Content-Type": "application/json", "Content-Length": "2", "Expect": "100-continue"}
        for _ in range(share):
            connection = stack.enter_context(RawTls(mine))
            connection.send_request_head("POST", alice.children, fields)
            assert connection.read_until(b"\r\n\r\n").startswith(b"HTTP/1.1 100 ")
        refused = mine.get(tenants_path())
        assert refused.expect(429)["reason"] == "TooManyRequests"
        assert int(refused.headers["Retry-After"]) >= 1
        for _ in range(20):
            others.get(tenants_path()).expect(200)


def open_watch_without_reading(client: Client, target: str) -> ssl.SSLSocket:
    """One that never reads, and has hardly room for what it does not read."""
    parts = urlsplit(client.url)
    plain = socket.socket()
    plain.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    plain.settimeout(20)
    plain.connect((parts.hostname, parts.port))
    tls = client.tls.wrap_socket(plain, server_hostname=parts.hostname)
    tls.sendall(f"GET {target} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
    assert tls.recv(12) == b"HTTP/1.1 200"
    return tls


def test_a_watch_that_never_reads_is_closed(
    cluster: E2eCluster, alice: TenantAdmin, bob: TenantAdmin, tenants: Tenants, tmp_path: Path
) -> None:
    """And one that reads is told everything meanwhile."""
    with started_replica(cluster, tmp_path, "--watch-history-size=1Mi") as replica:
        mine = replica.client(alice.user)
        wait_until("the replica has all", lambda: len(mine.get(tenants_path()).expect(200)["items"]) == 1)
        version = mine.get(tenants_path()).expect(200)["metadata"]["resourceVersion"]
        query = {"watch": "true", "resourceVersion": version}
        stuck = [open_watch_without_reading(mine, f"{tenants_path()}?{urlencode(query)}") for _ in range(5)]
        with mine.stream(tenants_path(), query=query, seconds=30) as frames:
            for number in range(150):
                text = f"{number}-{'x' * 100_000}"
                tenants.patch(alice.child, {"metadata": {"annotations": {"big": text}}}, alice.namespace)
                told = ""
                while told != text:
                    frame = next(frames)
                    assert frame["type"] == "MODIFIED", frame["type"]
                    told = frame["object"]["metadata"]["annotations"].get("big", "")
        for tls in stuck:
            assert _was_closed(tls)
        mine.get(tenants_path()).expect(200)


def _nested(levels: int) -> str:
    return '{"a":' * levels + "1" + "}" * levels


# A host lists the number with all its digits.
UNUSUAL_VALUES = {"number": "100000000000000000000"} | {
    f"{levels} levels": _nested(levels) for levels in (200, 300, 1000, 1100, 9000)
}


def test_unusual_values_of_one_helmrelease_do_not_break_other_tenants(
    cluster: E2eCluster, tenants: Tenants, tmp_path: Path
) -> None:
    """Its values may be anything that the host takes. Neither who sees the change nor who starts after it falls over
    it, and the Tenant that it holds can still be written, with all that is not shown of it."""
    client, held = cluster.client(), dict[str, str]()
    for what, value in UNUSUAL_VALUES.items():
        name = tenants.create()["metadata"]["name"]
        values = f'{{"spec":{{"values":{{"odd":{value}}}}}}}'.encode()
        written = client.request("PATCH", helmrelease_path(name), values, content_type=MERGE)
        if cluster.kind == "embedded" and "levels" in what:
            # which takes no such object
            assert written.status == 400, what
        else:
            assert written.status == 200, what
            held[name] = value
    assert held
    tenants.wait_until_settled(tenants.create()["metadata"]["name"])
    with started_replica(cluster, tmp_path) as replica:
        for name, value in held.items():
            _check_write_arrives(replica.client(), client, tenants_path(ROOT, name))
            kept = client.get(helmrelease_path(name)).content.decode()
            assert value in kept.replace("1e+20", UNUSUAL_VALUES["number"])
    for name in held:
        client.request("PATCH", helmrelease_path(name), {"spec": {"values": {"odd": None}}}, content_type=MERGE).expect(
            200
        )


def _check_write_arrives(one: Client, other: Client, path: str) -> None:
    """What one server writes, the other has after a while."""
    patched = one.request("PATCH", path, {"spec": {"etcd": True}}, content_type=MERGE).expect(200)
    version = int(patched["metadata"]["resourceVersion"])
    wait_until("both have it", lambda: _version(other, path) >= version)
    assert other.get(path).expect(200)["spec"]["etcd"] is True


def _version(client: Client, path: str) -> int:
    return int(client.get(path).expect(200)["metadata"]["resourceVersion"])


def _was_closed(tls: ssl.SSLSocket) -> bool:
    """Whether its connection ends before all 15 MB have come."""
    seen, deadline = 0, time.monotonic() + 30
    try:
        while time.monotonic() < deadline:
            data = tls.recv(65536)
            if not data:
                break
            seen += len(data)
    except OSError:
        pass
    finally:
        tls.close()
    return seen < 10 * MIB and time.monotonic() < deadline


def _create_routes(gateways: Gateways, owner: str, guest: str, number: int) -> None:
    def make(first: int) -> None:
        hostnames = [f"h{each}.{guest}.{APEX}" for each in range(first, first + 16)]
        gateways.create_route(guest, f"r{first}", *hostnames, to=owner)

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(make, range(0, number, 16)))


def test_five_thousand_hostnames_leave_room_for_another_namespace(gateways: Gateways) -> None:
    """cozystack#3787: by turns, so that who asks for thousands keeps nobody from the first. What does not fit is named,
    and the Gateway stands."""
    foo = gateways.create_namespace("m-foo")
    greedy, modest = (gateways.create_namespace(name, labels={LABEL: foo}) for name in ("a-greedy", "z-modest"))
    _create_routes(gateways, foo, greedy, 5000)
    gateways.create_route(modest, "only", f"only.{APEX}", to=foo)
    gateways.create_tenantgateway(foo, APEX)
    gateways.wait_until("the modest one is served", lambda: f"only.{APEX}" in gateways.listener_hostnames(foo))
    assert len(gateways.get("gateways", foo)["spec"]["listeners"]) <= 64
    gateways.wait_until("the others are named", lambda: "ListenersTruncated" in gateways.conditions(foo))
    # of 5,000 names a condition holds what it can
    assert len(gateways.conditions(foo)["ListenersTruncated"]["message"]) <= 32 * 1024
    gateways.wait_until("there are as many certificates", lambda: len(gateways.names("certificates", foo)) == 63)


def test_an_invalid_hostname_does_not_prevent_other_listeners(gateways: Gateways) -> None:
    """GW-18: one name that makes none."""
    foo = gateways.create_namespace("m-foo")
    bad = ["Bad_Name", "x" * 70, "-a", "a..b", "ok"]
    gateways.create_tenantgateway(foo, APEX, tlsPassthroughServices=bad)
    gateways.create_route(foo, "good", f"{'g' * 63}.{APEX}", f"good.{APEX}", to=foo, port=443)
    gateways.wait_until(
        "what is good is served", lambda: {f"ok.{APEX}", f"good.{APEX}"} <= set(gateways.listener_hostnames(foo))
    )
    gateways.wait_until("the rest is named", lambda: gateways.ready_reason(foo) == "ReconcileError")
    told = gateways.conditions(foo)["Ready"]["message"]
    assert all(f'"{name.lower()}"' in told for name in bad if name != "ok")


def test_a_certificate_has_at_most_one_hundred_names(gateways: Gateways, cluster: E2eCluster) -> None:
    """As many as an authority admits; who is left out is named, and the others keep theirs."""
    foo = gateways.create_namespace("m-foo")
    gateways.create_tenantgateway(foo, APEX, **DNS01)

    def make(number: int) -> None:
        gateways.create_namespace("heir", labels={LABEL: foo, HOST_LABEL: f"heir{number:03}.{APEX}"})

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(make, range(150)))
    certificate = f"/apis/cert-manager.io/v1/namespaces/{foo}/certificates/cozystack-gateway-tls"

    def names() -> list[str]:
        answer = cluster.client().get(certificate)
        return list(answer.json()["spec"]["dnsNames"]) if answer.status == 200 else []

    gateways.wait_until("it is full", lambda: len(names()) == 100)
    assert names()[:2] == [APEX, f"*.{APEX}"]
    gateways.wait_until(
        "the others are named",
        lambda: "HostnamesLeftOut" in gateways.conditions(foo) or _certificate_is_full(gateways, foo),
    )
    assert len(gateways.get("gateways", foo)["spec"]["listeners"]) <= 64


def _certificate_is_full(gateways: Gateways, foo: str) -> bool:
    return any("Certificate" in type_ for type_ in gateways.conditions(foo))


def test_a_flood_of_writes_does_not_delay_other_users(
    alice: TenantAdmin, bob: TenantAdmin, tenants: Tenants, bystander: Bystander
) -> None:
    """Writes of alice's, as fast as they go, are no wait for bob's."""
    name = tenants.create(alice.namespace)["metadata"]["name"]
    path = tenants_path(alice.namespace, name)

    def flood() -> int:
        body = {"metadata": {"annotations": {"x": str(time.monotonic())}}}
        return alice.client.request("PATCH", path, body, content_type=MERGE).status

    found = measure_impact(bystander, flood)
    assert set(found.codes) <= {200, 409, 429}, found
    assert found.is_acceptable, found
    started = time.monotonic()
    tenants.patch(bob.child, {"spec": {"etcd": True}}, bob.namespace)
    assert time.monotonic() - started < 2
    assert tenants.exists("root", ROOT)
