"""The spec of a TenantGateway and the values of charts, rendered from the platform's settings (R-088 to R-092,
R-160 to R-171)."""

from __future__ import annotations

from typing import Any

import pytest

from controller.platform.chart_values import cluster_values, tenantgateway_spec
from controller.platform.settings import PlatformSettings
from registry.tenantgateway.types import TenantGatewaySpec
from tests.controller.platform.settings_values import DEFAULTS, certificates, dns01, settings


@pytest.mark.parametrize("provider", ["cloudflare", "digitalocean"])
def test_providers_without_required_keys_are_always_valid(provider: str) -> None:
    """R-161, R-165."""
    assert tenantgateway_spec(dns01(provider), "a.example")["dns01"]["provider"] == provider


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
    elsewhere = certificates(wildcardSecretName="wild", wildcardSecretNamespace="vault")
    assert tenantgateway_spec(elsewhere, "a.example")["wildcardSecretRef"] == {"name": "wild", "namespace": "vault"}


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
    ("publishing", "expected"),
    [
        pytest.param({}, ("tenant-root", "tenant-root"), id="the root by default"),
        pytest.param({"ingressName": "tenant-a"}, ("tenant-a", "tenant-a"), id="another publisher"),
        pytest.param(
            {"ingressName": "tenant-a", "ingressNameAdmin": "tenant-b"}, ("tenant-a", "tenant-b"), id="two of them"
        ),
    ],
)
def test_charts_read_the_classes_of_ingresses(publishing: dict[str, str], expected: tuple[str, str]) -> None:
    """R-171: the second one is for Keycloak's admin pages."""
    values = cluster_values(settings(publishing=publishing), "example.org")
    assert (values["expose-ingress"], values["expose-ingress-admin"]) == expected


def test_charts_learn_which_solver_their_issuers_have() -> None:
    """R-288: with the flag, HTTP-01 is solved by a route on the publisher's Gateway, else by an Ingress of its
    class."""
    platform = settings(publishing={"certificates": {"solver": "http01"}}, gateway={"enabled": True})
    values = cluster_values(platform, "example.org")
    assert (values["gateway-enabled"], values["expose-ingress"], values["solver"]) == ("true", "tenant-root", "http01")
    assert cluster_values(settings(), "example.org")["gateway-enabled"] == "false"
