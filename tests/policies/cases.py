"""The table of cases: what a caller writes, and what the policy that it is about says to it.

Every case runs on each host and in the process itself; verdict and text must be the same.
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
"""The namespaces that cases are in, with the labels that they need."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """A create of `new`, or, with `old`, a merge patch `new` of it. No `namespace`: the object is a Namespace.

    `denial` is what follows "denied request: ", and empty if the write passes. Metadata needs no name. What `lax` hosts
    only would let as far as policies is judged in the process only: the CRDs of Gateway API refuse it before.
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
    lax: bool = False

    @property
    def plural(self) -> str:
        return f"{self.kind.lower()}s"

    @property
    def api_version(self) -> str:
        return f"{self.group}/{self.version}" if self.group else self.version

    @property
    def operation(self) -> Literal["CREATE", "UPDATE"]:
        return "CREATE" if self.old is None else "UPDATE"


def refusal(case: Case, name: str, group_resource: str) -> str:
    """The whole message of the Status; empty if the case passes."""
    if not case.denial:
        return ""
    bound = f"ValidatingAdmissionPolicy '{case.policy}' with binding '{case.policy}' denied request: "
    return f'{group_resource} "{name}" is forbidden: {bound}{case.denial}'


def none_there(subject: str) -> str:
    return (
        f"{subject} must equal the host of its namespace or be below it, and the namespace has none: "
        f"its label {HOST_LABEL} is missing or empty"
    )


def outside(subject: str, host: str, *hostnames: str) -> str:
    return f"{subject} must equal {host}, the host of its namespace, or be below it, unlike {', '.join(hostnames)}"
