"""TenantGateway: validation by its models, and the CRD that is generated from them."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import ValidationError

from apiserver.schema.pruning_and_defaulting import apply_defaults, schema_errors
from registry.tenantgateway.types import TenantGatewaySpec, tenantgateway_crd, tenantgateway_resource

SPEC = tenantgateway_resource().properties["spec"]


def test_omitted_fields_of_the_spec_get_defaults() -> None:
    spec: dict[str, Any] = {"apex": "example.org", "dns01": {"provider": "rfc2136", "rfc2136": {"nameserver": "x"}}}
    apply_defaults(SPEC, spec)
    assert spec == {
        "apex": "example.org",
        "certMode": "http01",
        "issuerName": "letsencrypt-prod",
        "gatewayClassName": "cilium",
        "dns01": {"provider": "rfc2136", "rfc2136": {"nameserver": "x", "tsigAlgorithm": "HMACSHA256"}},
    }


@pytest.mark.parametrize(
    ("apex", "valid"),
    [
        pytest.param("example.org", True, id="a domain"),
        pytest.param("org", True, id="one label"),
        pytest.param("a-b.x1.org", True, id="dashes and digits"),
        pytest.param("Example.org", False, id="upper case"),
        pytest.param("*.example.org", False, id="wildcard"),
        pytest.param("example.org.", False, id="trailing dot"),
        pytest.param("-a.org", False, id="leading dash"),
        pytest.param(f"{'a' * 64}.org", False, id="long label"),
        pytest.param("", False, id="empty"),
        pytest.param(".".join(["abcdefg"] * 32), False, id="too long"),
    ],
)
def test_the_apex_is_a_domain(apex: str, valid: bool) -> None:
    """WIRE-GW-22, FACT-9."""
    assert (not schema_errors(SPEC, {"apex": apex}, "spec")) is valid
    if valid:
        assert TenantGatewaySpec(apex=apex).apex == apex
    else:
        with pytest.raises(ValidationError):
            TenantGatewaySpec(apex=apex)


def test_any_issuer_name_is_accepted() -> None:
    """R-147 and R-309 as changed by issue 3: the setting acmeServers decides, so the CRD does not list names."""
    assert "enum" not in SPEC["properties"]["issuerName"]
    assert not schema_errors(SPEC, {"apex": "example.org", "issuerName": "my-own-ca"}, "spec")


@pytest.mark.parametrize(
    "spec",
    [
        pytest.param({"certMode": "dns-01"}, id="certMode"),
        pytest.param({"dns01": {"provider": "linode"}}, id="R-173 provider"),
        pytest.param({"dns01": {"provider": "route53", "route53": {}}}, id="route53 without a region"),
        pytest.param({"dns01": {"provider": "rfc2136", "rfc2136": {}}}, id="rfc2136 without a name server"),
        pytest.param({"wildcardSecretRef": {"name": ""}}, id="wildcardSecretRef"),
        pytest.param({"wildcardSecretRef": {"name": "other/bought"}}, id="a path as the name of a Secret"),
        pytest.param({"wildcardSecretRef": {"name": "a" * 254}}, id="a name that is too long"),
        pytest.param({"wildcardSecretRef": {"name": "a", "namespace": "b.c"}}, id="no name of a namespace"),
        pytest.param({"wildcardSecretRef": {"name": "a", "namespace": ""}}, id="an empty namespace"),
        pytest.param({"dns01": {"cloudflare": {"apiTokenSecretRef": {"name": "A", "key": "k"}}}}, id="a DNS token"),
        pytest.param({"attachedNamespaces": "default"}, id="attachedNamespaces"),
    ],
)
def test_an_invalid_spec_is_rejected(spec: dict[str, Any]) -> None:
    whole = {"apex": "example.org", **spec}
    assert schema_errors(SPEC, whole, "spec")
    with pytest.raises(ValidationError):
        TenantGatewaySpec.model_validate(whole)


@pytest.mark.parametrize("dns01", [{}, {"cloudflare": {"apiTokenSecretRef": {"name": "a", "key": "b"}}}])
def test_the_provider_is_cloudflare_by_default(dns01: dict[str, Any]) -> None:
    """R-160: as for a TenantGateway without the block."""
    whole = {"apex": "example.org", "certMode": "dns01", "dns01": dns01}
    assert not schema_errors(SPEC, whole, "spec")
    assert SPEC["properties"]["dns01"]["properties"]["provider"]["default"] == "cloudflare"
    found = TenantGatewaySpec.model_validate(whole).dns01
    assert found is not None
    assert found.provider == "cloudflare"


def test_the_crd_equals_the_resource_of_the_embedded_cluster() -> None:
    crd, resource = tenantgateway_crd(), tenantgateway_resource()
    version = crd["spec"]["versions"][0]
    properties = version["schema"]["openAPIV3Schema"]["properties"]
    assert {name: properties[name] for name in resource.properties} == resource.properties
    assert crd["metadata"]["name"] == "tenantgateways.gateway.cozystack.io"
    assert crd["spec"]["names"]["shortNames"] == ["tgw"]
    assert version["subresources"] == {"status": {}}
    shown = [column["name"] for column in version["additionalPrinterColumns"]]
    assert shown == [*(column.name for column in resource.columns), "Age"] == ["Apex", "Mode", "Ready", "Age"]


def test_the_schema_merges_lists_by_their_keys() -> None:
    status = tenantgateway_resource().properties["status"]["properties"]
    assert status["conditions"]["x-kubernetes-list-map-keys"] == ["type"]
    assert status["listeners"]["x-kubernetes-list-map-keys"] == ["name"]


def test_a_table_row_shows_whether_the_gateway_is_ready() -> None:
    status = {"conditions": [{"type": "Other", "status": "False"}, {"type": "Ready", "status": "True"}]}
    cells = tenantgateway_resource().cells
    assert cells({"spec": {"apex": "a.org", "certMode": "dns01"}, "status": status}) == ("a.org", "dns01", "True")
    assert cells({"spec": {"apex": "a.org"}}) == ("a.org", "", "")
