"""The platform's settings, and what is rendered from them (R-088 to R-092, R-145 to R-148, R-160 to R-173, R-287 to
R-295)."""

from __future__ import annotations

import base64
import contextlib
import textwrap
from typing import Any

import pytest
from pydantic import ValidationError

from controller.platform.chart_values import cluster_values, tenantgateway_spec
from controller.platform.settings import AcmeServer, PlatformSettings, ReloadableSettings, acme_server
from registry.tenant.release_settings import ReleaseSettings
from registry.tenantgateway.types import TenantGatewaySpec

DEFAULTS = PlatformSettings()
PEM = "-----BEGIN CERTIFICATE-----\nMA==\n-----END CERTIFICATE-----\n"


def settings(**sections: Any) -> PlatformSettings:
    return PlatformSettings.model_validate(sections)


def certificates(**fields: Any) -> PlatformSettings:
    return settings(publishing={"certificates": fields})


def dns01(provider: str, **fields: Any) -> PlatformSettings:
    return certificates(solver="dns01", dns01={"provider": provider, provider: fields})


def test_the_defaults_change_nothing_on_an_upgrade() -> None:
    """R-287, R-291, R-294."""
    gateway, publishing = DEFAULTS.gateway, DEFAULTS.publishing
    assert not gateway.enabled
    assert (publishing.certificates.solver, publishing.certificates.issuer_name) == ("http01", "letsencrypt-prod")
    assert set(gateway.attached_namespaces) == {
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
    }
    assert (DEFAULTS.tenants.chart, gateway.port443_kinds) == ("none", "separate")
    assert DEFAULTS.release.to_release_settings() == ReleaseSettings()


def test_the_keys_of_the_file_are_those_of_the_platform_package() -> None:
    parsed = settings(
        publishing={
            "host": "example.org",
            "exposedServices": ["dashboard", "api"],
            "certificates": {"solver": "dns01", "issuerName": "letsencrypt-stage", "wildcardSecretName": "wild"},
        },
        gateway={
            "enabled": True,
            "gatewayClassName": "other",
            "attachedNamespaces": ["default"],
            "tlsPassthroughServices": ["api"],
            "port443Kinds": "shared",
        },
        tenants={
            "chart": "flux",
            "quotaMessages": "plain",
            "limitRange": {"default": {"cpu": "1"}, "defaultRequest": {}},
        },
        release={"chartRef": {"name": "x"}, "maxHistory": 2, "installTimeout": "1m"},
    )
    assert parsed.publishing.exposed_services == ("dashboard", "api")
    assert parsed.gateway.attached_namespaces == ("default",)
    assert (parsed.tenants.quota_messages, parsed.tenants.limit_range.default) == ("plain", {"cpu": "1"})
    release = parsed.release.to_release_settings()
    assert (release.chart_name, release.max_history, release.install_timeout) == ("x", 2, "1m")


@pytest.mark.parametrize(
    ("sections", "key"),
    [
        pytest.param(
            {"publishing": {"certificates": {"issuerName": "my-custom-ca"}}}, "issuerName", id="R-147 R-295 issuer"
        ),
        pytest.param(
            {"publishing": {"certificates": {"solver": "dns01", "dns01": {"provider": "route53"}}}},
            "dns01.route53.region",
            id="R-162 route53 without a region",
        ),
        pytest.param(
            {"publishing": {"certificates": {"solver": "dns01", "dns01": {"provider": "rfc2136"}}}},
            "dns01.rfc2136.nameserver",
            id="R-166 rfc2136 without a name server",
        ),
        pytest.param(
            {"publishing": {"certificates": {"dns01": {"provider": "linode"}}}},
            "provider\\n.*'cloudflare', 'route53', 'digitalocean' or 'rfc2136'",
            id="R-173 provider",
        ),
        pytest.param({"publishing": {"certificates": {"solver": "http"}}}, "solver", id="solver"),
        pytest.param(
            {"publishing": {"certificates": {"acmeServers": {"x": {"server": "acme"}}}}}, "server", id="not a URL"
        ),
        pytest.param({"gateway": {"port443Kinds": "both"}}, "port443Kinds", id="PEER-01"),
        pytest.param({"gateway": {"enabled": "yes"}}, "enabled", id="not a boolean"),
        pytest.param({"gateway": {"gatewayIP": "10.0.0.1"}}, "gatewayIP", id="an unknown key"),
        pytest.param({"tenants": {"chart": "helm"}}, "chart", id="chart"),
        pytest.param({"gateway": {"attachedNamespaces": ["a", "a"]}}, "must not contain a twice", id="a name twice"),
        pytest.param({"gateway": {"attachedNamespaces": ["A"]}}, "attachedNamespaces", id="not a name of a namespace"),
        pytest.param({"gateway": {"tlsPassthroughServices": ["a.b"]}}, "tlsPassthroughServices", id="not a label"),
        pytest.param({"publishing": {"exposedServices": ["a,b"]}}, "exposedServices", id="a comma"),
        pytest.param({"gateway": {"gatewayClassName": ""}}, "gatewayClassName", id="no class"),
        pytest.param({"tenants": {"limitRange": {"default": {"cpu": "much"}}}}, "cpu: quantities", id="not a quantity"),
        pytest.param({"tenants": {"limitRange": {"default": {"cpu": "1e99"}}}}, "an exponent", id="a large exponent"),
        pytest.param({"tenants": {"limitRange": {"default": {"cpu": "1m"}}}}, "25m is more", id="more than the limit"),
        pytest.param({"release": {"interval": "5"}}, "must be a duration", id="not a duration"),
        pytest.param({"release": {"interval": "0s"}}, "must be longer than zero", id="no duration"),
        pytest.param({"release": {"strategy": "Hope"}}, "strategy", id="strategy"),
        pytest.param({"release": {"chartRef": {"kind": "Chart"}}}, "kind", id="kind of chart"),
        pytest.param(
            {"publishing": {"certificates": {"acmeServers": {"x": {"server": "https://a.b/c", "caBundle": "xyz"}}}}},
            "caBundle",
            id="not a certificate",
        ),
    ],
)
def test_an_error_names_the_wrong_key(sections: dict[str, Any], key: str) -> None:
    with pytest.raises(ValidationError, match=key):
        settings(**sections)


@pytest.mark.parametrize("provider", ["cloudflare", "digitalocean"])
def test_providers_without_required_keys_are_always_valid(provider: str) -> None:
    """R-161, R-165."""
    assert tenantgateway_spec(dns01(provider), "a.example")["dns01"]["provider"] == provider


def test_providers_that_are_not_chosen_are_not_checked() -> None:
    """R-168: only the required key of the chosen provider is checked, and only if challenges are answered by DNS."""
    assert certificates(dns01={"provider": "route53"}).publishing.certificates.solver == "http01"


@pytest.mark.parametrize(
    ("platform", "block"),
    [
        pytest.param(
            certificates(solver="dns01"),
            {
                "provider": "cloudflare",
                "cloudflare": {"apiTokenSecretRef": ("cloudflare-api-token-secret", "api-token")},
            },
            id="R-160 R-161 the default",
        ),
        pytest.param(
            dns01("route53", region="eu-west-1"),
            {"provider": "route53", "route53": {"region": "eu-west-1"}},
            id="R-163 roles of the cloud",
        ),
        pytest.param(
            dns01("route53", region="eu-west-1", secretName="aws", accessKeyID="AK"),
            {
                "provider": "route53",
                "route53": {
                    "region": "eu-west-1",
                    "accessKeyID": "AK",
                    "secretAccessKeySecretRef": ("aws", "secret-access-key"),
                },
            },
            id="R-164 a Secret",
        ),
        pytest.param(
            dns01("digitalocean"),
            {
                "provider": "digitalocean",
                "digitalocean": {"tokenSecretRef": ("digitalocean-api-token-secret", "access-token")},
            },
            id="R-165",
        ),
        pytest.param(
            dns01("rfc2136", nameserver="ns.example:53"),
            {"provider": "rfc2136", "rfc2136": {"nameserver": "ns.example:53", "tsigAlgorithm": "HMACSHA256"}},
            id="R-168 no key",
        ),
        pytest.param(
            dns01("rfc2136", nameserver="ns", tsigKeyName="k", secretName="s", tsigAlgorithm="HMACSHA512"),
            {
                "provider": "rfc2136",
                "rfc2136": {
                    "nameserver": "ns",
                    "tsigAlgorithm": "HMACSHA512",
                    "tsigKeyName": "k",
                    "tsigSecretSecretRef": ("s", "tsig-secret-key"),
                },
            },
            id="R-167",
        ),
    ],
)
def test_a_tenantgateway_has_only_the_block_of_the_chosen_provider(
    platform: PlatformSettings, block: dict[str, Any]
) -> None:
    """R-092."""
    spec = tenantgateway_spec(platform, "a.example")
    assert spec["certMode"] == "dns01"
    assert spec["dns01"] == expanded(block)
    assert TenantGatewaySpec.model_validate(spec).dns01 is not None


def expanded(block: Any) -> Any:
    if isinstance(block, tuple):
        return dict(zip(("name", "key"), block, strict=True))
    return {key: expanded(value) for key, value in block.items()} if isinstance(block, dict) else block


def test_the_defaults_of_a_tenantgateway() -> None:
    """R-088 to R-091."""
    spec = tenantgateway_spec(DEFAULTS, "alpha.example.org")
    assert spec == {
        "apex": "alpha.example.org",
        "certMode": "http01",
        "issuerName": "letsencrypt-prod",
        "gatewayClassName": "cilium",
        "attachedNamespaces": list(DEFAULTS.gateway.attached_namespaces),
        "tlsPassthroughServices": ["api", "vm-exportproxy", "cdi-uploadproxy"],
    }


def test_the_spec_of_a_tenantgateway_follows_the_settings() -> None:
    """R-089, R-092."""
    parsed = settings(
        gateway={"gatewayClassName": "other", "tlsPassthroughServices": [], "attachedNamespaces": ["cozy-dashboard"]},
        publishing={"certificates": {"issuerName": "letsencrypt-stage"}},
    )
    spec = tenantgateway_spec(parsed, "a.example")
    assert (spec["gatewayClassName"], spec["issuerName"]) == ("other", "letsencrypt-stage")
    assert (spec["tlsPassthroughServices"], spec["attachedNamespaces"]) == ([], ["cozy-dashboard"])


def test_the_gateway_flag_of_the_platform_does_not_affect_tenantgateways() -> None:
    """R-292, R-293: only charts read the flag."""
    parsed = settings(gateway={"enabled": True})
    assert tenantgateway_spec(parsed, "a.example") == tenantgateway_spec(DEFAULTS, "a.example")
    before, after = cluster_values(DEFAULTS, "example.org"), cluster_values(parsed, "example.org")
    assert {key: value for key, value in after.items() if before[key] != value} == {"gateway-enabled": "true"}


def test_with_a_wildcard_secret_no_certificate_is_requested() -> None:
    spec = tenantgateway_spec(certificates(solver="dns01", wildcardSecretName="wild"), "a.example")
    assert (spec["certMode"], spec["wildcardSecretRef"]) == ("existingSecret", {"name": "wild"})
    assert "dns01" not in spec


def test_charts_read_the_settings() -> None:
    """R-090, R-170, R-171."""
    parsed = settings(
        publishing={
            "exposedServices": ["dashboard", "api"],
            "certificates": {"dns01": {"route53": {"region": "eu-west-1"}}},
        },
        gateway={"enabled": True, "attachedNamespaces": ["cozy-a", "default"]},
    )
    values = cluster_values(parsed, "example.org")
    assert values["dns01-route53-region"] == "eu-west-1"
    assert values["dns01-cloudflare-secret-name"] == "cloudflare-api-token-secret"
    assert values["gateway-attached-namespaces"] == "cozy-a,default"
    assert (values["gateway-enabled"], values["expose-services"]) == ("true", "dashboard,api")
    assert (values["root-host"], values["solver"]) == ("example.org", "http01")


@pytest.mark.parametrize(
    ("name", "server"),
    [
        pytest.param("letsencrypt-prod", "https://acme-v02.api.letsencrypt.org/directory", id="R-145"),
        pytest.param("letsencrypt-stage", "https://acme-staging-v02.api.letsencrypt.org/directory", id="R-146"),
        pytest.param("own", "https://acme.example/directory", id="R-148 an additional entry"),
        pytest.param("my-custom-ca", None, id="R-147 unknown"),
    ],
)
def test_the_acme_server_of_an_issuer(name: str, server: str | None) -> None:
    own = {"server": "https://acme.example/directory", "email": "a@example.org", "caBundle": PEM}
    found = acme_server(certificates(acmeServers={"own": own}, issuerName="own"), name)
    assert (found.server if found is not None else None) == server
    if name == "own":
        assert found == AcmeServer(server=own["server"], email="a@example.org", ca_bundle=PEM)


def test_subscribers_of_the_settings_are_called_for_changes_only() -> None:
    reloadable, calls = ReloadableSettings(DEFAULTS), []
    reloadable.subscribe(lambda: calls.append(reloadable.current.gateway.enabled))
    reloadable.replace(settings(gateway={"enabled": True}))
    reloadable.replace(settings(gateway={"enabled": True}))
    assert calls == [True]


@pytest.mark.parametrize(
    ("ca_bundle", "valid"),
    [
        pytest.param("", True, id="the CAs that cert-manager trusts"),
        pytest.param(PEM, True, id="PEM"),
        pytest.param(base64.b64encode(PEM.encode()).decode(), True, id="base64 of PEM"),
        pytest.param(textwrap.fill(base64.b64encode(PEM.encode()).decode(), 20), True, id="base64 in lines"),
        pytest.param(base64.b64encode(b"something else").decode(), False, id="base64 of something else"),
        pytest.param("-----BEGIN PRIVATE KEY-----", False, id="a key"),
    ],
)
def test_the_ca_of_an_acme_server_is_a_certificate(ca_bundle: str, valid: bool) -> None:
    server = {"server": "https://acme.example/directory", "caBundle": ca_bundle}
    with contextlib.nullcontext() if valid else pytest.raises(ValidationError, match="must be certificates"):
        assert (
            certificates(acmeServers={"own": server}).publishing.certificates.acme_servers["own"].ca_bundle == ca_bundle
        )


@pytest.mark.parametrize(
    ("strategy", "rendered"),
    [
        pytest.param("RetryOnFailure", {"name": "RetryOnFailure", "retryInterval": "30s"}, id="retries"),
        pytest.param(
            "RemediateOnFailure", {"name": "RemediateOnFailure"}, id="without an interval, which Flux rejects"
        ),
        pytest.param("", None, id="the default of Flux"),
    ],
)
def test_the_strategy_of_a_release(strategy: str, rendered: object) -> None:
    spec = settings(release={"strategy": strategy}).release.to_release_settings().release_spec()
    assert spec["install"].get("strategy") == spec["upgrade"].get("strategy") == rendered
