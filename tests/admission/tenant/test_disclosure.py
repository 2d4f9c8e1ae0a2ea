"""A refusal tells its caller only of Tenants that the caller could get (ATTACK-15)."""

from __future__ import annotations

from collections.abc import Collection

import pytest

from admission.tenant.disclosure import Disclosure
from apiserver.authorization.authorizer import AccessAttributes, Decision
from apiserver.meta.errors import ServiceUnavailable
from apiserver.request.context import User
from tests.tenant_objects import tenant_summary

ALICE = User(name="alice")
CHILDREN = [tenant_summary(name, "tenant-alpha") for name in ("b", "c", "d")]


class StubAuthorizer:
    """Allows the given (namespace, name) pairs and counts the checks."""

    def __init__(self, *allowed: tuple[str, str]) -> None:
        self._allowed = allowed
        self.checks: list[tuple[str, str]] = []

    async def authorize(self, attributes: AccessAttributes) -> Decision:
        assert (attributes.user, attributes.verb, attributes.resource) == (ALICE, "get", "tenants")
        self.checks.append((attributes.namespace, attributes.name))
        return Decision(allowed=self.checks[-1] in self._allowed)


class UnreachableAuthorizer:
    async def authorize(self, attributes: AccessAttributes) -> Decision:
        raise ServiceUnavailable("the cluster does not answer")


@pytest.mark.parametrize(
    ("allowed", "names"),
    [
        pytest.param([("tenant-alpha", "")], ["b", "c", "d"], id="all of the namespace"),
        pytest.param([("tenant-alpha", "c")], ["c"], id="one by name"),
        pytest.param([("tenant-root", "")], [], id="another namespace"),
    ],
)
async def test_children_are_visible_if_the_caller_may_get_them(
    allowed: Collection[tuple[str, str]], names: list[str]
) -> None:
    visible = await Disclosure(StubAuthorizer(*allowed)).visible(ALICE, CHILDREN)
    assert [each.key.name for each in visible] == names


async def test_the_number_of_reviews_is_bounded() -> None:
    authorizer = StubAuthorizer()
    many = [tenant_summary(f"t{number}", "tenant-alpha") for number in range(1000)]
    assert await Disclosure(authorizer).visible(ALICE, many) == []
    assert not await Disclosure(authorizer).tells_amounts_in(ALICE, [f"tenant-{number}" for number in range(1000)])
    assert len(authorizer.checks) <= 22


async def test_amounts_are_told_to_who_may_get_the_tenants_that_they_belong_to() -> None:
    authorizer = StubAuthorizer(("tenant-root", "alpha"), ("tenant-alpha", ""))
    disclosure, alpha = Disclosure(authorizer), tenant_summary("alpha")
    assert await disclosure.tells_amount_of(ALICE, alpha)
    assert not await disclosure.tells_amount_of(ALICE, tenant_summary("beta"))
    assert await disclosure.tells_amounts_in(ALICE, ["tenant-alpha"])
    assert not await disclosure.tells_amounts_in(ALICE, ["tenant-alpha", "tenant-alpha-b"])


async def test_the_platform_may_keep_all_amounts_to_itself() -> None:
    disclosure = Disclosure(StubAuthorizer(("tenant-root", "alpha"), ("", "")), tells_amounts=lambda: False)
    assert not await disclosure.tells_amount_of(ALICE, tenant_summary("alpha"))
    assert not await disclosure.tells_amounts_in(ALICE, ["tenant-alpha"])


async def test_nothing_is_told_while_the_authorizer_cannot_decide() -> None:
    disclosure = Disclosure(UnreachableAuthorizer())
    assert await disclosure.visible(ALICE, CHILDREN) == []
    assert not await disclosure.tells_amount_of(ALICE, tenant_summary("alpha"))
