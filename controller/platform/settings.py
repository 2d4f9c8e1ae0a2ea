"""The platform's settings, as its one YAML file holds them: the seed's platform Package, and what is ours besides."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal, Protocol

from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator
from pydantic.alias_generators import to_camel
from pydantic_core import PydanticCustomError

from controller.platform.setting_types import CaBundle as CaBundle
from controller.platform.setting_types import Duration, Names, ObjectName, OptionalName, Quantities, Url
from registry import quantity
from registry.names import host_errors
from registry.tenant.release_settings import ReleaseSettings

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
"""The type of an error of validation whose message begins with a key."""
PASSTHROUGH_SERVICES = ("api", "vm-exportproxy", "cdi-uploadproxy")
_RELEASE = ReleaseSettings()


class _Section(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, populate_by_name=True, strict=True, alias_generator=to_camel)

    @model_validator(mode="before")
    @classmethod
    def _may_be_empty(cls, given: Any) -> Any:
        """A key with nothing, or only comments, below it is null in YAML."""
        return {} if given is None else given


def _names(default: Sequence[str] = ()) -> Any:
    """A list of names; YAML knows no tuples."""
    return Field(tuple(default), strict=False)


class AcmeServer(_Section):
    """An ACME server: the URL of its directory, whom it may write to, and the CA of its certificate, PEM or base64."""

    server: Url
    email: str = ""
    ca_bundle: CaBundle = ""


# A further one is an entry of publishing.certificates.acmeServers, and needs no code.
ACME_SERVERS: Mapping[str, AcmeServer] = {
    "letsencrypt-prod": AcmeServer(server="https://acme-v02.api.letsencrypt.org/directory"),
    "letsencrypt-stage": AcmeServer(server="https://acme-staging-v02.api.letsencrypt.org/directory"),
}


class Cloudflare(_Section):
    secret_name: str = "cloudflare-api-token-secret"
    secret_key: str = "api-token"


class Route53(_Section):
    """Without `secret_name`, the cloud's own roles are used (R-163)."""

    region: str = ""
    access_key_id: str = Field("", alias="accessKeyID")
    secret_name: str = ""
    secret_key: str = "secret-access-key"


class DigitalOcean(_Section):
    secret_name: str = "digitalocean-api-token-secret"
    secret_key: str = "access-token"


class RFC2136(_Section):
    nameserver: str = ""
    tsig_key_name: str = ""
    tsig_algorithm: str = "HMACSHA256"
    secret_name: str = ""
    secret_key: str = "tsig-secret-key"


class Dns01(_Section):
    """How DNS-01 challenges are answered: one provider at a time, for everything (R-160, R-170)."""

    provider: Literal["cloudflare", "route53", "digitalocean", "rfc2136"] = "cloudflare"
    cloudflare: Cloudflare = Cloudflare()
    route53: Route53 = Route53()
    digitalocean: DigitalOcean = DigitalOcean()
    rfc2136: RFC2136 = RFC2136()


class Certificates(_Section):
    """With `wildcard_secret_name`, certificates are not asked for: that Secret has them."""

    solver: Literal["http01", "dns01"] = "http01"
    issuer_name: str = "letsencrypt-prod"
    wildcard_secret_name: str = ""
    acme_servers: Mapping[str, AcmeServer] = Field(default_factory=dict)
    dns01: Dns01 = Dns01()

    @model_validator(mode="after")
    def _is_complete(self) -> Certificates:
        """Of what a provider needs, only this is checked here: the rest shows at the challenge (R-162, R-166)."""
        if self.issuer_name not in {*ACME_SERVERS, *self.acme_servers}:
            known = ", ".join(sorted({*ACME_SERVERS, *self.acme_servers}))
            raise _wrong("issuerName", f"{self.issuer_name!r} is not known: must be one of {known}, or of acmeServers")
        if self.solver == "dns01":
            if self.dns01.provider == "route53" and not self.dns01.route53.region:
                raise _wrong("dns01.route53.region", "must be set for the provider route53")
            if self.dns01.provider == "rfc2136" and not self.dns01.rfc2136.nameserver:
                raise _wrong("dns01.rfc2136.nameserver", "must be set for the provider rfc2136")
        return self


def _wrong(key: str, why: str) -> PydanticCustomError:
    """A rule about several keys that names the one that is wrong, below the section that it is about."""
    return PydanticCustomError(WRONG_KEY, "{key}: {why}", {"key": key, "why": why})


class Publishing(_Section):
    """`host` is the domain of the root tenant; --root-host where it is absent."""

    host: str | None = None
    exposed_services: Names = _names()
    certificates: Certificates = Certificates()

    @field_validator("host")
    @classmethod
    def _is_a_host(cls, value: str | None) -> str | None:
        if value is not None and (problems := host_errors(value)):
            raise ValueError(problems[0])
        return value


class GatewaySettings(_Section):
    """`port443_kinds` is `shared` where the Gateway's controller wants equal kinds on one port (PEER-01)."""

    enabled: bool = False
    gateway_class_name: ObjectName = "cilium"
    attached_namespaces: Names = _names(ATTACHED_NAMESPACES)
    tls_passthrough_services: Names = _names(PASSTHROUGH_SERVICES)
    port443_kinds: Literal["separate", "shared"] = Field("separate", alias="port443Kinds")


class LimitRangeSettings(_Section):
    """What a container in a tenant with quotas gets that does not say what it wants."""

    default: Quantities = Field(default_factory=lambda: {"cpu": "250m", "memory": "128Mi", "ephemeral-storage": "2Gi"})
    default_request: Quantities = Field(
        default_factory=lambda: {"cpu": "25m", "memory": "128Mi", "ephemeral-storage": "50Mi"}
    )

    @model_validator(mode="after")
    def _fit(self) -> LimitRangeSettings:
        """The host refuses limits that are below the requests."""
        for name, request in self.default_request.items():
            limit = self.default.get(name)
            if limit is not None and quantity.parse(request) > quantity.parse(limit):
                raise _wrong(f"defaultRequest.{name}", f"{request} is more than the limit {limit}")
        return self


class TenantSettings(_Section):
    """`chart` is flux where Cozystack's chart makes the same objects as we do."""

    chart: Literal["none", "flux"] = "none"
    limit_range: LimitRangeSettings = LimitRangeSettings()


class ChartRef(_Section):
    """Without `namespace`, the chart is in that of the HelmRelease."""

    kind: Literal["OCIRepository", "HelmChart", "ExternalArtifact"] = "ExternalArtifact"
    name: ObjectName = _RELEASE.chart_name
    namespace: OptionalName = _RELEASE.chart_namespace


class Release(_Section):
    """What a new Tenant's HelmRelease is made of."""

    chart_ref: ChartRef = ChartRef()
    interval: Duration = _RELEASE.interval
    install_timeout: Duration = _RELEASE.install_timeout
    upgrade_timeout: Duration = _RELEASE.upgrade_timeout
    strategy: Literal["RetryOnFailure", "RemediateOnFailure", ""] = "RetryOnFailure"
    retry_interval: Duration = _RELEASE.retry_interval
    max_history: int = Field(_RELEASE.max_history, ge=0)
    values_secret: str = _RELEASE.values_secret
    shard: str = _RELEASE.shard

    def to_release_settings(self) -> ReleaseSettings:
        given = self.model_dump(exclude={"chart_ref"})
        chart = {f"chart_{field}": value for field, value in self.chart_ref.model_dump().items()}
        return ReleaseSettings(**given, **chart)


class PlatformSettings(_Section):
    publishing: Publishing = Publishing()
    gateway: GatewaySettings = GatewaySettings()
    tenants: TenantSettings = TenantSettings()
    release: Release = Release()


class SettingsSource(Protocol):
    """The settings of now."""

    @property
    def current(self) -> PlatformSettings: ...

    def subscribe(self, callback: Callable[[], None]) -> None:
        """Have `callback` called after every change."""
        ...


class ReloadableSettings:
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
    """None for a name that nobody knows (R-147). An entry of the settings goes before what is built in."""
    return settings.publishing.certificates.acme_servers.get(issuer_name) or ACME_SERVERS.get(issuer_name)
