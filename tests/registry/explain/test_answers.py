"""Answers about each kind of subject, as golden files: a change of an answer is seen in a review."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from apiserver.authorization.authorizer import AccessDenied
from apiserver.meta.errors import BadRequest
from apiserver.meta.resource import Key, Object
from apiserver.request.context import User
from registry.cluster.interface import CLUSTERROLEBINDINGS, CLUSTERROLES, NAMESPACES, RESOURCEQUOTAS, ROLEBINDINGS
from registry.explain.read import CERTIFICATES, GATEWAYS
from registry.explain.storage import groups_of
from registry.explain.subject import ExplainedSubject, parse_subject
from registry.tenant.quota_keys import AllocationRatios
from registry.tenantgateway.types import TENANTGATEWAYS
from tests.registry.explain.explain_world import (
    ALICE,
    ButVerb,
    Everything,
    ExplainWorld,
    InNamespaces,
    Stored,
    condition,
    metadata,
    route,
    tenantgateway,
)
from tests.registry.explain.route_kinds import HTTPROUTES

_GOLDEN = Path(__file__).parent / "golden"
_HOST = "shop.alice.example.org"
_TENANTS = {Key("tenant-root", "root"): {}, ALICE: {"gateway": True}, Key("tenant-alice", "dev"): {}}
_CONFLICT = condition("Accepted", "False", "HostnameConflict", f'"{_HOST}" belongs to a route of another namespace')
_LISTENER = {"name": "https-shop-1", "hostname": _HOST, "ready": True, "certificateName": "cozystack-shop-tls"}
_READY = condition("Ready", message="the Gateway and all its listeners are ready")
_CERTIFICATE: Stored = (
    CERTIFICATES,
    {
        "metadata": metadata("cozystack-shop-tls", "tenant-alice"),
        "status": {"conditions": [condition("Ready", reason="Ready")], "notAfter": "2026-04-01T00:00:00Z"},
    },
)


def _gateway(*listeners: Object) -> Stored:
    return TENANTGATEWAYS, tenantgateway("tenant-alice", listeners, _READY)


def _served() -> list[Stored]:
    accepted = condition("Accepted", reason="Accepted", message="the route may use all of its hostnames")
    return [
        _gateway(_LISTENER),
        _CERTIFICATE,
        (HTTPROUTES, route("shop", "tenant-alice", _HOST, conditions=[accepted])),
    ]


def _quota(*others: str) -> Stored:
    status = {"hard": {"requests.cpu": "4", **dict.fromkeys(others, "8Gi")}, "used": {"requests.cpu": "500m"}}
    return RESOURCEQUOTAS, {"metadata": metadata("tenant-pool", "tenant-alice"), "status": status}


def _bindings() -> list[Stored]:
    rule = {"apiGroups": ["apps.cozystack.io"], "resources": ["tenants"], "verbs": ["get"]}
    reference = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "readers"}
    other = {**reference, "name": "others"}
    subject = {"kind": "Group", "name": "tenant-root-view", "apiGroup": "rbac.authorization.k8s.io"}
    return [
        (CLUSTERROLES, {"metadata": metadata("readers"), "rules": [rule]}),
        (CLUSTERROLES, {"metadata": metadata("others"), "rules": [{**rule, "verbs": ["list"]}]}),
        (ROLEBINDINGS, {"metadata": metadata("read", "tenant-root"), "roleRef": reference, "subjects": [subject]}),
        (ROLEBINDINGS, {"metadata": metadata("list", "tenant-root"), "roleRef": other, "subjects": [subject]}),
        (CLUSTERROLEBINDINGS, {"metadata": metadata("all"), "roleRef": reference, "subjects": [subject]}),
    ]


_REFUSED = condition("GatewayReady", "False", "GatewayNotAccepted", "gateway tenant-alice/cozystack: Pending")
_ATTACHED = {"namespace.cozystack.io/host": "alice.example.org", "namespace.cozystack.io/gateway": "tenant-alice"}
_DEV, _LOW = Key("tenant-alice", "dev"), Key("tenant-alice-dev", "low")
_WITH_QUOTAS: Mapping[Key, Mapping[str, Any]] = {
    Key("tenant-root", "root"): {"resourceQuotas": {"cpu": "40", "memory": "8Gi"}},
    ALICE: {"resourceQuotas": {"cpu": "16", "requests.cpu": "4", "count/secrets": 9}},
    _DEV: {"resourceQuotas": {"requests.cpu": "200m", "secrets": 2}},
    _LOW: {"resourceQuotas": {"limits.cpu": "3"}},
}
_TENFOLD = AllocationRatios(cpu=Fraction(10), memory=Fraction(3, 2))
_PARENT_HIDDEN = InNamespaces({"tenant-alice"}, {("tenants", "tenant-root", "alice")})


@pytest.mark.parametrize(
    ("name", "about", "world"),
    [
        ("tenant", "tenant", ExplainWorld(_TENANTS, [_quota()])),
        (
            "tenant-not-ready",
            "tenant",
            ExplainWorld(_TENANTS, conditions={ALICE: [{**_REFUSED, "type": "Ready"}, _REFUSED]}),
        ),
        ("tenant-parent-hidden", "", ExplainWorld(_TENANTS, authorizer=_PARENT_HIDDEN)),
        ("tenant-with-quota", "tenant", ExplainWorld(_WITH_QUOTAS, [_quota()], ratios=_TENFOLD)),
        (
            "tenant-with-quota-parent-hidden",
            "tenant",
            ExplainWorld(_WITH_QUOTAS, [_quota("memory")], authorizer=_PARENT_HIDDEN, ratios=_TENFOLD),
        ),
        (
            "tenant-in-the-pool-of-an-ancestor",
            "tenant",
            ExplainWorld({**_WITH_QUOTAS, ALICE: {"resourceQuotas": {"limits.cpu": "4"}}}, ratios=_TENFOLD),
        ),
        ("host-served", f"host/{_HOST.upper()}.", ExplainWorld(_TENANTS, _served())),
        (
            "host-conflict",
            f"host/{_HOST}",
            ExplainWorld(
                _TENANTS, [_gateway(), (HTTPROUTES, route("shop", "tenant-alice", _HOST, conditions=[_CONFLICT]))]
            ),
        ),
        (
            "host-certificate-not-ready",
            f"host/{_HOST}",
            ExplainWorld(_TENANTS, [_gateway({**_LISTENER, "ready": False, "reason": "CertificateNotReady"})]),
        ),
        ("host-without-gateway", f"host/{_HOST}", ExplainWorld({**_TENANTS, ALICE: {}})),
        ("host-of-a-child", "host/www.dev.alice.example.org", ExplainWorld(_TENANTS)),
        ("host-elsewhere", "host/shop.example.com", ExplainWorld(_TENANTS)),
        (
            "host-on-a-gateway-without-tenantgateway",
            f"host/{_HOST}",
            ExplainWorld(
                _TENANTS,
                [
                    (
                        GATEWAYS,
                        {
                            "metadata": metadata("cozystack", "tenant-alice"),
                            "spec": {"listeners": [{"name": "https-shop-1", "hostname": _HOST}]},
                            "status": {
                                "listeners": [
                                    {
                                        "name": "https-shop-1",
                                        "conditions": [condition("Programmed", "False", "Pending", "waiting")],
                                    }
                                ]
                            },
                        },
                    )
                ],
                authorizer=Everything(denied=["tenantgateways"]),
            ),
        ),
        ("route", "route/tenant-alice/shop", ExplainWorld(_TENANTS, _served())),
        (
            "route-not-reported",
            "route/tenant-alice/shop",
            ExplainWorld(_TENANTS, [(HTTPROUTES, route("shop", "tenant-alice", _HOST))]),
        ),
        ("route-hidden", "route/tenant-other/shop", ExplainWorld(_TENANTS)),
        (
            "namespace",
            "namespace/tenant-alice",
            ExplainWorld(_TENANTS, [(NAMESPACES, {"metadata": {"name": "tenant-alice", "labels": _ATTACHED}})]),
        ),
        ("namespace-hidden", "namespace/kube-system", ExplainWorld(_TENANTS)),
        ("user", "user/eve", ExplainWorld(_TENANTS, authorizer=_PARENT_HIDDEN)),
        ("user-other", "user/system:serviceaccount:default:bot", ExplainWorld(_TENANTS)),
        ("who-can-see", "who-can-see", ExplainWorld(_TENANTS, _bindings())),
        (
            "who-can-see-in-the-namespace",
            "who-can-see",
            ExplainWorld(_TENANTS, _bindings(), authorizer=Everything(denied=["clusterrolebindings"])),
        ),
    ],
)
async def test_an_answer_is_as_its_golden_file(name: str, about: str, world: ExplainWorld) -> None:
    """With UPDATE_GOLDEN=1, the file is written first."""
    answer = json.dumps(json.loads(await world.explain(about)), indent=2) + "\n"
    path = _GOLDEN / f"{name}.json"
    if os.environ.get("UPDATE_GOLDEN"):
        path.write_text(answer)
    assert path.read_text() == answer


@pytest.mark.parametrize(
    ("about", "subject"),
    [
        ("", ExplainedSubject("tenant")),
        ("host/Shop.Example.org.", ExplainedSubject("host", "shop.example.org")),
        ("route/a/b", ExplainedSubject("route", "b", "a")),
        ("user/oidc:a/b", ExplainedSubject("user", "oidc:a/b")),
    ],
)
def test_a_subject_is_parsed(about: str, subject: ExplainedSubject) -> None:
    assert parse_subject(about) == subject


@pytest.mark.parametrize(
    "about",
    [
        "tenant/x",
        "host/",
        "host/a/b",
        "route/a",
        "route/a/",
        "route//a",
        "route/a/b/c",
        "route/../x/y",
        "namespace/",
        "namespace/a/b",
        "user/eve\n",
        "user/\x1b]0;title\x07",
        "user/",
        "x",
    ],
)
def test_other_subjects_are_bad_requests(about: str) -> None:
    with pytest.raises(BadRequest, match="about must be"):
        parse_subject(about)


@pytest.mark.parametrize(
    ("about", "name", "reason"),
    [
        ("host/a_b", "a_b", "is not a DNS name: labels of at most 63"),
        ("host/a..b", "a..b", "is not a DNS name: labels of at most 63"),
        ("host/a b", "a b", "is not a DNS name: labels of at most 63"),
        ("host/*.*.example.org", "*.*.example.org", "is not a DNS name: must not contain a wildcard"),
        ("host/ä.example.org", "ä.example.org", "is not a DNS name: labels of at most 63"),
        ("host/<script>", "<script>", "is not a DNS name: labels of at most 63"),
        ("host/192.0.2.1", "192.0.2.1", "is not a DNS name: must be a DNS name, not an IP address"),
        ("host/shop.example.org\x00", "shop.example.org\\x00", "is not a DNS name: labels of at most 63"),
        (f"host/{'a' * 64}.example.org", f"{'a' * 64}.example.org", "is not a DNS name: labels of at most 63"),
        (f"host/{'a' * 999}", "a" * 999, "is not a DNS name: must be no more than 253 characters"),
        ("route/../x", "..", "is not a name: it has at most 253 lower case letters"),
        ("namespace/A_B", "A_B", "is not a name"),
        ("namespace/tenant-alice\n", "tenant-alice\\n", "is not a name"),
        ("route/tenant-alice/shop\x1b[2J", "shop\\x1b[2J", "is not a name"),
        ("route/tenant-alice/é", "é", "is not a name"),
        (f"namespace/{'a' * 254}", "a" * 254, "is not a name"),
    ],
)
def test_a_name_that_no_object_can_have_is_named(about: str, name: str, reason: str) -> None:
    with pytest.raises(BadRequest) as refused:
        parse_subject(about)
    assert str(refused.value).startswith(f'"{name}" {reason}')


async def test_another_user_needs_the_right_to_review_access() -> None:
    world = ExplainWorld(_TENANTS, authorizer=Everything(denied=["subjectaccessreviews"]))
    assert json.loads(await world.explain("user/eve"))["verdict"] == "True"
    with pytest.raises(AccessDenied, match='cannot create resource "subjectaccessreviews"'):
        await world.explain("user/bob")


@pytest.mark.parametrize("name", ["eve, Group system:masters", "eve\nGroup staff", "Group staff", 'a"b'])
async def test_the_name_of_a_reader_stays_one_subject(name: str) -> None:
    """RBAC takes any text for the name of a user."""
    stored = _bindings()
    stored[2][1]["subjects"] = [{"kind": "User", "name": name, "apiGroup": "rbac.authorization.k8s.io"}]
    answer = json.loads(await ExplainWorld(_TENANTS, stored).explain("who-can-see"))
    [fact] = [each for each in answer["facts"] if each["object"]["kind"] == "RoleBinding"]
    assert fact["subjects"] == [{"kind": "User", "name": name}]
    assert fact["value"] == f"User {json.dumps(name)}"


async def test_a_subject_of_several_bindings_is_counted_once() -> None:
    """Cozystack binds the groups of an ancestor to each of four ClusterRoles."""
    stored, (kind, view) = _bindings(), _bindings()[2]
    before = json.loads(await ExplainWorld(_TENANTS, stored).explain("who-can-see"))["summary"]
    stored.append((kind, {**view, "metadata": metadata("again", "tenant-root")}))
    assert json.loads(await ExplainWorld(_TENANTS, stored).explain("who-can-see"))["summary"] == before


async def test_very_many_readers_are_counted() -> None:
    """Of the last binding, as many subjects as there is room for."""
    stored, (kind, view) = _bindings(), _bindings()[2]
    subject = view["subjects"][0]
    for number in range(300):
        names = [{**subject, "name": f"g{number}-{each}"} for each in range(7)]
        stored.append((kind, {**view, "metadata": metadata(f"r{number:03}", "tenant-root"), "subjects": names}))
    answer = json.loads(await ExplainWorld(_TENANTS, stored).explain("who-can-see"))
    assert answer["summary"] == "2101 subjects may see the tenant"
    assert sum(len(each.get("subjects", ())) for each in answer["facts"]) == 1_000
    assert answer["facts"][-1]["value"] == "1102 more subjects are left out"


async def test_readers_need_the_right_to_list_bindings() -> None:
    world = ExplainWorld(_TENANTS, _bindings(), authorizer=Everything(denied=["rolebindings"]))
    with pytest.raises(AccessDenied, match='cannot list resource "rolebindings"'):
        await world.explain("who-can-see")


async def test_the_advice_depends_on_who_may_set_hosts() -> None:
    world, admin = ExplainWorld(_TENANTS), User(name="admin", groups=("system:masters",))
    assert "ask a platform administrator" in json.loads(await world.explain("host/example.com"))["summary"]
    assert json.loads(await world.explain("host/example.com", user=admin))["summary"].endswith(", or set spec.host")


async def test_a_route_is_advised_to_those_who_may_create_it_and_the_right_to_others() -> None:
    world = ExplainWorld(_TENANTS, authorizer=ButVerb("create"))
    found = json.loads(await world.explain(f"host/{_HOST}"))
    remedies = [each["remedy"] for each in found["facts"] if "no route" in each.get("message", "")]
    right = "the right to create httproutes in tenant-alice, which the ClusterRole cozy:tenant:routes has"
    assert remedies == [f"ask a platform administrator for {right} (docs/delegation.md)"]
    assert "create an HTTPRoute" not in str(found)


@pytest.mark.parametrize(
    ("name", "groups"),
    [
        ("bob", {"system:authenticated"}),
        ("system:anonymous", {"system:unauthenticated"}),
        (
            "system:serviceaccount:tenant-bob:default",
            {"system:authenticated", "system:serviceaccounts", "system:serviceaccounts:tenant-bob"},
        ),
        # no service accounts: somebody's certificate may have such a name
        ("system:serviceaccount:tenant-bob", {"system:authenticated"}),
        ("system:serviceaccount:tenant-bob:", {"system:authenticated"}),
        ("system:serviceaccount::default", {"system:authenticated"}),
        ("system:serviceaccount:a:b:c", {"system:authenticated"}),
        ("system:node:one", {"system:authenticated", "system:nodes"}),
    ],
)
def test_the_groups_that_a_name_has_by_itself(name: str, groups: set[str]) -> None:
    assert set(groups_of(name)) == groups
