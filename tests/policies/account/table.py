"""The table of writes of our ServiceAccount, with the refusal that each must get from its limits, if any.

Every case runs in the test process and against each cluster, as a member of system:masters of the account's name: the
limits hold whatever RBAC grants.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from tests.policies.account import (
    core_cases,
    flat_route_cases,
    gateway_cases,
    platform_route_cases,
    rbac_cases,
    release_cases,
)
from tests.policies.account.case import AccountCase


def _cases() -> Iterator[AccountCase]:
    yield from core_cases.namespaces()
    yield from core_cases.secrets()
    yield from core_cases.configmaps()
    yield from core_cases.tenant_secrets()
    yield from core_cases.named_contents()
    yield from core_cases.network_policies()
    yield from core_cases.security_groups()
    yield from core_cases.service_accounts()
    yield from rbac_cases.role_bindings()
    yield from rbac_cases.bindings_of_own_roles()
    yield from rbac_cases.roles()
    yield from release_cases.releases()
    yield from gateway_cases.gateways()
    yield from flat_route_cases.flat_routes()
    yield from gateway_cases.issuers()
    yield from gateway_cases.certificates()
    yield from gateway_cases.route_statuses()
    yield from platform_route_cases.platform_routes()
    yield from gateway_cases.events_and_leases()
    yield from gateway_cases.api_services()


def _by_another_account(admitted: Iterator[AccountCase]) -> Iterator[AccountCase]:
    """The limits are about our account only: the first refused write of each kind is admitted for another one."""
    refused = {(case.kind, case.subresource): case for case in reversed([*admitted]) if case.refusal}
    for case in refused.values():
        stranger = "system:serviceaccount:cozy-system:another"
        yield replace(case, id=f"{case.id}, by another account", user=stranger, refusal="")


CASES = (*_cases(), *_by_another_account(_cases()))
