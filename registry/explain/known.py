"""The facts of a subject that the user may know, as values: only of objects that they may get. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

from apiserver.meta.resource import Key, Object
from registry.names import GROUP, KIND, VERSION
from registry.tenant.quota_keys import EQUAL, AllocationRatios
from registry.tenant.summary import TenantSummary

API_VERSION = f"{GROUP}/{VERSION}"


@dataclass(frozen=True, slots=True, kw_only=True)
class KnownTenant:
    """`obj` is the Tenant that is asked about. `owners` has the Tenants of namespaces that its status names, by
    namespace, as far as the user may get them."""

    obj: Object
    owners: Mapping[str, Key] = field(default_factory=dict)
    quota: Object | None = None
    """The ResourceQuota of its namespace."""
    gateway_class: str = ""
    """The GatewayClass of its Gateway, if that is not accepted, and the user may get it."""

    @property
    def key(self) -> Key:
        metadata = self.obj["metadata"]
        return Key(metadata["namespace"], metadata["name"])

    @property
    def status(self) -> Object:
        return self.obj.get("status") or {}

    @property
    def spec(self) -> Object:
        return self.obj.get("spec") or {}

    @property
    def namespace(self) -> str:
        return str(self.status.get("namespace") or "")

    @property
    def host(self) -> str:
        return str((self.status.get("host") or {}).get("value") or "")

    @property
    def gateway_namespace(self) -> str:
        """The namespace of the Gateway that serves it."""
        return str((self.status.get("gateway") or {}).get("namespace") or "")


@dataclass(frozen=True, slots=True, kw_only=True)
class KnownQuota:
    """`allocated` is what children declare, in billionths by canonical key, without those that the user may not see;
    None if too many would have to be added up. `sees_all`: there are none that the user may not see. `ancestors` are
    those that the user may get without a gap, nearest first; `reaches_root`: there are no others."""

    ratios: AllocationRatios = EQUAL
    allocated: Mapping[str, int] | None = field(default_factory=dict)
    sees_all: bool = True
    ancestors: Sequence[TenantSummary] = ()
    reaches_root: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class KnownGateway:
    """The Gateway that serves the Tenant: the objects are None where the user may not get them, or they are missing."""

    key: Key
    tenantgateway: Object | None = None
    gateway: Object | None = None

    @property
    def class_name(self) -> str:
        """The GatewayClass; empty if it is not known."""
        spec = (self.tenantgateway or self.gateway or {}).get("spec") or {}
        return str(spec.get("gatewayClassName") or "")


@dataclass(frozen=True, slots=True, kw_only=True)
class KnownHost:
    """`owner` is another Tenant that has the host, or the longest domain around it. `gateway` is None if no Gateway
    serves the Tenant. `routes` name the host; they are those of the `searched` namespaces. In those that are
    `left_out`, not all routes were looked at. `incomplete`: there may be more routes, there or where the user may not
    list them.
    `may_create_routes`: the user may create routes in the Tenant's namespace, of the kind that the host needs, and
    `may_list_routes`: they may list these there."""

    tenant: KnownTenant
    host: str
    owner: KnownTenant | None = None
    may_set_host: bool = False
    may_create_routes: bool = True
    may_list_routes: bool = True
    gateway: KnownGateway | None = None
    routes: Sequence[Object] = ()
    searched: Sequence[str] = ()
    left_out: Sequence[str] = ()
    incomplete: bool = False
    certificate: Object | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class KnownRoute:
    """`route` is None if the user may not get it, or it is missing. `gateway` is the Gateway of the tenant in whose
    namespace it is, if the user may get that tenant."""

    tenant: KnownTenant
    key: Key
    route: Object | None
    gateway: Key | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class KnownNamespace:
    """`owner` and `namespace` are None if the user may not get the Tenant, or the Namespace, or they are missing."""

    tenant: KnownTenant
    name: str
    owner: KnownTenant | None
    namespace: Object | None


@dataclass(frozen=True, slots=True, kw_only=True)
class KnownUser:
    """The rights of `user`: `allowed` by verb on the Tenant, `children` by verb on Tenants in its namespace. `groups`
    are those that the question names. `viewers` is the group of people who may only see the Tenant; it is empty without
    a namespace. `role` is the Role that shows the Tenant alone, if it is known."""

    tenant: KnownTenant
    user: str
    groups: Sequence[str]
    groups_are_known: bool
    allowed: Mapping[str, bool]
    children: Mapping[str, bool]
    may_set_host: bool
    viewers: str = ""
    role: str = ""


class ReaderSubject(NamedTuple):
    """A ServiceAccount is a User."""

    kind: Literal["User", "Group"]
    name: str


@dataclass(frozen=True, slots=True)
class Reader:
    """A binding that lets its subjects get the Tenant; it is cluster-wide if its key has no namespace."""

    binding: Key
    role: str
    subjects: Sequence[ReaderSubject]


@dataclass(frozen=True, slots=True, kw_only=True)
class KnownReaders:
    """`cluster_wide` is False if the user may not list ClusterRoleBindings: they are left out then."""

    tenant: KnownTenant
    readers: Sequence[Reader]
    cluster_wide: bool


def tenant_key(obj: Object) -> Key:
    return Key(obj["metadata"]["namespace"], obj["metadata"]["name"])


TENANT = API_VERSION, KIND
