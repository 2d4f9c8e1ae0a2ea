"""The states of delegations, counted by TenantGateway."""

from __future__ import annotations

from apiserver.meta.resource import Key
from controller.tenantgateway.delegation.ledger import CONNECTED, DelegationLedger, DelegationState
from controller.tenantgateway.delegation.model import Participant
from controller.tenantgateway.model import RouteId

GATEWAY = Key("tenant-root", "cozystack")


def root(name: str) -> Participant:
    return Participant(id=RouteId("tenant-root", name, "HTTPRoute"), uid="u", gateways=(GATEWAY,))


def test_a_root_that_delegates_nothing_may_remain_alone_and_change() -> None:
    """It has no part in the counts, which are gone with those of the last root that has."""
    ledger = DelegationLedger(lambda _: None)
    delegating, plain = root("a"), root("b")
    state = DelegationState(RouteId("tenant-finance", "finance", "HTTPRoute"), CONNECTED)
    ledger.record(delegating.id, delegating, (state,))
    ledger.record(plain.id, plain, ())
    ledger.record(delegating.id, None, ())
    assert ledger.summary(GATEWAY).counts == ()
    ledger.record(plain.id, plain, (state,))
    assert ledger.summary(GATEWAY).counts == ((CONNECTED, 1),)
    ledger.record(plain.id, None, ())
    assert ledger.summary(GATEWAY).counts == ()
