"""Objects that the user may not get do not change an answer by a single byte (ATTACK-15)."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from apiserver.meta.resource import Key
from registry.cluster.interface import (
    CLUSTERROLEBINDINGS,
    CLUSTERROLES,
    NAMESPACES,
    ROLEBINDINGS,
    ROLES,
    ClusterResource,
)
from registry.explain.read import CERTIFICATES, GATEWAYS
from registry.tenantgateway.types import TENANTGATEWAYS
from tests.registry.explain.explain_world import (
    ALICE,
    ExplainWorld,
    InNamespaces,
    Recorded,
    Stored,
    condition,
    metadata,
    route,
    tenantgateway,
)
from tests.registry.explain.route_kinds import GRPCROUTES, HTTPROUTES, TLSROUTES

# eve may get everything in the namespace of her tenant, and the tenant itself
_EVE_SEES = InNamespaces({"tenant-alice"}, {("tenants", "tenant-root", "alice")})
_HOSTS = (
    "alice.example.org",
    "shop.alice.example.org",
    "www.alice.example.org",
    "bob.example.org",
    "x.bob.example.org",
    "x.dev.alice.example.org",
    "example.com",
)
_NAMES = ("a", "bob", "cozystack", "shop")
_HIDDEN_NAMESPACES = ("tenant-root", "tenant-bob", "tenant-alice-dev", "default")
_VISIBLE: tuple[Stored, ...] = (
    (TENANTGATEWAYS, tenantgateway("tenant-alice", [{"name": "https", "hostname": _HOSTS[1], "ready": True}])),
    (HTTPROUTES, route("shop", "tenant-alice", _HOSTS[1], conditions=[condition("Accepted", reason="Accepted")])),
)
_SUBJECTS = (
    "tenant",
    *(f"host/{each}" for each in _HOSTS),
    *(f"route/{namespace}/shop" for namespace in ("tenant-alice", *_HIDDEN_NAMESPACES)),
    *(f"namespace/{each}" for each in ("tenant-alice", *_HIDDEN_NAMESPACES)),
    "user/eve",
)


_LAGGING = (
    "host/x.dev.alice.example.org",
    "host/dev.alice.example.org",
    "host/x.bob.example.org",
    "host/example.com",
    "tenant",
    "namespace/tenant-alice-dev",
)


@st.composite
def _hidden_tenants(draw: st.DrawFn) -> dict[Key, dict[str, Any]]:
    keys = st.builds(Key, st.sampled_from(["tenant-root", "tenant-bob"]), st.sampled_from(["bob", "carol", "dev"]))
    specs = st.fixed_dictionaries({}, optional={"host": st.sampled_from(_HOSTS[1:]), "gateway": st.booleans()})
    found = draw(st.dictionaries(keys, specs, max_size=3))
    # more than a question has reviews
    crowd, host = draw(st.sampled_from([0, 0, 25])), draw(st.sampled_from(_HOSTS[1:]))
    return {**found, **{Key("tenant-root", f"crowd{number}"): {"host": host} for number in range(crowd)}}


def _hidden_route(kind: ClusterResource, name: str, namespace: str, host: str, parent: str) -> Stored:
    """A route of a hidden namespace on the Gateway of a Tenant that may be visible."""
    found = route(name, namespace, host, conditions=[condition("Accepted", reason="Accepted")])
    found["spec"]["parentRefs"] = [{"name": "cozystack", "namespace": parent}]
    return kind, found


@st.composite
def _hidden_objects(draw: st.DrawFn) -> list[Stored]:
    namespaces, names = st.sampled_from(_HIDDEN_NAMESPACES), st.sampled_from(_NAMES)
    host = st.sampled_from(_HOSTS)
    objects = st.one_of(
        st.builds(
            _hidden_route,
            st.sampled_from([HTTPROUTES, GRPCROUTES, TLSROUTES]),
            names,
            namespaces,
            host,
            st.sampled_from(["tenant-alice", "tenant-root"]),
        ),
        st.builds(lambda each: (TENANTGATEWAYS, tenantgateway(each, [])), namespaces),
        st.builds(lambda name, each: (GATEWAYS, {"metadata": metadata(name, each)}), names, namespaces),
        st.builds(lambda name, each: (CERTIFICATES, {"metadata": metadata(name, each)}), names, namespaces),
        st.builds(lambda each: (NAMESPACES, {"metadata": {"name": each, "labels": {"a": "b"}}}), namespaces),
        st.builds(lambda name, each: (ROLEBINDINGS, {"metadata": metadata(name, each)}), names, namespaces),
    )
    found = draw(st.lists(objects, max_size=5))
    unique = {
        (each.plural, obj["metadata"].get("namespace"), obj["metadata"]["name"]): (each, obj) for each, obj in found
    }
    return list(unique.values())


@pytest.mark.parametrize("gateway", ["own", "inherited", ""])
@settings(max_examples=60, deadline=None)
@given(
    tenants=_hidden_tenants(),
    objects=_hidden_objects(),
    attached=st.lists(st.sampled_from(_HIDDEN_NAMESPACES), unique=True, max_size=2),
    ages=st.lists(st.sampled_from(["", "2020-01-01T00:00:00Z", "2024-01-01T00:00:00Z"]), min_size=3, max_size=3),
    about=st.sampled_from(_SUBJECTS),
)
async def test_hidden_objects_do_not_change_an_answer(
    gateway: str,
    tenants: dict[Key, dict[str, Any]],
    objects: list[Stored],
    attached: list[str],
    ages: list[str],
    about: str,
) -> None:
    seen: dict[Key, dict[str, Any]] = {
        Key("tenant-root", "root"): {"gateway": gateway == "inherited"},
        ALICE: {"gateway": gateway == "own"},
    }
    reviews, reviews_among_others = Recorded(_EVE_SEES), Recorded(_EVE_SEES)
    (resource, own), *others = _VISIBLE
    visible = [(resource, {**own, "spec": {**own["spec"], "attachedNamespaces": attached}}), *others]
    alone = ExplainWorld(seen, visible, authorizer=reviews)
    created = dict(zip(tenants, ages, strict=False))
    among_others = ExplainWorld(
        {**tenants, **seen}, [*visible, *objects], authorizer=reviews_among_others, created=created
    )
    assert await alone.explain(about) == await among_others.explain(about)
    # each review takes time, which is seen
    assert len(reviews.reviews) == len(reviews_among_others.reviews)


@settings(max_examples=60, deadline=None)
@given(
    before=_hidden_tenants(),
    now=st.lists(_hidden_tenants(), min_size=2, max_size=2),
    roots=st.lists(st.sampled_from([{}, {"host": "example.com"}, {"gateway": True}]), min_size=2, max_size=2),
    about=st.sampled_from(_LAGGING),
)
async def test_hidden_specs_do_not_change_an_answer_while_statuses_lag(
    before: dict[Key, dict[str, Any]],
    now: list[dict[Key, dict[str, Any]]],
    roots: list[dict[str, Any]],
    about: str,
) -> None:
    """Statuses that the user may read are the same, and tell what specs were before."""
    root, seen = Key("tenant-root", "root"), {ALICE: {"gateway": True}, Key("tenant-alice", "dev"): {}}
    told = {root: {}, **before, **seen}
    answers, counts = [], []
    for own, hidden in zip(roots, now, strict=True):
        reviews = Recorded(_EVE_SEES)
        world = ExplainWorld({root: own, **hidden, **seen}, _VISIBLE, authorizer=reviews, told=told)
        answers.append(await world.explain(about))
        counts.append(len(reviews.reviews))
    assert answers[0] == answers[1]
    assert counts[0] == counts[1]


@pytest.mark.parametrize(
    ("about", "most"),
    [("namespace/tenant-bob", 5), ("host/x.bob.example.org", 16), (f"host/{'a.' * 100}bob.example.org", 32)],
)
async def test_a_question_costs_few_reviews(about: str, most: int) -> None:
    recorded = Recorded(_EVE_SEES)
    seen: dict[Key, dict[str, Any]] = {Key("tenant-root", "root"): {}, ALICE: {"gateway": True}}
    await ExplainWorld(seen, authorizer=recorded).explain(about)
    assert len(recorded.reviews) <= most


async def test_a_tenant_is_none_of_a_domain_or_namespace_that_only_its_name_suggests() -> None:
    seen: dict[Key, dict[str, Any]] = {
        Key("tenant-root", "root"): {},
        ALICE: {"gateway": True},
        Key("tenant-root", "eva"): {"host": "eva.test"},
    }
    world = ExplainWorld(seen)
    assert b"tenant-root/eva" not in await world.explain("host/x.eva.example.org")
    assert b"belongs to tenant tenant-root/eva" in await world.explain("host/x.eva.test")


_QUOTAS = st.fixed_dictionaries(
    {}, optional={key: st.sampled_from(["1", "3", "7"]) for key in ("cpu", "requests.cpu", "limits.cpu", "pods")}
)
_HIDDEN_TENANTS = (
    ("tenant-root", "root"),
    ("tenant-root", "bob"),
    ("tenant-bob", "carol"),
    ("tenant-alice-dev", "low"),
    ("tenant-alice-test", "low"),
    ("tenant-alice-dev-low", "lowest"),
)


@settings(max_examples=60, deadline=None)
@given(
    own=_QUOTAS,
    dev=_QUOTAS,
    hidden=st.lists(st.dictionaries(st.sampled_from(_HIDDEN_TENANTS), _QUOTAS, max_size=5), min_size=2, max_size=2),
    about=st.sampled_from(["tenant", "host/shop.alice.example.org"]),
)
async def test_hidden_quotas_do_not_change_an_answer(
    own: dict[str, str], dev: dict[str, str], hidden: list[dict[tuple[str, str], dict[str, str]]], about: str
) -> None:
    """Above the tenant, beside it, and below its children."""
    seen: dict[Key, dict[str, Any]] = {
        ALICE: {"resourceQuotas": own},
        Key("tenant-alice", "dev"): {"resourceQuotas": dev},
        Key("tenant-alice", "test"): {},
    }
    worlds = []
    for each in hidden:
        tenants = {Key(*key): {"resourceQuotas": quotas} for key, quotas in each.items()}
        tenants.setdefault(Key("tenant-root", "root"), {})
        worlds.append(ExplainWorld({**tenants, **seen}, authorizer=_EVE_SEES))
    assert await worlds[0].explain(about) == await worlds[1].explain(about)


# eve may ask about other users, and who may see her tenant, by what is bound in its parent's namespace
_EVE_ASKS = InNamespaces(
    {"tenant-alice"},
    {("tenants", "tenant-root", "alice"), ("subjectaccessreviews", "", ""), ("rolebindings", "tenant-root", "")},
)
_VIEW = {"metadata": {"name": "view"}, "rules": [{"apiGroups": ["*"], "resources": ["*"], "verbs": ["get"]}]}


def _binding(name: str, namespace: str, user: str, kind: str = "ClusterRole") -> dict[str, Any]:
    return {
        "metadata": metadata(name, namespace),
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": kind, "name": "view"},
        "subjects": [{"kind": "User", "apiGroup": "rbac.authorization.k8s.io", "name": user}],
    }


@st.composite
def _hidden_rights(draw: st.DrawFn) -> list[Stored]:
    """Bindings of the cluster, and Roles and bindings in other namespaces."""
    namespaces = st.sampled_from([each for each in _HIDDEN_NAMESPACES if each != "tenant-root"])
    users, kinds = st.sampled_from(["mallory", "eve", "bob"]), st.sampled_from(["Role", "ClusterRole"])
    objects = st.one_of(
        st.builds(
            lambda name, each, user, kind: (ROLEBINDINGS, _binding(name, each, user, kind)),
            st.sampled_from(_NAMES),
            namespaces,
            users,
            kinds,
        ),
        st.builds(lambda name, user: (CLUSTERROLEBINDINGS, _binding(name, "", user)), st.sampled_from(_NAMES), users),
        st.builds(lambda each: (ROLES, {**_VIEW, "metadata": metadata("view", each)}), namespaces),
    )
    found = draw(st.lists(objects, max_size=6))
    unique = {
        (each.plural, obj["metadata"].get("namespace"), obj["metadata"]["name"]): (each, obj) for each, obj in found
    }
    return list(unique.values())


@settings(max_examples=60, deadline=None)
@given(
    tenants=_hidden_tenants(),
    rights=_hidden_rights(),
    objects=_hidden_objects(),
    about=st.sampled_from(["who-can-see", "user/mallory", "user/system:serviceaccount:tenant-bob:default", "user/a/b"]),
)
async def test_hidden_objects_and_rights_do_not_change_what_is_told_of_others(
    tenants: dict[Key, dict[str, Any]], rights: list[Stored], objects: list[Stored], about: str
) -> None:
    seen: dict[Key, dict[str, Any]] = {Key("tenant-root", "root"): {}, ALICE: {}}
    told: tuple[Stored, ...] = (
        *_VISIBLE,
        (CLUSTERROLES, _VIEW),
        (ROLEBINDINGS, _binding("seen", "tenant-root", "carol")),
    )
    hidden = [
        (each, obj)
        for each, obj in objects
        if each is not ROLEBINDINGS or obj["metadata"]["namespace"] not in ("tenant-root", "tenant-alice")
    ]
    places = {(each.plural, obj["metadata"].get("namespace"), obj["metadata"]["name"]) for each, obj in rights}
    hidden = [
        (each, obj)
        for each, obj in hidden
        if (each.plural, obj["metadata"].get("namespace"), obj["metadata"]["name"]) not in places
    ]
    alone = ExplainWorld(seen, told, authorizer=_EVE_ASKS)
    among_others = ExplainWorld({**tenants, **seen}, [*told, *rights, *hidden], authorizer=_EVE_ASKS)
    answer = await alone.explain(about)
    assert answer == await among_others.explain(about)
    assert (b"carol" in answer) == (about == "who-can-see")
