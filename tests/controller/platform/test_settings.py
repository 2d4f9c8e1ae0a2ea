"""The platform's settings: defaults, errors and reloads (R-145 to R-148, R-168, R-287 to R-295)."""

from __future__ import annotations

import base64
import contextlib
import textwrap
from fractions import Fraction
from typing import Any

import pytest
import yaml
from pydantic import ValidationError

from controller.platform.settings import AcmeServer, ReloadableSettings, acme_server
from registry.tenant.release_settings import ReleaseSettings
from tests.controller.platform.settings_values import DEFAULTS, certificates, settings

PEM = "-----BEGIN CERTIFICATE-----\nMA==\n-----END CERTIFICATE-----\n"


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


def test_tenants_are_isolated_by_default() -> None:
    """R-076, R-077."""
    assert DEFAULTS.tenants.isolation == "auto"
    assert DEFAULTS.isolation.cluster_cidrs == DEFAULTS.isolation.allow_from == ()


@pytest.mark.parametrize("text", ["off", '"off"'])
def test_the_word_off_needs_no_quotes(text: str) -> None:
    """A plain `off` is a boolean in YAML 1.1."""
    assert settings(**yaml.load(f"tenants: {{isolation: {text}}}", Loader=yaml.CSafeLoader)).tenants.isolation == "off"


@pytest.mark.parametrize(
    ("section", "message"),
    [
        pytest.param({"clusterCIDRs": ["10.0.0.1/8"]}, "must be a network such as 10.0.0.0/8", id="an address"),
        pytest.param({"clusterCIDRs": ["0.0.0.0/0"]}, "must not contain every address", id="everything"),
        pytest.param({"nodeCIDRs": ["::/0"]}, "must not contain every address", id="everything of IPv6"),
        pytest.param({"clusterCIDRs": ["fd00::/64", "fd00:0::/64"]}, "must not contain fd00::/64 twice", id="twice"),
        pytest.param({"clusterCIDRs": ["fe80::%eth0/64"]}, "kube-apiserver refuses", id="of one interface"),
        pytest.param({"nodeCIDRs": ["::ffff:10.0.0.0/104"]}, "kube-apiserver refuses", id="IPv4 written as IPv6"),
        pytest.param({"allowFrom": ["Default"]}, "must be a name", id="no namespace"),
    ],
)
def test_networks_and_namespaces_that_cannot_be_are_rejected(section: dict[str, Any], message: str) -> None:
    with pytest.raises(ValidationError, match=message):
        settings(isolation=section)


@pytest.mark.parametrize("mode", ["on", True, "Cilium"])
def test_an_unknown_kind_of_isolation_is_rejected(mode: object) -> None:
    with pytest.raises(ValidationError, match="isolation"):
        settings(tenants={"isolation": mode})


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
        pytest.param({"tenants": {"release": "paused"}}, "release", id="release"),
        pytest.param(
            {"tenants": {"chart": "flux", "release": "none"}}, "release: must be active", id="Flux without releases"
        ),
        pytest.param({"gateway": {"attachedNamespaces": ["a", "a"]}}, "must not contain a twice", id="a name twice"),
        pytest.param({"gateway": {"attachedNamespaces": ["A"]}}, "attachedNamespaces", id="not a name of a namespace"),
        pytest.param({"gateway": {"tlsPassthroughServices": ["a.b"]}}, "tlsPassthroughServices", id="not a label"),
        pytest.param({"publishing": {"exposedServices": ["a,b"]}}, "exposedServices", id="a comma"),
        pytest.param({"gateway": {"gatewayClassName": ""}}, "gatewayClassName", id="no class"),
        pytest.param({"tenants": {"limitRange": {"default": {"cpu": "much"}}}}, "cpu: quantities", id="not a quantity"),
        pytest.param({"tenants": {"limitRange": {"default": {"cpu": "1e99"}}}}, "an exponent", id="a large exponent"),
        pytest.param({"tenants": {"limitRange": {"default": {"cpu": "1m"}}}}, "25m is more", id="more than the limit"),
        pytest.param({"quotas": {"pool": "fair"}}, "pool", id="a mode of pools"),
        pytest.param({"resources": {"cpuAllocationRatio": 0.5}}, "must be a number from 1", id="a ratio below one"),
        pytest.param({"resources": {"memoryAllocationRatio": True}}, "memoryAllocationRatio", id="no ratio"),
        pytest.param({"resources": {"cpuAllocationRatio": float("nan")}}, "cpuAllocationRatio", id="no number"),
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


@pytest.mark.parametrize(
    ("mode", "fields"),
    [
        pytest.param("active", {"chartRef", "interval", "maxHistory", "install", "upgrade", "valuesFrom"}, id="active"),
        pytest.param(
            "suspended",
            {"chartRef", "interval", "maxHistory", "install", "upgrade", "valuesFrom", "suspend"},
            id="to be resumed",
        ),
        pytest.param("none", {"chartRef", "interval", "suspend"}, id="storage only"),
    ],
)
def test_flux_leaves_releases_alone_that_are_not_active(mode: str, fields: set[str]) -> None:
    spec = settings(tenants={"release": mode}).release_settings().release_spec()
    assert spec.keys() == fields
    assert spec.get("suspend", False) is (mode != "active")


def test_the_ratios_are_exact_and_those_of_cozystack_by_default() -> None:
    own = settings(resources={"cpuAllocationRatio": 2.5})
    assert list(DEFAULTS.resources.to_ratios({})[0].values) == [10, 1, 40]
    assert list(own.resources.to_ratios({})[0].values) == [Fraction(5, 2), 1, 40]


def test_the_configmap_of_older_versions_has_ratios_that_the_settings_do_not_have() -> None:
    own = settings(resources={"cpuAllocationRatio": 2})
    data = {"cpu-allocation-ratio": "5", "memory-allocation-ratio": "1.5", "ephemeral-storage-allocation-ratio": "x"}
    ratios, problems = own.resources.to_ratios(data)
    assert list(ratios.values) == [2, Fraction(3, 2), 40]
    assert [each.split(":")[0] for each in problems] == ["ephemeral-storage-allocation-ratio"]


def test_providers_that_are_not_chosen_are_not_checked() -> None:
    """R-168: only the required key of the chosen provider is checked, and only if challenges are answered by DNS."""
    assert certificates(dns01={"provider": "route53"}).publishing.certificates.solver == "http01"


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
