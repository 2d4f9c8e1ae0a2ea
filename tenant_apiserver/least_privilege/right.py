"""The types of the table: a right of our ServiceAccount, and the limits of what it may write."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal


@dataclass(frozen=True, slots=True)
class Role:
    """A ClusterRole or, with `namespace`, a Role. `file` is its manifest; empty if the role is Kubernetes' own.

    `component` is the folder of `manifests/components` that has it, if an administrator has to add it to the base.
    """

    name: str
    namespace: str = ""
    file: str = ""
    component: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Limit:
    """A write is refused with `message` unless the CEL `expression` is true.

    Besides Kubernetes' variables, it may read those of `policies.py` and those that the limit itself defines, in order,
    in `variables`. It applies to one operation or, by default, to creations and updates.
    """

    expression: str
    message: str
    operation: Literal["CREATE", "UPDATE", ""] = ""
    variables: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """The objects of a kind that the account may write: a CEL `expression`, and the same in words, to complete a
    sentence after "only"."""

    expression: str
    words: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Right:
    """`verbs` on `resources` of one API group. Resources can be subresources, such as `httproutes/status`.

    `names` become resourceNames, except for the verb create, which RBAC cannot limit to names. `place` and `limits`
    apply to writes, in the policy of each resource. `why` is the reason for the right, and `remains` what somebody who
    has taken over the Pod can do with it nevertheless; both are for docs/security.md.

    `proofs` has, by verb, the id of a test that shows the use of a right that the audit log of the end-to-end test does
    not show: kube-apiserver looks it up while it judges another request, or it is used in a rare moment only.
    """

    role: Role
    group: str
    resources: Sequence[str]
    verbs: Sequence[str]
    names: Sequence[str] = ()
    place: Place | None = None
    limits: Sequence[Limit] = ()
    why: str
    remains: str
    proofs: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Installation:
    """The names that the roles and policies contain: our account and its Service, and the chart of new Tenants."""

    account: str = "tenant-apiserver"
    namespace: str = "cozy-system"
    service: str = "tenant-apiserver"
    chart: Mapping[str, str]
    values_secret: str

    @property
    def user(self) -> str:
        return f"system:serviceaccount:{self.namespace}:{self.account}"
