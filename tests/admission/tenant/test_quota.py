from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from admission.chain import Chain
from admission.tenant.quota import TenantQuota, canonical_key, validate_quota_change
from admission.tenant.tree_lock import TreeGuard
from apiserver.meta import errors
from registry import quantity
from registry.tenant.summary import TenantSummary, summarize
from registry.tenant.tree import TenantTree
from tests.tenant_objects import attributes, facts, root, tenant, tree_of


def quotas(name: str, namespace: str = "tenant-root", **amounts: str | int) -> TenantSummary:
    return facts(name, namespace, spec={"resourceQuotas": amounts})


def problems(tree: TenantTree, new: TenantSummary, old: TenantSummary | None = None) -> list[str]:
    return [str(each) for each in validate_quota_change(tree, new, old)]


PARENT = quotas("alpha", cpu=10)


@pytest.mark.parametrize(
    ("others", "new", "old", "expected"),
    [
        pytest.param([PARENT], quotas("beta", "tenant-alpha", cpu=10), None, [], id="all that the parent has"),
        pytest.param(
            [PARENT],
            quotas("beta", "tenant-alpha", cpu=11),
            None,
            ["11 is more than the 10 that is left of the quota of the parent tenant"],
            id="more than the parent has",
        ),
        pytest.param(
            [PARENT, quotas("gamma", "tenant-alpha", cpu="7500m")],
            quotas("beta", "tenant-alpha", cpu=3),
            None,
            ["3 is more than the 2500m that is left of the quota of the parent tenant"],
            id="more than a sibling leaves",
        ),
        pytest.param(
            [PARENT, quotas("gamma", "tenant-alpha", cpu="7500m")],
            quotas("beta", "tenant-alpha", cpu="2.5"),
            None,
            [],
            id="what a sibling leaves, in another spelling",
        ),
        pytest.param([PARENT], quotas("beta", "tenant-alpha", memory="1Ti"), None, [], id="a key nobody bounds"),
        pytest.param(
            [PARENT],
            quotas("beta", "tenant-alpha", **{"requests.cpu": 11}),
            None,
            ["11 is more than the 10 that is left of the quota of the parent tenant"],
            id="an alias of what the parent declares",
        ),
        pytest.param(
            [
                quotas("alpha", "tenant-root", **{"requests.memory": "2Gi"}),
                quotas("gamma", "tenant-alpha", memory="1Gi"),
            ],
            quotas("beta", "tenant-alpha", memory="1Gi"),
            None,
            [],
            id="what a sibling leaves under another name",
        ),
        pytest.param(
            [quotas("alpha", "tenant-root", **{"requests.storage": 5})],
            quotas("beta", "tenant-alpha", storage=6),
            None,
            ["6 is more than the 5 that is left of the quota of the parent tenant"],
            id="storage is requests.storage",
        ),
        pytest.param(
            [quotas("alpha", "tenant-root", cpu=10, **{"requests.cpu": 4})],
            quotas("beta", "tenant-alpha", cpu=5),
            None,
            ["5 is more than the 4 that is left of the quota of the parent tenant"],
            id="the lesser of both names binds",
        ),
        pytest.param(
            [PARENT], quotas("beta", "tenant-alpha", **{"limits.cpu": 11}), None, [], id="limits are something else"
        ),
        pytest.param(
            [PARENT],
            quotas("beta", "tenant-alpha", **{"requests.cpu": 9}),
            quotas("beta", "tenant-alpha", cpu=9),
            [],
            id="another name for the same",
        ),
        pytest.param(
            [PARENT, facts("beta", "tenant-alpha")],
            quotas("c", "tenant-alpha-beta", cpu=11),
            None,
            ["11 is more than the 10 that is left of the quota of the nearest ancestor that declares it"],
            id="bounded by the nearest ancestor that declares the key",
        ),
        pytest.param(
            [PARENT, facts("beta", "tenant-alpha"), quotas("c", "tenant-alpha-beta", cpu=8)],
            quotas("gamma", "tenant-alpha", cpu=3),
            None,
            ["3 is more than the 2 that is left of the quota of the parent tenant"],
            id="what a nephew claims past a sibling that declares nothing",
        ),
        pytest.param(
            [PARENT, quotas("beta", "tenant-alpha", cpu=6)],
            quotas("alpha", cpu=5),
            PARENT,
            ["5 is less than the 6 that child tenants declare"],
            id="a parent is lowered below its children's sum",
        ),
        pytest.param(
            [PARENT, quotas("beta", "tenant-alpha", cpu=6)],
            quotas("alpha", cpu=6),
            PARENT,
            [],
            id="a parent is lowered to its children's sum",
        ),
        pytest.param(
            [facts("alpha"), quotas("beta", "tenant-alpha", cpu=6)],
            quotas("alpha", cpu=5),
            facts("alpha"),
            ["5 is less than the 6 that child tenants declare"],
            id="a parent begins to declare less than its children",
        ),
        pytest.param(
            [quotas("alpha", cpu=1), quotas("beta", "tenant-alpha", cpu=6)],
            quotas("alpha", cpu=5),
            quotas("alpha", cpu=1),
            [],
            id="an excess of old may shrink in steps",
        ),
        pytest.param(
            [PARENT, quotas("beta", "tenant-alpha", cpu=6)],
            facts("alpha"),
            PARENT,
            [],
            id="a parent that nobody bounds may cease to declare",
        ),
        pytest.param(
            [PARENT, quotas("beta", "tenant-alpha", cpu=20)],
            facts("beta", "tenant-alpha", spec={"resourceQuotas": {"cpu": "20"}, "etcd": True}),
            quotas("beta", "tenant-alpha", cpu=20),
            [],
            id="what stands and does not change is not judged",
        ),
        pytest.param(
            [quotas("alpha", cpu=3), quotas("beta", "tenant-alpha", cpu=5), quotas("c", "tenant-alpha-beta", cpu=5)],
            facts("beta", "tenant-alpha"),
            quotas("beta", "tenant-alpha", cpu=5),
            [],
            id="an excess of old that does not grow is not judged",
        ),
        pytest.param(
            [quotas("alpha", cpu=3), quotas("beta", "tenant-alpha", cpu=2), quotas("c", "tenant-alpha-beta", cpu=5)],
            facts("beta", "tenant-alpha"),
            quotas("beta", "tenant-alpha", cpu=2),
            ["5 is more than the 3 that is left of the quota of the parent tenant"],
            id="a bound that goes lets an excess of old through",
        ),
        pytest.param(
            [quotas("alpha", cpu="damaged"), quotas("beta", "tenant-alpha", cpu=6)],
            quotas("gamma", "tenant-alpha", cpu=99),
            None,
            [],
            id="a damaged quantity bounds nobody",
        ),
        pytest.param(
            [quotas("alpha", cpu=0)],
            quotas("beta", "tenant-alpha", cpu="1m"),
            None,
            ["1m is more than the 0 that is left of the quota of the parent tenant"],
            id="a declared zero is a bound",
        ),
    ],
)
def test_verdicts(
    others: Sequence[TenantSummary], new: TenantSummary, old: TenantSummary | None, expected: Sequence[str]
) -> None:
    (key, *_) = sorted(new.quotas, reverse=True) or ["cpu"]
    assert problems(tree_of(*others), new, old) == [f"spec.resourceQuotas[{key}]: Forbidden: {why}" for why in expected]


def test_every_key_is_judged_and_told_at_once() -> None:
    tree = tree_of(quotas("alpha", cpu=1, memory="1Gi"))

    found = problems(tree, quotas("beta", "tenant-alpha", cpu=2, memory="2Gi", pods=3))

    assert [each.split(":")[0] for each in found] == ["spec.resourceQuotas[cpu]", "spec.resourceQuotas[memory]"]


def test_a_tenant_whose_namespace_does_not_follow_the_layout_is_a_parent_all_the_same() -> None:
    """R-050, PEER-21."""
    odd = tenant("alpha", spec={"resourceQuotas": {"cpu": 1}})
    odd["status"]["namespace"] = "somewhere"

    assert problems(tree_of(summarize(odd)), quotas("beta", "somewhere", cpu=2))


def test_very_many_keys_are_judged_in_no_more_than_the_time_of_reading_them(monkeypatch: pytest.MonkeyPatch) -> None:
    """ATTACK-13: who may write one Tenant must not be able to stop the server for everybody."""
    many = {f"count/a{n}": "1" for n in range(5_000)}
    parent, read = quotas("alpha", **many), 0

    def counting(key: str) -> str:
        nonlocal read
        read += 1
        return canonical_key(key)

    monkeypatch.setattr("admission.tenant.quota.canonical_key", counting)
    tree = tree_of(parent, *(quotas(f"c{n}", "tenant-alpha", **many) for n in range(3)))
    assert len(problems(tree, quotas("beta", "tenant-alpha", **many))) == len(many)
    assert read <= 20 * len(many)


async def test_the_plugin_answers_422_with_a_cause_a_key() -> None:
    plugin = TenantQuota(tree=tree_of(quotas("alpha", cpu=1)))

    with pytest.raises(errors.Invalid) as refused:
        await plugin.validate(attributes("CREATE", tenant("b", "tenant-alpha", spec={"resourceQuotas": {"cpu": 2}})))

    cause = refused.value.causes[0]
    assert (cause["reason"], cause["field"]) == ("FieldValueForbidden", "spec.resourceQuotas[cpu]")


async def test_of_fifty_parallel_creates_exactly_as_many_are_admitted_as_fit() -> None:
    """API-18."""
    tree = tree_of(root(resourceQuotas={"cpu": 17}))

    class Cache:
        async def wait_for_own_writes(self) -> None:
            await asyncio.sleep(0)

    chain = Chain([TreeGuard(cache=Cache()), TenantQuota(tree=tree)])

    async def create(number: int) -> bool:
        new = tenant(f"t{number}", spec={"resourceQuotas": {"cpu": 1}})
        try:
            async with chain.validating(attributes("CREATE", new)):
                await asyncio.sleep(0)
                tree.put(summarize(new))
        except errors.Invalid:
            return False
        return True

    admitted = await asyncio.gather(*(create(number) for number in range(50)))

    assert sum(admitted) == 17


# A model that knows nothing of the code: every tenant's claim, from scratch, for one key.

Amounts = st.one_of(st.none(), st.integers(0, 6), st.sampled_from(["500m", "1500m", "2"]))
Place = tuple[str, str]


class Model:
    """What each Tenant declares, by (namespace, name), and whether all of it holds together."""

    def __init__(self) -> None:
        self.declared: dict[Place, Any] = {("tenant-root", "root"): 8}

    def namespace(self, place: Place) -> str:
        home, name = place
        if name == "root":
            return "tenant-root"
        return f"tenant-{name}" if home == "tenant-root" else f"{home}-{name}"

    def claim(self, place: Place) -> Any:
        own = self.declared[place]
        if own is not None:
            return quantity.parse(own)
        return self.below(place)

    def below(self, place: Place) -> Any:
        namespace = self.namespace(place)
        return sum(self.claim(each) for each in self.declared if each[0] == namespace and each[1] != "root")

    def holds(self) -> bool:
        return all(
            own is None or self.below(place) <= quantity.parse(own) for place, own in list(self.declared.items())
        )

    def facts(self, place: Place) -> TenantSummary:
        home, name = place
        own = self.declared[place]
        return facts(name, home, spec={"resourceQuotas": {} if own is None else {"cpu": own}})


PLACES = [
    ("tenant-root", "root"),
    ("tenant-root", "a"),
    ("tenant-root", "b"),
    ("tenant-a", "c"),
    ("tenant-a", "d"),
    ("tenant-a-c", "e"),
    ("tenant-a-c", "f"),
]


@given(st.lists(st.tuples(st.sampled_from(PLACES), Amounts), max_size=25))
def test_a_write_is_refused_if_and_only_if_it_would_break_the_rule(writes: list[tuple[Place, Any]]) -> None:
    model = Model()
    tree = TenantTree([model.facts(("tenant-root", "root"))])
    for place, amount in writes:
        home, _ = place
        if place not in model.declared and all(model.namespace(each) != home for each in model.declared):
            continue
        before = dict(model.declared)
        old = tree.get(model.facts(place).key) if place in model.declared else None
        model.declared[place] = amount
        new = model.facts(place)

        refused = bool(validate_quota_change(tree, new, old))

        assert refused is not model.holds(), (place, amount, before)
        if refused:
            model.declared = before
        else:
            tree.put(new)
