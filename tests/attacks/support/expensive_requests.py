"""Requests and objects that cost a server far more than they cost their sender."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import pytest

from tests.attacks.support.two_tenants import TenantAdmin
from tests.e2e.support.applying import MERGE
from tests.e2e.support.clusters.cluster import tenants_path
from tests.e2e.support.http.https_client import Response
from tests.e2e.support.peer_lessons import JSON_PATCH
from tests.e2e.support.tenants import manifest

MIB = 1024 * 1024
Attack = Callable[[TenantAdmin], Response]
"""Sends one request as this user."""


def _label_values(number: int) -> str:
    return ",".join(f"a{each}" for each in range(number))


def _get(query: Mapping[str, str], headers: Mapping[str, str] | None = None) -> Attack:
    return lambda alice: alice.client.get(tenants_path(), query=query, headers=headers)


def _post(body: bytes, kind: str = "application/json", headers: Mapping[str, str] | None = None) -> Attack:
    return lambda alice: alice.client.request("POST", alice.children, body, content_type=kind, headers=headers)


def _post_zeros(alice: TenantAdmin) -> Response:
    """Compressed here, since each process of the tests imports this module, and one sends the request."""
    zeros = gzip.compress(bytes(64 * MIB), 9)
    return _post(zeros, headers={"Content-Encoding": "gzip"})(alice)


def _patch(body: Any, kind: str = MERGE) -> Attack:
    return lambda alice: alice.client.request("PATCH", alice.child_path, body, content_type=kind)


def _tenant(**spec: Any) -> bytes:
    return json.dumps(manifest("bomb", spec=spec) | {"metadata": {"name": "bomb"}}).encode()


_DEEP = b'{"spec":' + b'{"a":' * 100_000 + b"1" + b"}" * 100_001
_YAML = "\n".join(["a0: &a0 [x, x, x]", *(f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]" for n in range(1, 30))])
_ENCODINGS = {"Accept-Encoding": ", ".join(f"gzip;q=0.{n:03}" for n in range(3000))}
_ACCEPTS = {"Accept": ", ".join(f"application/json;as=x{n};q=0.{n:03}" for n in range(1000))}
_OPERATIONS = [{"op": "copy", "from": "/spec", "path": "/spec/schedulingClass"}] * 12_000
_GROWING = [{"op": "copy", "from": "/spec", "path": f"/spec/x{n}"} for n in range(60)]
_REPEATING = [
    {"op": "add", "path": "/spec/schedulingClass", "value": "x" * MIB},
    *({"op": "copy", "from": "/spec/schedulingClass", "path": f"/spec/resourceQuotas/q{n}"} for n in range(5000)),
]
ATTACKS = [
    pytest.param(_get({"labelSelector": f"word in ({_label_values(1500)})"}), {200}, id="1,500 values"),
    pytest.param(_get({"labelSelector": f"word notin ({_label_values(1500)})"}), {200}, id="not one of 1,500 values"),
    pytest.param(_get({"labelSelector": ",".join(f"k{n}!=x" for n in range(100))}), {200}, id="100 terms"),
    pytest.param(_get({"labelSelector": ",".join(f"k{n}!=x" for n in range(1000))}), {400}, id="1,000 terms"),
    pytest.param(_get({"labelSelector": "(" * 9_000}), {400}, id="9,000 open brackets"),
    pytest.param(_get({"labelSelector": f"word=({'a+' * 500})+$"}), {400}, id="a regular expression as a value"),
    pytest.param(_get({"labelSelector": "word=~.*"}), {400}, id="a regular expression as an operator"),
    pytest.param(
        _get({"fieldSelector": f"metadata.name={'(a+)+' * 500}$"}), {200}, id="a regular expression in a field"
    ),
    pytest.param(_get({"fieldSelector": ",".join(["metadata.name!=a"] * 100)}), {200}, id="100 fields"),
    pytest.param(_get({"fieldSelector": "\\" * 9_001}), {400}, id="9,001 backslashes"),
    pytest.param(_get({"limit": "1"}), {200}, id="pages of one"),
    pytest.param(_get({"continue": "A" * 30_000, "limit": "1"}), {400}, id="a continue token of 30 kB"),
    pytest.param(_get({}, _ENCODINGS), {200}, id="3,000 encodings"),
    pytest.param(_get({}, _ACCEPTS), {200, 406}, id="1,000 media types"),
    pytest.param(_post(_DEEP), {400}, id="deep JSON"),
    pytest.param(_post(b"[" * MIB), {400}, id="a million open lists"),
    pytest.param(_post(_YAML.encode(), "application/yaml"), {400, 413}, id="a YAML alias bomb"),
    pytest.param(_post_zeros, {400, 415}, id="a gzip bomb"),
    pytest.param(
        _post(b'{"kind":"Tenant","kind":"Tenant"' + b',"a":1' * 200_000 + b"}"), {413}, id="200,000 duplicate keys"
    ),
    pytest.param(_post(_tenant(host="a" * MIB)), {403, 422}, id="a host of 1 MiB"),
    pytest.param(_post(b'{"spec":{"etcd":' + b"9" * MIB + b"}}"), {400, 422}, id="a long number"),
    pytest.param(
        _post(b'{"metadata":{"name":"x","annotations":{"a":"' + b"x" * 300_000 + b'"}}}'),
        {422},
        id="300 kB of annotations",
    ),
    pytest.param(_post(b" " * (3 * MIB + 1)), {413}, id="over 3 MiB"),
    pytest.param(_patch(_OPERATIONS, JSON_PATCH), {413, 422}, id="12,000 operations"),
    pytest.param(_patch(_GROWING, JSON_PATCH), {400, 413, 422}, id="operations that double the object"),
    pytest.param(_patch(_REPEATING, JSON_PATCH), {413, 422}, id="operations that repeat a long text"),
    pytest.param(_patch(_DEEP), {400}, id="a deep patch"),
]


def oversized_objects() -> Iterator[tuple[str, dict[str, Any]]]:
    """Yields the name of a field and the arguments of `manifest` for a Tenant in which it is too large."""
    yield "labels", {"labels": {f"k{number}.example.org/{'n' * 60}": "v" * 63 for number in range(2000)}}
    yield "finalizers", {"finalizers": [f"example.org/f{number}" for number in range(2000)]}
    yield "spec", {"spec": {"schedulingClass": "x" * MIB}}
    yield "quotas", {"spec": {"resourceQuotas": {f"example.org/q{number}": "1" for number in range(10_000)}}}
    yield "unknown fields", {"spec": {f"f{number}": number for number in range(20_000)}}
    owner = {"apiVersion": "v1", "kind": "Namespace"}
    owners = [{**owner, "name": f"n{number}", "uid": f"u{number}"} for number in range(2000)]
    yield "owners", {"ownerReferences": owners}
