"""The rows of the table for kinds that show objects of the cluster in another form."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from registry.cluster.interface import SECRETS
from registry.securitygroup.convert import GROUP_LABEL, MEMBERSHIP_PREFIX, POLICIES
from registry.tenantsecret.convert import PLURAL, SECRET_LABEL
from registry.tenantsecret.strategy import ACTED_UPON_PREFIX, ACTED_UPON_TYPES
from tenant_apiserver.least_privilege import places
from tenant_apiserver.least_privilege.right import Limit, Right, Role
from tenant_apiserver.wiring.options import OPTION_KINDS

_OPTIONS_TEST = "tests/e2e/projections/test_options.py::test_options_follow_what_the_cluster_has"
TENANTSECRETS_ROLE = Role("tenant-apiserver:tenantsecrets", file="clusterrole.yaml", component="tenantsecrets")
"""Its binding has the same name. Without it, no Secrets are read but those that the other roles name."""


def projection_rights(role: Role) -> Sequence[Right]:
    return _secrets(), _policies(role), *_option_sources(role)


def _secrets() -> Right:
    """RBAC cannot limit reads to a label, so this right is off unless an administrator adds it."""
    own_name = f"!variables.name.startsWith('{ACTED_UPON_PREFIX}')"
    return Right(
        role=TENANTSECRETS_ROLE,
        group=SECRETS.group,
        resources=[SECRETS.plural],
        verbs=["get", "list", "watch", "create", "update", "delete"],
        place=places.in_tenants(
            f"variables.target.{_has(SECRET_LABEL)} && {own_name}", f"those with the label {SECRET_LABEL}"
        ),
        limits=(
            Limit(
                expression=f"object.{_has(SECRET_LABEL)} && !(object.?type.orValue('') in {list(ACTED_UPON_TYPES)})",
                message=f"a Secret with the label {SECRET_LABEL} keeps it, and has no type that the cluster acts upon",
            ),
        ),
        why=f"The labelled Secrets of tenants are shown as {PLURAL}, and written through them. Only these are read.",
        remains="Read **every Secret of the cluster**, those of `kube-system` and of all tenants included: RBAC cannot "
        "limit a read to a label. Tokens of accounts and keys of certificates are among them, and with these the Pod "
        "can act as their owners.",
    )


def _policies(role: Role) -> Right:
    """Each policy selects the members of its own group, so that none reaches other Pods."""
    selector = f"{{'matchLabels': {{'{MEMBERSHIP_PREFIX}' + variables.name: ''}}}}"
    return Right(
        role=role,
        group=POLICIES.group,
        resources=[POLICIES.plural],
        verbs=["get", "list", "watch", "create", "update", "delete"],
        place=places.in_tenants(f"variables.target.{_has(GROUP_LABEL)}", f"those with the label {GROUP_LABEL}"),
        limits=(
            Limit(
                expression=f"object.{_has(GROUP_LABEL)} && object.spec.endpointSelector == {selector}",
                message=f"a policy with the label {GROUP_LABEL} keeps it, and selects the members of its group",
            ),
        ),
        proofs=dict.fromkeys(
            ("get", "list", "watch", "create", "update", "delete"),
            "tests/e2e/projections/test_securitygroups.py::test_a_group_has_all_verbs",
        ),
        why="Each SecurityGroup is a CiliumNetworkPolicy.",
        remains="Allow any traffic to and from the Pods that belong to a group.",
    )


def _has(label: str) -> str:
    return f"metadata.?labels[?'{label}'].orValue('') == 'true'"


def _option_sources(role: Role) -> Iterator[Right]:
    """Rights to read the objects that Options are computed from."""
    by_group: dict[str, list[str]] = {}
    for kind in OPTION_KINDS:
        by_group.setdefault(kind.group, []).append(kind.plural)
    for group, plurals in by_group.items():
        yield Right(
            role=role,
            group=group,
            resources=plurals,
            verbs=["list", "watch"],
            proofs=dict.fromkeys(("list", "watch"), _OPTIONS_TEST),
            why="Forms of a console offer their names, as options.",
            remains="Read all of them.",
        )
