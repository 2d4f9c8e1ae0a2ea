"""Random selectors, patches, apply configurations and continue tokens get a success or a Status, never a 5xx."""

from __future__ import annotations

import base64
import http.client
import json
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any
from urllib.parse import quote, urlsplit

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.e2e.support.clusters.cluster import GROUP_VERSION, ROOT, E2eCluster, tenants_path
from tests.e2e.support.http.https_client import Client
from tests.e2e.support.tenants import Tenants, manifest
from tests.faults.support.sizes import size

pytestmark = pytest.mark.faults

MERGE, JSON_PATCH, APPLY = (
    "application/merge-patch+json",
    "application/json-patch+json",
    "application/apply-patch+yaml",
)
fuzzed = settings(
    # the full run sends over 20,000 requests to each cluster
    max_examples=size(short=300, full=1700),
    deadline=None,
    derandomize=True,
    database=None,
    # all examples share one server on purpose
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow, HealthCheck.data_too_large],
)

scalars = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.sampled_from([0, -1, 2**31, 2**53, 2**63, 2**64, 10**30, 1e308, 5e-324, 0.5]),
    st.text(max_size=8),
    st.sampled_from(["", "1Gi", "-1", "tenant-root", ROOT, "2020-01-01T00:00:00Z", "\ud800", "\0", "a/b", "_x"]),
)
names = st.sampled_from(
    [
        "apiVersion",
        "kind",
        "metadata",
        "spec",
        "status",
        "name",
        "namespace",
        "generateName",
        "labels",
        "annotations",
        "finalizers",
        "ownerReferences",
        "resourceVersion",
        "uid",
        "generation",
        "creationTimestamp",
        "deletionTimestamp",
        "deletionGracePeriodSeconds",
        "managedFields",
        "selfLink",
        "host",
        "etcd",
        "monitoring",
        "ingress",
        "seaweedfs",
        "computeplane",
        "gateway",
        "schedulingClass",
        "resourceQuotas",
        "cpu",
        "memory",
        "conditions",
        "version",
        "blockOwnerDeletion",
        "controller",
        "manager",
        "operation",
        "fieldsType",
        "fieldsV1",
        "time",
        "subresource",
        "f:spec",
        "f:metadata",
        ".",
        'k:{"uid":"x"}',
        'v:"x"',
        "_secret",
        "a.b/c",
    ]
)
values = st.recursive(
    scalars,
    lambda inner: st.one_of(
        st.lists(inner, max_size=3), st.dictionaries(st.one_of(names, st.text(max_size=5)), inner, max_size=4)
    ),
    max_leaves=12,
)
metadata = st.dictionaries(names, values, max_size=4)
specs = st.dictionaries(names, values, max_size=4)
objects = st.one_of(
    values, st.fixed_dictionaries({}, optional={"metadata": st.one_of(values, metadata), "spec": specs, "kind": values})
)

segments = st.one_of(names, st.sampled_from(["-", "0", "1", "99", "00", "~0", "~1", "~2", "~", "", "*"]), st.text())
pointers = st.one_of(st.lists(segments, max_size=5).map(lambda parts: "".join(f"/{part}" for part in parts)), values)
operations = st.fixed_dictionaries(
    {"op": st.one_of(st.sampled_from(["add", "remove", "replace", "move", "copy", "test"]), scalars)},
    optional={"path": pointers, "from": pointers, "value": values, "extra": scalars},
)
json_patches = st.one_of(st.lists(operations, max_size=4), values)

selector_parts = st.one_of(
    st.sampled_from(
        ["a", "b.c/d", "=", "==", "!=", "!", ",", " ", "in", "notin", "(", ")", ">", "<", "1", "metadata.name", "-x"]
    ),
    st.text(max_size=3),
)
selectors = st.lists(selector_parts, max_size=8).map("".join)


def encode_token(value: object) -> str:
    text = value if isinstance(value, str) else json.dumps(value)
    return base64.urlsafe_b64encode(text.encode(errors="surrogatepass")).decode().rstrip("=")


tokens = st.one_of(
    st.text(max_size=20),
    st.text(max_size=20).map(encode_token),
    values.map(encode_token),
    st.fixed_dictionaries(
        {"v": st.one_of(st.just("meta.k8s.io/v1"), scalars), "rv": scalars, "start": scalars}, optional={"x": scalars}
    ).map(encode_token),
)


class FuzzClient:
    """Sends many requests over one connection and counts the status codes."""

    def __init__(self, client: Client) -> None:
        parts = urlsplit(client.url)
        assert parts.hostname is not None
        self._headers = client.headers
        self._connection = http.client.HTTPSConnection(parts.hostname, parts.port, context=client.tls, timeout=60)
        self.codes: Counter[int] = Counter()

    def send(self, method: str, path: str, query: Mapping[str, str], body: bytes | None = None, kind: str = "") -> None:
        """Fails unless the response is a success or a Status with a code below 500 and a message."""
        encoded = "&".join(
            f"{name}={quote(value.encode(errors='surrogatepass'), safe='')}" for name, value in query.items()
        )
        headers = {**self._headers, **({"Content-Type": kind} if kind else {})}
        self._connection.request(method, f"{path}?{encoded}", body, headers)
        response = self._connection.getresponse()
        content = response.read()
        self.codes[response.status] += 1
        assert response.status < 500, f"{method} {path}?{encoded} {body!r}: {response.status} {content!r}"
        if response.status >= 400 and method != "HEAD":
            status = json.loads(content)
            if response.status == 404 and status.keys() == {"paths"}:
                # a path outside of the API is answered with the list of all paths
                return
            assert (status["kind"], status["code"]) == ("Status", response.status), content
            assert status["message"]
            assert "Traceback" not in status["message"]

    def close(self) -> None:
        self._connection.close()


@pytest.fixture
def fuzz_client(cluster: E2eCluster) -> Iterator[FuzzClient]:
    client = FuzzClient(cluster.client())
    yield client
    client.close()


@pytest.fixture
def direct_fuzz_client(cluster: E2eCluster) -> Iterator[FuzzClient]:
    """A client for our own server, for requests that an aggregator does not forward."""
    client = FuzzClient(cluster.direct_client())
    yield client
    client.close()


@pytest.fixture
def target(tenants: Tenants) -> str:
    """The path of the Tenant that all examples use."""
    made = tenants.create(labels={"a": "b"}, annotations={"c": "d"}, spec={"resourceQuotas": {"cpu": "4"}})
    return tenants_path(ROOT, made["metadata"]["name"])


def as_json(value: object) -> bytes:
    return json.dumps(value).encode()


def test_fuzzed_selectors(fuzz_client: FuzzClient, target: str) -> None:
    @fuzzed
    @given(label=selectors, field=selectors, watch=st.booleans())
    def check(label: str, field: str, watch: bool) -> None:
        query = {"labelSelector": label, "fieldSelector": field, "limit": "3"}
        if watch:
            # most of these watches are rejected; an accepted one ends after a second
            query = {"labelSelector": label + "=", "fieldSelector": field + "=x", "watch": "1", "timeoutSeconds": "1"}
        fuzz_client.send("GET", tenants_path(ROOT), query)

    check()
    assert {200, 400} <= fuzz_client.codes.keys()


def test_fuzzed_continue_tokens(fuzz_client: FuzzClient, target: str) -> None:
    @fuzzed
    @given(token=tokens, namespaced=st.booleans())
    def check(token: str, namespaced: bool) -> None:
        fuzz_client.send("GET", tenants_path(ROOT if namespaced else ""), {"continue": token, "limit": "1"})

    check()
    assert 400 in fuzz_client.codes


def test_fuzzed_numeric_query_parameters(fuzz_client: FuzzClient, target: str) -> None:
    numbers = st.one_of(scalars.map(str), st.from_regex(r"-?[0-9]{1,30}", fullmatch=True), st.just("+1"), st.just("٣"))

    @fuzzed
    @given(limit=numbers, version=numbers, match=st.sampled_from(["", "Exact", "NotOlderThan", "x"]), seconds=numbers)
    def check(limit: str, version: str, match: str, seconds: str) -> None:
        if version.isascii() and version.isdigit() and match in ("NotOlderThan", "Exact", ""):
            # the server would wait for a future resource version and then answer 504
            version = "1"
        query = {"limit": limit, "resourceVersion": version, "resourceVersionMatch": match, "timeoutSeconds": seconds}
        fuzz_client.send("GET", tenants_path(ROOT), {name: value for name, value in query.items() if value})

    check()
    assert 400 in fuzz_client.codes


@pytest.mark.parametrize("dry_run", [True, False], ids=["dry run", "for real"])
def test_fuzzed_json_patches(fuzz_client: FuzzClient, target: str, dry_run: bool) -> None:
    @fuzzed
    @given(patch=json_patches)
    def check(patch: object) -> None:
        fuzz_client.send("PATCH", target, {"dryRun": "All"} if dry_run else {}, as_json(patch), JSON_PATCH)

    check()
    assert {400, 422} & fuzz_client.codes.keys()
    fuzz_client.send("GET", target, {})
    assert fuzz_client.codes[200]


@pytest.mark.parametrize("dry_run", [True, False], ids=["dry run", "for real"])
def test_fuzzed_merge_patches(fuzz_client: FuzzClient, target: str, dry_run: bool) -> None:
    @fuzzed
    @given(patch=objects)
    def check(patch: object) -> None:
        fuzz_client.send("PATCH", target, {"dryRun": "All"} if dry_run else {}, as_json(patch), MERGE)

    check()
    assert {400, 422} & fuzz_client.codes.keys()
    fuzz_client.send("GET", target, {})
    assert fuzz_client.codes[200]


def test_fuzzed_apply_configurations(fuzz_client: FuzzClient, target: str) -> None:
    name = target.rpartition("/")[2]
    kinds = {"apiVersion": GROUP_VERSION.removeprefix("/apis/"), "kind": "Tenant"}

    @fuzzed
    @given(body=objects, whole=st.booleans(), manager=st.text(max_size=5), force=st.sampled_from(["true", "", "x"]))
    def check(body: object, whole: bool, manager: str, force: str) -> None:
        if whole and isinstance(body, dict):
            generated = body.get("metadata")
            body = {**body, **kinds, "metadata": {**(generated if isinstance(generated, dict) else {}), "name": name}}
        query = {"fieldManager": manager or "fuzz", "force": force}
        fuzz_client.send("PATCH", target, query, as_json(body), APPLY)

    check()
    assert {200, 400} <= fuzz_client.codes.keys()


def test_fuzzed_creates_and_updates(fuzz_client: FuzzClient, target: str) -> None:
    name = target.rpartition("/")[2]

    @fuzzed
    @given(body=objects, spec=specs, extra=metadata, validation=st.sampled_from(["Strict", "Warn", "Ignore", "x"]))
    def check(body: object, spec: dict[str, Any], extra: dict[str, Any], validation: str) -> None:
        query = {"dryRun": "All", "fieldValidation": validation}
        fuzz_client.send("POST", tenants_path(ROOT), query, as_json(body), "application/json")
        whole = {**manifest(name), "spec": spec, "metadata": {**extra, "name": name}}
        fuzz_client.send("PUT", target, query, as_json(whole), "application/json")

    check()
    assert {400, 422} <= fuzz_client.codes.keys()


def test_fuzzed_delete_options(fuzz_client: FuzzClient, target: str) -> None:
    options = st.dictionaries(
        st.sampled_from(
            [
                "kind",
                "apiVersion",
                "preconditions",
                "uid",
                "propagationPolicy",
                "orphanDependents",
                "dryRun",
                "gracePeriodSeconds",
                "resourceVersion",
                "ignoreStoreReadErrorWithClusterBreakingPotential",
            ]
        ),
        values,
        max_size=4,
    )

    @fuzzed
    @given(body=st.one_of(options, values))
    def check(body: object) -> None:
        fuzz_client.send("DELETE", target, {"dryRun": "All"}, as_json(body), "application/json")

    check()
    assert 400 in fuzz_client.codes


def test_fuzzed_bodies(fuzz_client: FuzzClient, target: str) -> None:
    kinds = st.sampled_from(["application/json", "application/yaml", MERGE, JSON_PATCH, APPLY])
    yaml = st.lists(st.sampled_from([*"abc:-&*!?|>%@`{}[],'\"#\n\t 0.~<", "<<", "---\n", "!!map ", "\u2028"]))

    @fuzzed
    @given(body=st.one_of(st.binary(max_size=60), yaml.map("".join).map(str.encode)), kind=kinds)
    def check(body: bytes, kind: str) -> None:
        query = {"fieldManager": "fuzz", "dryRun": "All"}
        fuzz_client.send(
            "PATCH" if "patch" in kind else "POST", target if "patch" in kind else tenants_path(ROOT), query, body, kind
        )

    check()
    assert 400 in fuzz_client.codes


def test_fuzzed_paths(direct_fuzz_client: FuzzClient, target: str) -> None:
    part = st.one_of(
        st.sampled_from(
            [
                "apis",
                "api",
                "v1",
                "v1alpha1",
                "apps.cozystack.io",
                "namespaces",
                ROOT,
                "tenants",
                "watch",
                "status",
                "",
                ".",
                "..",
                "openapi",
                "v2",
                "v3",
            ]
        ),
        st.text(max_size=4),
    )

    @fuzzed
    @given(parts=st.lists(part, max_size=8), method=st.sampled_from(["GET", "PUT", "POST", "PATCH", "HEAD", "OPTIONS"]))
    def check(parts: list[str], method: str) -> None:
        path = "".join(f"/{quote(each.encode(errors='surrogatepass'), safe='')}" for each in parts)
        direct_fuzz_client.send(method, path or "/", {"timeoutSeconds": "1", "dryRun": "All"})

    check()
    assert {200, 404} <= direct_fuzz_client.codes.keys()
