"""The table of policy cases: a write by some user, and the denial that it must get, if any.

Every case runs against each cluster and in the test process; the decision and its message must be the same.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

HOST_LABEL = "namespace.cozystack.io/host"
GATEWAY_GROUP = "gateway.networking.k8s.io"
GATEWAY_POLICY = "cozystack-gateway-hostname-policy"
LISTENERSET_POLICY = "cozystack-listenerset-hostname-policy"
TENANT_POLICY = "cozystack-tenant-host-policy"
NAMESPACE_POLICY = "cozystack-namespace-host-label-policy"
ROUTE_POLICY = "cozystack-route-hostname-policy"
INGRESS_POLICY = "cozystack-ingress-hostname-policy"
MASTERS = ("system:masters",)

NAMESPACES: Mapping[str, Mapping[str, str]] = {
    "tenant-l": {HOST_LABEL: "example.org"},
    "tenant-l-upper": {HOST_LABEL: "Example.ORG"},
    "tenant-l-own": {HOST_LABEL: "customer1.example"},
    "tenant-l-deep": {HOST_LABEL: "a.b.example.org"},
    "tenant-l-word": {HOST_LABEL: "org"},
    "tenant-l-bare": {},
    "tenant-l-empty": {HOST_LABEL: ""},
    "tenant-l-near": {"namespace.cozystack.io/hosts": "example.org", "cozystack.io/host": "example.org"},
    "cozy-l": {},
    "cozy-l-host": {HOST_LABEL: "example.org"},
    "tenantl": {HOST_LABEL: "example.org"},
    "l": {},
    "my-tenant-l": {},
}
"""The namespaces of the cases, with their labels."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """Creates `new` or, with `old`, patches `old` with the merge patch `new`. Without `namespace`, it is a Namespace.

    `denial` is the message after "denied request: ", empty if the write is admitted. Metadata needs no name. A case
    with `rejected_by_schema` runs in the test process only, because in a cluster the CRDs of Gateway API reject it.
    """

    id: str
    policy: str
    group: str
    version: str
    kind: str
    new: Mapping[str, Any]
    old: Mapping[str, Any] | None = None
    namespace: str = ""
    subresource: str = ""
    user: str = "alice"
    groups: Sequence[str] = field(default=())
    denial: str = ""
    rejected_by_schema: bool = False

    @property
    def plural(self) -> str:
        return "ingresses" if self.kind == "Ingress" else f"{self.kind.lower()}s"

    @property
    def api_version(self) -> str:
        return f"{self.group}/{self.version}" if self.group else self.version

    @property
    def operation(self) -> Literal["CREATE", "UPDATE"]:
        return "CREATE" if self.old is None else "UPDATE"


def rejection_message(case: Case, name: str, group_resource: str) -> str:
    """The complete message of the Status; empty if the write is admitted."""
    if not case.denial:
        return ""
    bound = f"ValidatingAdmissionPolicy '{case.policy}' with binding '{case.policy}' denied request: "
    return f'{group_resource} "{name}" is forbidden: {bound}{case.denial}'


def no_host_denial(subject: str) -> str:
    return (
        f"{subject} must equal the host of its namespace or be below it, and the namespace has none: "
        f"its label {HOST_LABEL} is missing or empty"
    )


def outside_host_denial(subject: str, host: str, *hostnames: str, user: str = "alice") -> str:
    return (
        f"{subject} must equal {host}, the host of its namespace (label {HOST_LABEL}), or be below it; "
        f'user "{user}" asked for {", ".join(hostnames)}'
    )
