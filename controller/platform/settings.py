"""The platform's settings, structured like their YAML file: keys of Cozystack's platform Package, and our own."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from typing import Any, Literal, Protocol

from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator
from pydantic.alias_generators import to_camel
from pydantic_core import PydanticCustomError

from controller.platform.setting_types import CaBundle as CaBundle
from controller.platform.setting_types import (
    Cidrs,
    Duration,
    Name,
    Names,
    ObjectName,
    OptionalName,
    OptionalObjectName,
    Quantities,
    Ratio,
    Url,
    ratio_of_text,
)
from registry import quantity
from registry.names import ROOT_NAMESPACE, host_errors
from registry.tenant.quota_keys import AllocationRatios
from registry.tenant.quota_pools import PoolMode
from registry.tenant.release_settings import ReleaseMode, ReleaseSettings

ATTACHED_NAMESPACES = (
    "cozy-cert-manager",
    "cozy-dashboard",
    "cozy-keycloak",
    "cozy-system",
    "cozy-harbor",
    "cozy-bucket",
    "cozy-kubevirt",
    "cozy-kubevirt-cdi",
    "cozy-monitoring",
    "cozy-linstor-gui",
    "default",
)
WRONG_KEY = "wrong_key"
"""The type of a validation error whose message begins with the invalid key."""
PLATFORM_NAMESPACES = (
    "cozy-dashboard",
    "cozy-linstor",
    "cozy-keycloak",
    "cozy-grafana-operator",
    "cozy-kubevirt-cdi",
)
"""The namespaces with the platform's own web interfaces, which Cozystack's chart opens to the Pods of tenants."""
PASSTHROUGH_SERVICES = ("api", "vm-exportproxy", "cdi-uploadproxy")
_RELEASE = ReleaseSettings()


class _Section(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, populate_by_name=True, strict=True, alias_generator=to_camel)

    @model_validator(mode="before")
    @classmethod
    def _null_is_empty(cls, value: Any) -> Any:
        """In YAML, the value of a key with nothing but comments below it is null."""
        return {} if value is None else value


def _read_off(value: Any) -> Any:
    """In YAML 1.1, a plain `off` is false."""
    return "off" if value is False else value


def _names(default: Sequence[str] = ()) -> Any:
    """A field of names. It is not strict, because YAML has lists and no tuples."""
    return Field(tuple(default), strict=False)


class AcmeServer(_Section):
    """An ACME server: the URL of its directory, the contact address, and the CAs of its certificate, PEM or base64."""

    server: Url
    email: str = ""
    ca_bundle: CaBundle = ""


# Further servers are entries of publishing.certificates.acmeServers and need no code.
ACME_SERVERS: Mapping[str, AcmeServer] = {
    "letsencrypt-prod": AcmeServer(server="https://acme-v02.api.letsencrypt.org/directory"),
    "letsencrypt-stage": AcmeServer(server="https://acme-staging-v02.api.letsencrypt.org/directory"),
}


class CloudflareSettings(_Section):
    secret_name: ObjectName = "cloudflare-api-token-secret"
    secret_key: str = "api-token"


class Route53Settings(_Section):
    """Without `secret_name`, the cloud provider's own roles are used (R-163)."""

    region: str = ""
    access_key_id: str = Field("", alias="accessKeyID")
    secret_name: OptionalObjectName = ""
    secret_key: str = "secret-access-key"


class DigitalOceanSettings(_Section):
    secret_name: ObjectName = "digitalocean-api-token-secret"
    secret_key: str = "access-token"


class RFC2136Settings(_Section):
    nameserver: str = ""
    tsig_key_name: str = ""
    tsig_algorithm: str = "HMACSHA256"
    secret_name: OptionalObjectName = ""
    secret_key: str = "tsig-secret-key"


class Dns01Settings(_Section):
    """The provider that answers DNS-01 challenges: one for the whole platform (R-160, R-170)."""

    provider: Literal["cloudflare", "route53", "digitalocean", "rfc2136"] = "cloudflare"
    cloudflare: CloudflareSettings = CloudflareSettings()
    route53: Route53Settings = Route53Settings()
    digitalocean: DigitalOceanSettings = DigitalOceanSettings()
    rfc2136: RFC2136Settings = RFC2136Settings()


class Certificates(_Section):
    """With `wildcard_secret_name`, no certificates are requested: that Secret contains them. It is in the namespace of
    each tenant, or in `wildcard_secret_namespace` if that has ReferenceGrants for the tenants' Gateways."""

    solver: Literal["http01", "dns01"] = "http01"
    issuer_name: str = "letsencrypt-prod"
    wildcard_secret_name: OptionalObjectName = ""
    wildcard_secret_namespace: OptionalName = ""
    acme_servers: Mapping[str, AcmeServer] = Field(default_factory=dict)
    dns01: Dns01Settings = Dns01Settings()

    @model_validator(mode="after")
    def _check_issuer_and_provider(self) -> Certificates:
        """Checks only the keys that a provider cannot work without: cert-manager reports other mistakes at the
        challenge (R-162, R-166)."""
        if self.issuer_name not in {*ACME_SERVERS, *self.acme_servers}:
            known = ", ".join(sorted({*ACME_SERVERS, *self.acme_servers}))
            raise _key_error(
                "issuerName", f"{self.issuer_name!r} is not known: must be one of {known}, or of acmeServers"
            )
        if self.solver == "dns01":
            if self.dns01.provider == "route53" and not self.dns01.route53.region:
                raise _key_error("dns01.route53.region", "must be set for the provider route53")
            if self.dns01.provider == "rfc2136" and not self.dns01.rfc2136.nameserver:
                raise _key_error("dns01.rfc2136.nameserver", "must be set for the provider rfc2136")
        return self


def _key_error(key: str, reason: str) -> PydanticCustomError:
    """An error about keys of a section that do not fit together. It names the invalid key, relative to the section."""
    return PydanticCustomError(WRONG_KEY, "{key}: {reason}", {"key": key, "reason": reason})


class Publishing(_Section):
    """`host` is the domain of the root tenant; without it, --root-host is used. `ingress_name` is the namespace of the
    tenant that publishes the platform's services, `ingress_name_admin` of the one whose Ingresses charts use for
    Keycloak's admin pages, by default the same."""

    host: str | None = None
    ingress_name: Name = ROOT_NAMESPACE
    ingress_name_admin: OptionalName = ""
    exposed_services: Names = _names()
    certificates: Certificates = Certificates()

    @field_validator("host")
    @classmethod
    def _check_host(cls, value: str | None) -> str | None:
        if value is not None and (problems := host_errors(value)):
            raise ValueError(problems[0])
        return value


class GatewaySettings(_Section):
    """`port443_kinds` is `shared` if the Gateway's controller requires the same route kinds on one port (PEER-01).
    With `grpc_routes`, listeners admit GRPCRoutes where they admit HTTPRoutes on port 443.
    `hostnames_per_heir` limits a child and its descendants on the Gateway of an ancestor, with solver http01.
    TenantGateways are served in the namespaces of tenants, and in `owner_namespaces`. With
    `shared_hostnames: platform`, namespaces of the platform may have one hostname together, with disjoint paths.
    Listeners beyond 64 go to ListenerSets: `auto` if the GatewayClass says that they are supported. With
    `platform_routes`, the routes of the platform's services are ours, else the charts'; one that is no longer needed
    stays for `rollback_timeout` until an Ingress has its hostname."""

    enabled: bool = False
    gateway_class_name: ObjectName = "cilium"
    attached_namespaces: Names = _names(ATTACHED_NAMESPACES)
    tls_passthrough_services: Names = _names(PASSTHROUGH_SERVICES)
    port443_kinds: Literal["separate", "shared"] = Field("separate", alias="port443Kinds")
    grpc_routes: bool = False
    hostnames_per_heir: int = Field(32, ge=0)
    platform_routes: bool = False
    rollback_timeout: Duration = "10m"
    owner_namespaces: Names = _names()
    shared_hostnames: Literal["platform", "off"] = "off"
    listener_sets: Literal["auto", "always", "never"] = "auto"

    @field_validator("shared_hostnames", mode="before")
    @classmethod
    def _off_is_a_word(cls, value: Any) -> Any:
        return _read_off(value)


class LimitRangeSettings(_Section):
    """Limits and requests of containers that declare none, in tenants with quotas."""

    default: Quantities = Field(default_factory=lambda: {"cpu": "250m", "memory": "128Mi", "ephemeral-storage": "2Gi"})
    default_request: Quantities = Field(
        default_factory=lambda: {"cpu": "25m", "memory": "128Mi", "ephemeral-storage": "50Mi"}
    )

    @model_validator(mode="after")
    def _check_requests_fit(self) -> LimitRangeSettings:
        """kube-apiserver rejects limits that are below the requests."""
        for name, request in self.default_request.items():
            limit = self.default.get(name)
            if limit is not None and quantity.parse(request) > quantity.parse(limit):
                raise _key_error(f"defaultRequest.{name}", f"{request} is more than the limit {limit}")
        return self


class TenantSettings(_Section):
    """`chart` is `flux` if Flux installs Cozystack's chart, which creates the same objects as we do. `release` is about
    the HelmReleases of new Tenants. `isolation` is the kind of the network policies of all tenants: `auto` is Cilium's
    if the cluster serves it. With `quota_messages: amounts`, a refusal tells what is left of a quota to users who may
    get the Tenant that declares it."""

    chart: Literal["none", "flux"] = "none"
    release: ReleaseMode = _RELEASE.mode
    isolation: Literal["auto", "cilium", "networkPolicy", "off"] = "auto"
    quota_messages: Literal["amounts", "plain"] = "amounts"
    limit_range: LimitRangeSettings = LimitRangeSettings()

    @field_validator("isolation", mode="before")
    @classmethod
    def _off_is_a_word(cls, value: Any) -> Any:
        return _read_off(value)

    @model_validator(mode="after")
    def _check_release_is_active(self) -> TenantSettings:
        if self.chart == "flux" and self.release != "active":
            raise _key_error("release", "must be active with chart: flux, or Flux would install nothing")
        return self


class QuotaSettings(_Section):
    """The way in which namespaces share the quota of a pool: with `strict`, their limits never exceed it in total."""

    pool: PoolMode = "shared"


class ResourceSettings(_Section):
    """By how much the limits of containers exceed their requests, as Cozystack's charts divide them. Without a value,
    that of ConfigMap cozystack is used, where older versions of Cozystack have it, or else the charts' default."""

    cpu_allocation_ratio: Ratio | None = None
    memory_allocation_ratio: Ratio | None = None
    ephemeral_storage_allocation_ratio: Ratio | None = None

    def to_ratios(self, configmap: Mapping[str, str]) -> tuple[AllocationRatios, Sequence[str]]:
        """`configmap` is the data of the ConfigMap. Also returns the reasons why values of it are ignored."""
        problems: list[str] = []

        def find(own: int | float | None, key: str, default: int) -> Fraction:
            if own is not None:
                return Fraction(str(own))
            try:
                return Fraction(str(ratio_of_text(configmap.get(key, default))))
            except ValueError as e:
                problems.append(f"{key}: {e}")
                return Fraction(default)

        ratios = AllocationRatios(
            cpu=find(self.cpu_allocation_ratio, "cpu-allocation-ratio", 10),
            memory=find(self.memory_allocation_ratio, "memory-allocation-ratio", 1),
            ephemeral_storage=find(self.ephemeral_storage_allocation_ratio, "ephemeral-storage-allocation-ratio", 40),
        )
        return ratios, problems


class IsolationSettings(_Section):
    """The networks and namespaces that the network policies of tenants name.

    `cluster_cidrs` are the networks of Pods, Services and nodes; from those of `node_cidrs`, connections to Pods are
    open. Both are for NetworkPolicies only. Pods in the namespaces `allow_from` reach the Pods of tenants, and these
    reach the Pods in `platform_namespaces`.
    """

    cluster_cidrs: Cidrs = Field((), strict=False, alias="clusterCIDRs")
    node_cidrs: Cidrs = Field((), strict=False, alias="nodeCIDRs")
    allow_from: Names = _names()
    platform_namespaces: Names = _names(PLATFORM_NAMESPACES)


class ChartRef(_Section):
    """Without `namespace`, the chart is in the namespace of the HelmRelease."""

    kind: Literal["OCIRepository", "HelmChart", "ExternalArtifact"] = "ExternalArtifact"
    name: ObjectName = _RELEASE.chart_name
    namespace: OptionalName = _RELEASE.chart_namespace


class Release(_Section):
    """The fields of a new Tenant's HelmRelease."""

    chart_ref: ChartRef = ChartRef()
    interval: Duration = _RELEASE.interval
    install_timeout: Duration = _RELEASE.install_timeout
    upgrade_timeout: Duration = _RELEASE.upgrade_timeout
    strategy: Literal["RetryOnFailure", "RemediateOnFailure", ""] = "RetryOnFailure"
    retry_interval: Duration = _RELEASE.retry_interval
    max_history: int = Field(_RELEASE.max_history, ge=0)
    values_secret: str = _RELEASE.values_secret
    shard: str = _RELEASE.shard

    def to_release_settings(self, mode: ReleaseMode = "active") -> ReleaseSettings:
        fields = self.model_dump(exclude={"chart_ref"})
        chart = {f"chart_{field}": value for field, value in self.chart_ref.model_dump().items()}
        return ReleaseSettings(**fields, **chart, mode=mode)


class PlatformSource(_Section):
    """Where the settings come from: `package` is the platform's Package, and `auto` the same if there is one. Settings
    that only this server has always come from the file."""

    source: Literal["file", "package", "auto"] = "auto"


class PlatformSettings(_Section):
    platform: PlatformSource = PlatformSource()
    publishing: Publishing = Publishing()
    gateway: GatewaySettings = GatewaySettings()
    tenants: TenantSettings = TenantSettings()
    quotas: QuotaSettings = QuotaSettings()
    resources: ResourceSettings = ResourceSettings()
    isolation: IsolationSettings = IsolationSettings()
    release: Release = Release()

    def release_settings(self) -> ReleaseSettings:
        return self.release.to_release_settings(self.tenants.release)


class SettingsSource(Protocol):
    """The current settings, with notifications about changes."""

    @property
    def current(self) -> PlatformSettings: ...

    def subscribe(self, callback: Callable[[], None]) -> None:
        """Call `callback` after every change."""
        ...


class ReloadableSettings:
    """Settings that are replaced when their file changes. Subscribers are called only if the new ones differ."""

    def __init__(self, current: PlatformSettings) -> None:
        self._current = current
        self._callbacks: list[Callable[[], None]] = []

    @property
    def current(self) -> PlatformSettings:
        return self._current

    def subscribe(self, callback: Callable[[], None]) -> None:
        self._callbacks.append(callback)

    def replace(self, settings: PlatformSettings) -> None:
        if settings == self._current:
            return
        self._current = settings
        for callback in self._callbacks:
            callback()


def acme_server(settings: PlatformSettings, issuer_name: str) -> AcmeServer | None:
    """None for an unknown name (R-147). Entries of the settings take precedence over the built-in servers."""
    return settings.publishing.certificates.acme_servers.get(issuer_name) or ACME_SERVERS.get(issuer_name)
