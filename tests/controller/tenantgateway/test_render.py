"""Rendered objects, compared with golden files and schemas, and their patches to existing objects."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pytest

from apiserver.meta.resource import Object
from apiserver.meta.selectors import LabelSelector, Requirement
from controller.runtime.apply import create_merge_patch, drop_nulls
from controller.tenantgateway.model import InheritingNamespace, Plan, TenantGateway
from controller.tenantgateway.render.certificates import render_certificates
from controller.tenantgateway.render.gateway import render_gateway
from controller.tenantgateway.render.issuer import IssuerNotRenderable, render_issuer
from controller.tenantgateway.render.redirect import render_redirect
from registry.names import GATEWAY_LABEL
from tests.controller.golden_files import assert_golden
from tests.controller.tenantgateway.gateway_builders import assert_admitted, gateway, planned, route

PASSTHROUGH = ("api", "vm-exportproxy", "cdi-uploadproxy")
GATEWAYS = {
    "http01": gateway(passthrough=PASSTHROUGH),
    "dns01": gateway(cert_mode="dns01", passthrough=PASSTHROUGH),
    "existingsecret": gateway(cert_mode="existingSecret", wildcard_secret="wildcard-tls", passthrough=PASSTHROUGH),
}
MODES = [pytest.param(mode, id=mode) for mode in GATEWAYS]
GATEWAY_CRD = "gateway-api/gateway.networking.k8s.io_gateways.yaml"
HTTPROUTE_CRD = "gateway-api/gateway.networking.k8s.io_httproutes.yaml"
ISSUER_CRD = "cert-manager/cert-manager.io_issuers.yaml"
CERTIFICATE_CRD = "cert-manager/cert-manager.io_certificates.yaml"
GATEWAY_API, CERT_MANAGER = "gateway.networking.k8s.io/v1", "cert-manager.io/v1"


@dataclass(frozen=True)
class Server:
    server: str = "https://acme-v02.api.letsencrypt.org/directory"
    email: str = ""
    ca_bundle: str = ""


def plan_of(tenantgateway: TenantGateway) -> Plan:
    harbor = route("tenant-foo", "harbor", "harbor.foo.example.com")
    grafana = route("cozy-monitoring", "grafana", "grafana.foo.example.com")
    return planned(
        tenantgateway, harbor, grafana, inheriting=(InheritingNamespace("tenant-foo-alice", "alice.foo.example.com"),)
    )


def gateway_of(tenantgateway: TenantGateway, **options: Any) -> Object:
    return dict(drop_nulls(render_gateway(tenantgateway, plan_of(tenantgateway), **options)))


def listeners_of(tenantgateway: TenantGateway, **options: Any) -> Mapping[str, Object]:
    return {each["name"]: each for each in gateway_of(tenantgateway, **options)["spec"]["listeners"]}


def issuer_of(dns01: Mapping[str, object] | None, **fields: Any) -> Object:
    return render_issuer(gateway(cert_mode="dns01", dns01=dns01, **fields), Server())


def solver_of(issuer: Object) -> Object:
    (solver,) = drop_nulls(issuer)["spec"]["acme"]["solvers"]
    return dict(solver)


def defaulted_gateway(rendered: Object) -> Object:
    """The Gateway with server-side defaults and with fields that an operator has added."""
    plan = dict(drop_nulls(rendered))
    plan["metadata"] = {**plan["metadata"], "resourceVersion": "7", "annotations": {"note": "operator's"}}
    plan["spec"] = {
        **plan["spec"],
        "addresses": [{"type": "IPAddress", "value": "192.0.2.1"}],
        "infrastructure": {"labels": {"team": "net"}},
    }
    return plan


@pytest.mark.parametrize("mode", MODES)
def test_the_gateway_of_each_mode(mode: str) -> None:
    """R-106, R-112, R-114, R-115, R-118: it equals the golden file and is valid by Gateway API's schema."""
    rendered = render_gateway(GATEWAYS[mode], plan_of(GATEWAYS[mode]))
    assert_golden(f"tenantgateway/gateway-{mode}", rendered)
    assert_admitted(GATEWAY_CRD, rendered, api_version=GATEWAY_API, kind="Gateway")


def test_the_gateway_with_shared_kinds() -> None:
    """PEER-01, GW-3."""
    rendered = render_gateway(GATEWAYS["http01"], plan_of(GATEWAYS["http01"]), port443_kinds="shared")
    assert_golden("tenantgateway/gateway-http01-shared", rendered)
    assert_admitted(GATEWAY_CRD, rendered, api_version=GATEWAY_API, kind="Gateway")


@pytest.mark.parametrize("mode", MODES)
def test_the_certificates_of_each_mode(mode: str) -> None:
    """R-143, R-151 to R-154, R-159, R-174, PEER-03."""
    certificates = list(render_certificates(GATEWAYS[mode], plan_of(GATEWAYS[mode])))
    assert_golden(f"tenantgateway/certificates-{mode}", certificates)
    for each in certificates:
        assert_admitted(CERTIFICATE_CRD, each, api_version=CERT_MANAGER, kind="Certificate")


@pytest.mark.parametrize("mode", MODES)
def test_the_redirect_is_the_same_in_each_mode(mode: str) -> None:
    """R-183 to R-187, R-139."""
    rendered = render_redirect(GATEWAYS[mode])
    assert_golden("tenantgateway/redirect", rendered)
    assert_admitted(HTTPROUTE_CRD, rendered, api_version=GATEWAY_API, kind="HTTPRoute")


def test_a_gateway_in_the_namespace_of_cert_manager_names_it_once() -> None:
    """kube-apiserver would keep the duplicate, and each comparison would differ for a reader of the object."""
    listeners = render_gateway(gateway("cozy-cert-manager"), planned(gateway("cozy-cert-manager")))["spec"]["listeners"]
    (http,) = [each for each in listeners if each["name"] == "http"]
    (by_name,) = http["allowedRoutes"]["namespaces"]["selector"]["matchExpressions"]
    assert by_name["values"] == ["cozy-cert-manager"]


def dns01(provider: str, **settings: object) -> TenantGateway:
    block = {"provider": provider, **({provider: settings} if settings else {})}
    return gateway(cert_mode="dns01", dns01=block)


ISSUERS = [
    pytest.param("http01", gateway(), id="http01"),
    pytest.param("dns01-default", gateway(cert_mode="dns01"), id="R-160, R-161: cloudflare and its Secret by default"),
    pytest.param(
        "dns01-cloudflare",
        dns01("cloudflare", apiTokenSecretRef={"name": "cf", "key": "token"}),
        id="cloudflare",
    ),
    pytest.param(
        "dns01-route53",
        dns01("route53", region="eu-central-1", accessKeyID="AKIA0", secretAccessKeySecretRef={"name": "aws"}),
        id="R-164: route53 with a Secret",
    ),
    pytest.param(
        "dns01-route53-irsa", dns01("route53", region="eu-central-1"), id="R-163, PEER-16: route53 without a Secret"
    ),
    pytest.param("dns01-digitalocean", dns01("digitalocean"), id="R-165: digitalocean"),
    pytest.param(
        "dns01-rfc2136",
        dns01("rfc2136", nameserver="192.0.2.53", tsigKeyName="acme", tsigSecretSecretRef={"name": "tsig"}),
        id="R-167: rfc2136 with a key",
    ),
    pytest.param(
        "dns01-rfc2136-nameserver",
        dns01("rfc2136", nameserver="192.0.2.53:5353"),
        id="R-168, PEER-17: rfc2136 without a key",
    ),
]


@pytest.mark.parametrize(("name", "tenantgateway"), ISSUERS)
def test_the_issuer_of_each_solver(name: str, tenantgateway: TenantGateway) -> None:
    """R-141, R-142, R-144, R-169: it equals the golden file and is valid by cert-manager's schema."""
    rendered = render_issuer(tenantgateway, Server())
    assert_golden(f"tenantgateway/issuer-{name}", rendered)
    assert_admitted(ISSUER_CRD, rendered, api_version=CERT_MANAGER, kind="Issuer")


@pytest.mark.parametrize(
    ("dns01", "named"),
    [
        pytest.param({"provider": "route53"}, "spec.dns01.route53.region", id="R-162: no region"),
        pytest.param({"provider": "route53", "route53": {"region": ""}}, "region", id="R-162: an empty region"),
        pytest.param({"provider": "rfc2136", "rfc2136": {}}, "spec.dns01.rfc2136.nameserver", id="R-166"),
        pytest.param({"provider": "linode"}, "cloudflare, route53, digitalocean, rfc2136", id="R-173"),
    ],
)
def test_the_error_of_an_incomplete_issuer_names_the_field(dns01: Mapping[str, object], named: str) -> None:
    with pytest.raises(IssuerNotRenderable, match=named):
        issuer_of(dns01)


@pytest.mark.parametrize("provider", ["cloudflare", "route53", "digitalocean", "rfc2136"])
def test_only_the_chosen_provider_is_rendered(provider: str) -> None:
    """R-092, R-170: blocks of other providers are ignored."""
    blocks = {
        "route53": {"region": "eu"},
        "rfc2136": {"nameserver": "192.0.2.53"},
        "cloudflare": {},
        "digitalocean": {},
    }
    assert list(solver_of(issuer_of({"provider": provider, **blocks}))["dns01"]) == [provider]


def test_the_settings_of_an_acme_server_are_rendered() -> None:
    """R-145 to R-148, GW-21: URL, e-mail of the account, and CA of the server."""
    server = Server("https://ca.example.org/acme", "ops@example.org", "-----BEGIN CERTIFICATE-----\nx\n")
    rendered = render_issuer(gateway(), server)
    acme = rendered["spec"]["acme"]
    assert (acme["server"], acme["email"]) == ("https://ca.example.org/acme", "ops@example.org")
    assert acme["caBundle"] == "LS0tLS1CRUdJTiBDRVJUSUZJQ0FURS0tLS0tCngK"
    assert render_issuer(gateway(), Server(ca_bundle="eA=="))["spec"]["acme"]["caBundle"] == "eA=="
    assert_admitted(ISSUER_CRD, rendered, api_version=CERT_MANAGER, kind="Issuer")


def test_each_owner_has_its_own_issuer_and_account() -> None:
    """R-149, R-150: the Issuer and its account are objects of the owner's namespace."""
    issuer = render_issuer(gateway("tenant-alice"), Server())
    assert (issuer["metadata"]["namespace"], issuer["metadata"]["name"]) == ("tenant-alice", "cozystack-gateway")
    assert issuer["spec"]["acme"]["privateKeySecretRef"] == {"name": "cozystack-acme-account"}
    (parent,) = solver_of(issuer)["http01"]["gatewayHTTPRoute"]["parentRefs"]
    assert (parent["namespace"], parent["name"], parent["sectionName"]) == ("tenant-alice", "cozystack", "http")


def test_all_rendered_objects_are_owned_by_the_tenantgateway() -> None:
    """R-103."""
    tenantgateway = GATEWAYS["http01"]
    for each in (
        render_gateway(tenantgateway, plan_of(tenantgateway)),
        render_issuer(tenantgateway, Server()),
        render_redirect(tenantgateway),
        *render_certificates(tenantgateway, plan_of(tenantgateway)),
    ):
        (reference,) = each["metadata"]["ownerReferences"]
        assert (reference["apiVersion"], reference["kind"], reference["name"], reference["uid"]) == (
            "gateway.cozystack.io/v1alpha1",
            "TenantGateway",
            "cozystack",
            "uid-of-it",
        )
        assert reference["controller"] is True
        assert each["metadata"]["namespace"] == "tenant-foo"


def test_object_names_are_the_same_for_every_owner() -> None:
    """R-083, R-185, R-227, R-228, R-299."""
    tenantgateway = GATEWAYS["dns01"]
    assert render_gateway(tenantgateway, plan_of(tenantgateway))["metadata"]["name"] == "cozystack"
    assert render_issuer(tenantgateway, Server())["metadata"]["name"] == "cozystack-gateway"
    assert render_certificates(tenantgateway, plan_of(tenantgateway))[0]["metadata"]["name"] == "cozystack-gateway-tls"
    assert render_redirect(tenantgateway)["metadata"]["name"] == "cozystack-http-redirect"


def test_only_certificates_of_single_hostnames_have_the_label() -> None:
    """R-153, R-229."""
    marked = {
        mode: [
            each["metadata"]["labels"].get("cozystack.io/per-listener-cert")
            for each in render_certificates(tenantgateway, plan_of(tenantgateway))
        ]
        for mode, tenantgateway in GATEWAYS.items()
    }
    assert marked == {"http01": ["true", "true"], "dns01": [None], "existingsecret": []}


@pytest.mark.parametrize("mode", MODES)
def test_port_443_admits_only_namespaces_with_the_label_of_the_owner(mode: str) -> None:
    """R-130, R-131, R-138, PEER-11: an attacker's namespace lacks the label."""
    for listener in listeners_of(GATEWAYS[mode]).values():
        namespaces = listener["allowedRoutes"]["namespaces"]
        assert namespaces["from"] == "Selector"
        if listener["port"] == 443:
            assert namespaces["selector"] == {"matchLabels": {GATEWAY_LABEL: "tenant-foo"}}


@pytest.mark.parametrize(
    ("namespace", "admitted_"),
    [
        pytest.param("tenant-foo", True, id="the owner, for the redirect and ACME solvers"),
        pytest.param("cozy-cert-manager", True, id="R-311, R-323: cert-manager"),
        pytest.param("cozy-harbor", False, id="R-133: an attached namespace"),
        pytest.param("tenant-foo-alice", False, id="R-140: an inheriting namespace"),
    ],
)
def test_port_80_admits_two_namespaces(namespace: str, admitted_: bool) -> None:
    """R-132, GW-11."""
    listener = listeners_of(gateway(attached=("cozy-harbor",)))["http"]
    selector = listener["allowedRoutes"]["namespaces"]["selector"]
    assert list(selector) == ["matchExpressions"]
    (expression,) = selector["matchExpressions"]
    requirement = Requirement(expression["key"], expression["operator"], tuple(expression["values"]))
    assert LabelSelector((requirement,)).matches({"kubernetes.io/metadata.name": namespace}) is admitted_


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("port443_kinds", ["separate", "shared"])
def test_allowed_kinds_match_the_protocol_and_are_covered_by_policies(mode: str, port443_kinds: str) -> None:
    """R-134, R-135, R-136, PEER-01, FACT-8, VAP-3: for both values of port443Kinds."""
    for listener in listeners_of(GATEWAYS[mode], port443_kinds=port443_kinds).values():
        kinds = [each["kind"] for each in listener["allowedRoutes"]["kinds"]]
        own = "TLSRoute" if listener["protocol"] == "TLS" else "HTTPRoute"
        assert own in kinds
        assert set(kinds) <= {"HTTPRoute", "TLSRoute"}
        assert (len(kinds) == 2) is (port443_kinds == "shared" and listener["port"] == 443)


@pytest.mark.parametrize("mode", MODES)
def test_no_two_listeners_share_port_protocol_and_hostname(mode: str) -> None:
    """R-124."""
    triples = [(each["port"], each["protocol"], each.get("hostname")) for each in listeners_of(GATEWAYS[mode]).values()]
    assert len(set(triples)) == len(triples)


def test_the_class_name_is_passed_on_unchanged() -> None:
    """R-089, R-125, CHOICE-6: even a misspelt one."""
    assert gateway_of(gateway(class_name="cillium"))["spec"]["gatewayClassName"] == "cillium"


@pytest.mark.parametrize("mode", MODES)
def test_addresses_and_infrastructure_of_the_operator_are_kept(mode: str) -> None:
    """GW-20, GW-22, R-126, R-129: a change of the listeners keeps them, and they cause no write."""
    tenantgateway = GATEWAYS[mode]
    existing = defaulted_gateway(render_gateway(tenantgateway, plan_of(tenantgateway)))
    assert create_merge_patch(existing, render_gateway(tenantgateway, plan_of(tenantgateway))) == {}
    assert set(existing["spec"]) - {"addresses", "infrastructure"} == {"gatewayClassName", "listeners"}

    fewer = create_merge_patch(existing, render_gateway(tenantgateway, planned(tenantgateway)))
    assert set(fewer) <= {"spec"}
    assert set(fewer.get("spec", {})) <= {"listeners"}


def test_a_second_pass_over_defaulted_objects_changes_nothing() -> None:
    """R-102, GW-20: with defaults of the schemas filled in."""
    tenantgateway = GATEWAYS["http01"]
    redirect = drop_nulls(render_redirect(tenantgateway))
    redirect["spec"]["rules"][0]["timeouts"] = {}
    issuer = drop_nulls(render_issuer(tenantgateway, Server()))
    issuer["spec"]["acme"]["solvers"][0]["http01"]["gatewayHTTPRoute"]["serviceType"] = "ClusterIP"
    certificate = drop_nulls(render_certificates(tenantgateway, plan_of(tenantgateway))[0])
    certificate["spec"]["privateKey"] = {"rotationPolicy": "Always"}
    assert create_merge_patch(redirect, render_redirect(tenantgateway)) == {}
    assert create_merge_patch(issuer, render_issuer(tenantgateway, Server())) == {}
    assert create_merge_patch(certificate, render_certificates(tenantgateway, plan_of(tenantgateway))[0]) == {}


def test_fields_added_to_a_listener_are_removed() -> None:
    """A wider selector or a hostname on port 80 is not left to the operator."""
    tenantgateway = GATEWAYS["http01"]
    existing = gateway_of(tenantgateway)
    existing["spec"]["listeners"][0]["hostname"] = "only.foo.example.com"
    assert (
        create_merge_patch(existing, render_gateway(tenantgateway, plan_of(tenantgateway)))["spec"]["listeners"][0].get(
            "hostname"
        )
        is None
    )


def test_a_secret_that_is_no_longer_configured_is_removed_from_the_solver() -> None:
    """PEER-16: unwanted fields of list items are detected, too."""
    with_secret = {"region": "eu", "accessKeyID": "AKIA0", "secretAccessKeySecretRef": {"name": "aws", "key": "k"}}
    existing = dict(drop_nulls(issuer_of({"provider": "route53", "route53": with_secret})))
    changes = create_merge_patch(existing, issuer_of({"provider": "route53", "route53": {"region": "eu"}}))
    assert changes["spec"]["acme"]["solvers"] == [{"dns01": {"route53": {"region": "eu"}}}]


def test_a_solver_of_the_other_mode_is_replaced() -> None:
    """R-158."""
    existing = dict(drop_nulls(render_issuer(gateway(), Server())))
    (solver,) = create_merge_patch(existing, issuer_of(None))["spec"]["acme"]["solvers"]
    assert list(solver) == ["dns01"]


def test_hostnames_added_to_the_redirect_are_removed() -> None:
    """R-187."""
    existing = dict(drop_nulls(render_redirect(gateway())))
    existing["spec"]["hostnames"] = ["harbor.foo.example.com"]
    assert create_merge_patch(existing, render_redirect(gateway())) == {"spec": {"hostnames": None}}


def test_a_long_name_is_shortened_to_a_label_value() -> None:
    tenantgateway = gateway(name="t" * 200)
    label = render_redirect(tenantgateway)["metadata"]["labels"]["cozystack.io/tenantgateway"]
    assert len(label) == 63
    assert label != render_redirect(gateway(name="t" * 201))["metadata"]["labels"]["cozystack.io/tenantgateway"]
