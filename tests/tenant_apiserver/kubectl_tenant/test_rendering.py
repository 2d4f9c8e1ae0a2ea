"""The output of `kubectl tenant` as golden files."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from apiserver.meta.resource import Key, Object
from tenant_apiserver.kubectl_tenant.choice import (
    NoTenant,
    check_name,
    check_namespace,
    tenant_named,
    tenant_of_host,
    tenant_of_namespace,
)
from tenant_apiserver.kubectl_tenant.differences import render_differences, render_notes
from tenant_apiserver.kubectl_tenant.explanations import render_explanation, render_readers
from tenant_apiserver.kubectl_tenant.hosts import (
    HostSources,
    host_rows,
    render_hidden_certificates,
    render_hosts,
)
from tenant_apiserver.kubectl_tenant.lists import Listed
from tenant_apiserver.kubectl_tenant.quotas import (
    Quotas,
    namespaces_with_quota,
    needs_ratios,
    ratios_of,
    render_missing_right,
    render_quota,
)
from tenant_apiserver.kubectl_tenant.trees import in_tree_order, render_tree, tree_document

_GOLDEN = Path(__file__).parent / "golden"
_NOW = datetime(2026, 1, 1, tzinfo=UTC)


def _tenant(name: str, namespace: str, workload: str, host: str, ready: str = "True", **spec: Any) -> Object:
    reason = "Reconciled" if ready == "True" else "GatewayNotAccepted"
    return {
        "metadata": {"name": name, "namespace": namespace},
        "spec": spec,
        "status": {
            "namespace": workload,
            "host": {"value": host, "namespace": workload},
            "gateway": {"value": True, "namespace": "tenant-root"},
            "conditions": [{"type": "Ready", "status": ready, "reason": reason}],
        },
    }


TENANTS = [
    _tenant("root", "tenant-root", "tenant-root", "example.org", "False"),
    _tenant("alice", "tenant-root", "tenant-alice", "alice.example.org", resourceQuotas={"cpu": "4", "memory": "8Gi"}),
    _tenant("bob", "tenant-root", "tenant-bob", "bob.example.org", "Unknown"),
    _tenant("dev", "tenant-alice", "tenant-alice-dev", "dev.alice.example.org", resourceQuotas={"cpu": 1}),
    _tenant("test", "tenant-alice", "tenant-alice-test", "test.alice.example.org"),
]
QUOTAS = {
    "tenant-alice": {"status": {"used": {"limits.cpu": "2500m"}}},
    "tenant-alice-dev": {"status": {"used": {"limits.cpu": "1"}}},
}
_PARENT = {"name": "cozystack", "namespace": "tenant-root"}
_SHOP, _WWW = "shop.alice.example.org", "www.alice.example.org"


def _route(name: str, namespace: str, *hostnames: str, accepted: str = "", reason: str = "") -> Object:
    conditions = [{"type": "Accepted", "status": accepted, "reason": reason}] if accepted else []
    return {
        "metadata": {"name": name, "namespace": namespace},
        "spec": {"hostnames": list(hostnames), "parentRefs": [_PARENT]},
        "status": {"parents": [{"parentRef": _PARENT, "controllerName": "c", "conditions": conditions}]},
    }


ROUTES = [
    _route("shop", "tenant-alice", _SHOP, _WWW, accepted="True", reason="Accepted"),
    _route("front", "tenant-bob", _SHOP, accepted="False", reason="HostnameConflict"),
    _route("new", "other", "new.example.org"),
]
LISTENERS = [
    {"name": "https-shop", "hostname": _SHOP, "certificateName": "cozystack-shop-tls", "ready": True},
    {
        "name": "https-www",
        "hostname": _WWW,
        "certificateName": "cozystack-www-tls",
        "ready": False,
        "reason": "CertificateNotReady",
    },
]
GATEWAYS = [{"metadata": {"name": "cozystack", "namespace": "tenant-root"}, "status": {"listeners": LISTENERS}}]
CERTIFICATES = [
    {
        "metadata": {"name": "cozystack-shop-tls", "namespace": "tenant-root"},
        "status": {"notAfter": "2026-02-01T00:00:00Z"},
    }
]
HOSTS = HostSources(
    tenants=TENANTS,
    routes=[
        *ROUTES,
        {"metadata": {"name": "idle", "namespace": "tenant-alice"}, "spec": {"hostnames": ["idle.alice.example.org"]}},
    ],
    tenantgateways=Listed(items=GATEWAYS),
    gateways=Listed(),
    certificates=Listed(items=CERTIFICATES),
)
HOSTS_OF_EVE = replace(
    HOSTS,
    tenantgateways=Listed(namespaces={"tenant-alice"}),
    certificates=Listed(namespaces={"tenant-alice"}),
)
_ALICE = {"kind": "Tenant", "namespace": "tenant-root", "name": "alice"}
ANSWER: Object = {
    "verdict": "False",
    "summary": "no Gateway serves the tenant; set spec.gateway: true",
    "facts": [
        {
            "object": {**_ALICE, "field": "status.host"},
            "status": "True",
            "value": "alice.example.org",
            "rule": "A tenant serves its domain.",
            "link": "gateways.md",
        },
        {"object": {"hidden": True}, "status": "Unknown", "rule": "Others are hidden.", "link": "visibility.md"},
        {
            "object": {**_ALICE, "field": "spec.gateway"},
            "status": "False",
            "rule": "A hostname is served by a Gateway.",
            "link": "gateways.md",
            "reason": "NoGateway",
            "message": "no Gateway serves the tenant",
            "remedy": "set spec.gateway: true",
        },
        {
            "object": {**_ALICE, "field": "status.conditions[QuotaReady]"},
            "status": "True",
            "value": "False",
            "rule": "This cluster counts no ResourceQuotas.",
            "link": "tenants.md#quotas",
            "reason": "NotEnforced",
            "message": "this cluster enforces no ResourceQuotas",
        },
    ],
}
READERS: Object = {
    "facts": [
        {
            "object": {"kind": "RoleBinding", "namespace": "tenant-root", "name": "view", "field": "subjects"},
            "value": "Group staff, User eve",
            "subjects": [{"kind": "Group", "name": "staff"}, {"kind": "User", "name": "eve"}],
        },
        {"object": _ALICE, "value": "bindings of the cluster are left out", "rule": "They are told to few."},
    ]
}


@pytest.mark.parametrize(
    ("name", "render"),
    [
        ("tree", lambda: render_tree(TENANTS, Quotas(TENANTS, QUOTAS))),
        ("tree-wide", lambda: render_tree(TENANTS, Quotas(TENANTS, QUOTAS), wide=True)),
        ("tree-of-a-tenant", lambda: render_tree(TENANTS, Quotas(TENANTS, QUOTAS), name="alice")),
        ("tree-of-a-namespace", lambda: render_tree(TENANTS, Quotas(TENANTS, QUOTAS), namespace="tenant-alice")),
        ("tree-without-the-root", lambda: render_tree(TENANTS[1:], Quotas(TENANTS[1:], QUOTAS))),
        ("tree-in-colour", lambda: render_tree(TENANTS, Quotas(TENANTS, QUOTAS), colour=True)),
        ("quota", lambda: render_quota(Quotas(TENANTS, QUOTAS).rows())),
        ("hosts", lambda: render_hosts(host_rows(HOSTS, _NOW))),
        ("hosts-hidden", lambda: render_hosts(host_rows(HOSTS_OF_EVE, _NOW))),
        ("explanation", lambda: render_explanation(ANSWER)),
        ("explanation-wide-in-colour", lambda: render_explanation(ANSWER, wide=True, colour=True)),
        ("readers", lambda: render_readers(READERS)),
    ],
)
def test_an_output_is_as_its_golden_file(name: str, render: Callable[[], str]) -> None:
    """With UPDATE_GOLDEN=1, the file is written first."""
    path = _GOLDEN / f"{name}.txt"
    if os.environ.get("UPDATE_GOLDEN"):
        path.write_text(render())
    assert path.read_text() == render()


def test_parents_are_before_their_children_also_where_a_list_has_them_behind() -> None:
    """A list is by namespace and name; a tenant in a circle, which nobody admitted, is not lost."""
    circle = [_tenant("a", "tenant-b", "tenant-a", ""), _tenant("b", "tenant-a", "tenant-b", "")]
    listed = sorted([*TENANTS, *circle], key=lambda each: (each["metadata"]["namespace"], each["metadata"]["name"]))
    names = [each["metadata"]["name"] for each in in_tree_order(listed)]
    assert names == ["root", "alice", "dev", "test", "bob", "b", "a"]


def test_an_output_without_rows_is_empty() -> None:
    assert [render_tree([], Quotas([], {})), render_quota([]), render_hosts([]), render_readers({"facts": []})] == [
        ""
    ] * 4


@pytest.mark.parametrize("name", ["x, Group system:masters", "x   ClusterRoleBinding   -   y", "x\nGroup z", 'x"y'])
def test_the_name_of_a_reader_makes_no_row_or_column(name: str) -> None:
    """RBAC takes any text for the name of a user."""
    binding = {"kind": "RoleBinding", "namespace": "tenant-root", "name": "view", "field": "subjects"}
    told = {"object": binding, "value": f"User {name}", "subjects": [{"kind": "User", "name": name}]}
    header, *rows = render_readers({"facts": [told]}).splitlines()
    assert header.split() == ["SUBJECT", "BY", "NAMESPACE", "BINDING"]
    (row,) = rows
    assert row.startswith('User "x')
    assert row.endswith("   RoleBinding   tenant-root   view")
    # an older server tells the text alone
    assert len(render_readers({"facts": [{**told, "subjects": None}]}).splitlines()) == 2


def test_a_fact_without_a_value_says_its_rule() -> None:
    fact = {"object": _ALICE, "status": "True", "rule": "A tenant has a rule.", "link": "tenants.md"}
    answer: Object = {"verdict": "True", "summary": "s", "facts": [fact]}
    assert "✓ Tenant tenant-root/alice: A tenant has a rule.\n" in render_explanation(answer)
    assert "A tenant has a rule.\n    (docs/tenants.md)\n" in render_explanation(answer, wide=True)


def test_a_tree_of_a_tenant_has_its_descendants_with_their_depth() -> None:
    found = tree_document(TENANTS, name="alice", namespace="tenant-root")["items"]
    assert [(each["depth"], each["tenant"]["metadata"]["name"]) for each in found] == [
        (0, "alice"),
        (1, "dev"),
        (1, "test"),
    ]


@pytest.mark.parametrize(
    ("host", "tenant"),
    [
        ("www.dev.alice.example.org", Key("tenant-alice", "dev")),
        ("SHOP.alice.example.org.", Key("tenant-root", "alice")),
        ("notalice.example.org", Key("tenant-root", "root")),
        ("shop.example.com", Key("tenant-root", "bob")),
    ],
)
def test_a_host_is_asked_of_the_tenant_with_the_longest_domain_around_it(host: str, tenant: Key) -> None:
    """One outside of every domain is asked of the tenant of the current namespace."""
    assert tenant_of_host(TENANTS, host, "tenant-bob") == tenant


def test_a_namespace_is_asked_of_its_tenant_or_of_the_root() -> None:
    assert tenant_of_namespace(TENANTS, "tenant-alice-dev") == Key("tenant-alice", "dev")
    assert tenant_of_namespace(TENANTS, "default") == Key("tenant-root", "root")


@pytest.mark.parametrize(
    "ask",
    [
        lambda: tenant_of_namespace([], "default"),
        lambda: tenant_of_host([], "shop.example.org", "default"),
        lambda: tenant_named([], "alice"),
        lambda: check_name([], "alice"),
        lambda: check_namespace([], "tenant-alice"),
    ],
)
def test_without_a_visible_tenant_the_right_to_ask_for_is_named_and_its_check(ask: Callable[[], object]) -> None:
    """`kubectl auth can-i get tenants -A` is no for those who see tenants by a Role, or by their names."""
    with pytest.raises(NoTenant) as problem:
        ask()
    assert str(problem.value) == (
        "no tenant that you may see; ask an administrator for a Role such as cozy:tenant:view in the namespace of the "
        "tenant's parent, and check with kubectl auth can-i get tenants/NAME -n NAMESPACE"
    )


def test_a_question_about_no_tenant_is_asked_of_the_top_one_that_is_visible() -> None:
    """Sorted by namespace, a child in tenant-alice comes before its parent in tenant-root."""
    below_alice = [TENANTS[3], TENANTS[4], TENANTS[1]]
    assert tenant_of_namespace(below_alice, "default") == Key("tenant-root", "alice")
    assert tenant_of_host(below_alice, "shop.example.com", "default") == Key("tenant-root", "alice")
    assert tenant_of_namespace(below_alice[:2], "default") == Key("tenant-alice", "dev")
    assert tenant_of_namespace([TENANTS[3], TENANTS[2]], "tenant-alice") == Key("tenant-alice", "dev")


def test_a_name_is_searched_in_all_namespaces_unless_it_is_ambiguous() -> None:
    twins = [*TENANTS, _tenant("dev", "tenant-bob", "tenant-bob-dev", "dev.bob.example.org")]
    assert tenant_named(TENANTS, "dev", preferred="default") == Key("tenant-alice", "dev")
    assert tenant_named(twins, "dev", preferred="tenant-bob") == Key("tenant-bob", "dev")
    assert tenant_named(twins, "dev", "tenant-bob", preferred="tenant-alice") == Key("tenant-bob", "dev")
    with pytest.raises(NoTenant, match="several tenants dev; choose one with -n: tenant-alice, tenant-bob"):
        tenant_named(twins, "dev", preferred="default")


def test_a_namespace_that_is_given_is_honoured_where_the_name_is_unique() -> None:
    assert tenant_named(TENANTS, "dev", "tenant-alice") == Key("tenant-alice", "dev")
    with pytest.raises(NoTenant, match="no tenant dev that you may see in namespace tenant-bob;"):
        tenant_named(TENANTS, "dev", "tenant-bob")


def test_a_namespace_of_no_visible_tenant_is_an_error() -> None:
    for known in ("", "tenant-root", "tenant-alice", "tenant-alice-dev"):
        check_namespace(TENANTS, known)
    with pytest.raises(
        NoTenant, match="namespace default is of no tenant that you may see; kubectl tenant tree -A -o wide"
    ):
        check_namespace(TENANTS, "default")


def test_the_sums_of_a_quota_are_those_of_admission() -> None:
    """Of all spellings of a resource, divided by the ratios, also of tenants below a child that declares none."""
    tenants = [
        _tenant("root", "tenant-root", "tenant-root", "example.org", resourceQuotas={"requests.cpu": "4"}),
        _tenant("alice", "tenant-root", "tenant-alice", "alice.example.org", resourceQuotas={"cpu": "16"}),
        _tenant("bob", "tenant-root", "tenant-bob", "bob.example.org"),
        _tenant("dev", "tenant-bob", "tenant-bob-dev", "dev.bob.example.org", resourceQuotas={"requests.cpu": "1"}),
    ]
    uses = {
        "tenant-root": {"status": {"used": {"requests.cpu": "100m"}}},
        "tenant-bob": {"status": {"used": {"requests.cpu": "200m"}}},
        # what is used within a quota of one's own is that one's
        "tenant-bob-dev": {"status": {"used": {"requests.cpu": "700m"}}},
    }
    ratios = ratios_of({"allocationRatios": {"cpu": "10", "memory": "1", "ephemeralStorage": "40"}})
    assert ratios is not None
    root, *_ = Quotas(tenants, uses, ratios).rows()
    assert (root.declared, root.allocated, root.used, root.left) == ("4", "2600m", "300m", "1100m")
    assert ratios_of({}) is None
    assert needs_ratios(tenants)
    assert not needs_ratios([tenants[0], *tenants[2:]])
    assert namespaces_with_quota(tenants[1:]) == ["tenant-alice", "tenant-bob-dev"]
    assert namespaces_with_quota(tenants) == ["tenant-root", "tenant-alice", "tenant-bob", "tenant-bob-dev"]


def test_an_unknown_use_names_the_missing_right() -> None:
    text = render_missing_right(["tenant-alice", "tenant-bob", "tenant-carol"], ["tenant-alice", "tenant-bob"])
    assert text.startswith("note: USED is not known in tenant-alice and 1 more: you may not list resourcequotas there;")
    assert text.endswith("kubectl auth can-i list resourcequotas -n tenant-alice\n")
    assert render_missing_right(["tenant-carol"], ["tenant-alice"]) == ""


def test_a_hidden_certificate_is_not_shown_as_none() -> None:
    rows = host_rows(HOSTS_OF_EVE, _NOW)
    assert {(each.certificate, each.hidden) for each in rows if each.tenant} == {(None, True)}
    note = render_hidden_certificates(rows)
    assert note.startswith("note: certificates in tenant-root are not visible to you: you may not list tenantgateways ")
    assert note.endswith(": kubectl tenant explain host idle.alice.example.org\n")
    assert render_hidden_certificates(host_rows(HOSTS, _NOW)) == ""
    named = replace(HOSTS, certificates=Listed(namespaces=frozenset()))
    [shop, *_] = [each for each in host_rows(named, _NOW) if each.hostname == _SHOP]
    assert (shop.certificate, shop.days, shop.hidden) == ("cozystack-shop-tls", None, True)
    # without cert-manager there are none
    missing = host_rows(replace(HOSTS, certificates=Listed()), _NOW)
    assert not any(each.hidden for each in missing)


def test_a_name_that_no_visible_tenant_has_is_an_error() -> None:
    check_name(TENANTS, "")
    check_name([], "", "tenant-bob")
    check_name(TENANTS, "dev")
    check_name(TENANTS, "dev", "tenant-alice")
    with pytest.raises(NoTenant, match="no tenant missing that you may see; kubectl tenant tree -A"):
        check_name(TENANTS, "missing")
    with pytest.raises(NoTenant, match="no tenant dev that you may see in namespace tenant-bob;"):
        check_name(TENANTS, "dev", "tenant-bob")


_ESCAPE = "\x1b]0;pwned\x07\x1b[2J"


def test_no_text_of_an_object_controls_the_terminal() -> None:
    """Subjects of bindings, and messages of other controllers, are any text."""
    binding = {"kind": "RoleBinding", "namespace": "tenant-root", "name": "b", "field": "subjects"}
    fact = {
        "object": {"kind": "Tenant", "namespace": "tenant-root", "name": "alice"},
        "status": "False",
        "rule": "r",
        "link": "l",
        "value": f"v{_ESCAPE}",
        "message": f"m\n✓ all is well {_ESCAPE}",
        "reason": "R\u202e",
        "remedy": f"curl{_ESCAPE}",
    }
    answer = {"verdict": "False", "summary": f"s{_ESCAPE}", "facts": [fact]}
    seen = [{"kind": "User", "name": _ESCAPE}]
    readers = {
        "facts": [{"object": binding, "status": "True", "rule": "r", "link": "l", "value": "v", "subjects": seen}]
    }
    tenant = _tenant(f"x{_ESCAPE}", "tenant-root", "tenant-x", f"h{_ESCAPE}")
    change = {"object": {"apiVersion": "v1", "kind": "Namespace", "name": "n"}, "after": {"a": f"{_ESCAPE}\u202e"}}
    for text in (
        render_explanation(answer, wide=True),
        render_readers(readers),
        render_tree([tenant], Quotas([], {})),
        render_differences({"status": {"changes": [change]}}),
        render_notes({"status": {"problems": [_ESCAPE]}}),
    ):
        assert all(each.isprintable() for each in text.split("\n")), text
    assert "m\\n✓ all is well" in render_explanation(answer)
    # our own colours remain
    assert "\x1b[31m✗\x1b[0m" in render_explanation(answer, colour=True)
