"""What is written for a TenantGateway, as files, and how it meets what is there."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pytest

from apiserver.meta.resource import Object
from apiserver.meta.selectors import LabelSelector, Requirement
from controller.runtime.apply import drop_nulls, merge_patch
from controller.tenantgateway.model import InheritingNamespace, Plan, TenantGateway
from controller.tenantgateway.render.certificates import render_certificates
from controller.tenantgateway.render.gateway import render_gateway
from controller.tenantgateway.render.issuer import IssuerNotRenderable, render_issuer
from controller.tenantgateway.render.redirect import render_redirect
from registry.names import GATEWAY_LABEL
from tests.controller.golden_files import assert_golden
from tests.controller.tenantgateway.gateway_builders import admitted, gateway, planned, route

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
    """As Gateway API's defaults leave it, and an operator's hand and the host add to it."""
    made = dict(drop_nulls(rendered))
    made["metadata"] = {**made["metadata"], "resourceVersion": "7", "annotations": {"note": "operator's"}}
    made["spec"] = {
        **made["spec"],
        "addresses": [{"type": "IPAddress", "value": "192.0.2.1"}],
        "infrastructure": {"labels": {"team": "net"}},
    }
    return made


@pytest.mark.parametrize("mode", MODES)
def test_the_gateway_of_each_mode(mode: str) -> None:
    """R-106, R-112, R-114, R-115, R-118: the golden file, which Gateway API's schema takes."""
    rendered = render_gateway(GATEWAYS[mode], plan_of(GATEWAYS[mode]))
    assert_golden(f"tenantgateway/gateway-{mode}", rendered)
    admitted(GATEWAY_CRD, rendered, api_version=GATEWAY_API, kind="Gateway")


def test_the_gateway_with_shared_kinds() -> None:
    """PEER-01, GW-3."""
    rendered = render_gateway(GATEWAYS["http01"], plan_of(GATEWAYS["http01"]), port443_kinds="shared")
    assert_golden("tenantgateway/gateway-http01-shared", rendered)
    admitted(GATEWAY_CRD, rendered, api_version=GATEWAY_API, kind="Gateway")


@pytest.mark.parametrize("mode", MODES)
def test_the_certificates_of_each_mode(mode: str) -> None:
    """R-143, R-151 to R-154, R-159, R-174, PEER-03."""
    certificates = list(render_certificates(GATEWAYS[mode], plan_of(GATEWAYS[mode])))
    assert_golden(f"tenantgateway/certificates-{mode}", certificates)
    for each in certificates:
        admitted(CERTIFICATE_CRD, each, api_version=CERT_MANAGER, kind="Certificate")


@pytest.mark.parametrize("mode", MODES)
def test_the_redirect_is_the_same_in_each_mode(mode: str) -> None:
    """R-183 to R-187, R-139."""
    rendered = render_redirect(GATEWAYS[mode])
    assert_golden("tenantgateway/redirect", rendered)
    admitted(HTTPROUTE_CRD, rendered, api_version=GATEWAY_API, kind="HTTPRoute")


def dns01(provider: str, **settings: object) -> TenantGateway:
    block = {"provider": provider, **({provider: settings} if settings else {})}
    return gateway(cert_mode="dns01", dns01=block)


ISSUERS = [
    pytest.param("http01", gateway(), id="http01"),
    pytest.param("dns01-default", gateway(cert_mode="dns01"), id="R-160, R-161: cloudflare, and its Secret"),
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
        "dns01-route53-irsa", dns01("route53", region="eu-central-1"), id="R-163, PEER-16: route53 without one"
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
        id="R-168, PEER-17: rfc2136 without one",
    ),
]


@pytest.mark.parametrize(("name", "tenantgateway"), ISSUERS)
def test_the_issuer_of_each_solver(name: str, tenantgateway: TenantGateway) -> None:
    """R-141, R-142, R-144, R-169: the golden file, which cert-manager's schema takes."""
    rendered = render_issuer(tenantgateway, Server())
    assert_golden(f"tenantgateway/issuer-{name}", rendered)
    admitted(ISSUER_CRD, rendered, api_version=CERT_MANAGER, kind="Issuer")


@pytest.mark.parametrize(
    ("dns01", "named"),
    [
        pytest.param({"provider": "route53"}, "spec.dns01.route53.region", id="R-162: no region"),
        pytest.param({"provider": "route53", "route53": {"region": ""}}, "region", id="R-162: an empty region"),
        pytest.param({"provider": "rfc2136", "rfc2136": {}}, "spec.dns01.rfc2136.nameserver", id="R-166"),
        pytest.param({"provider": "linode"}, "cloudflare, route53, digitalocean, rfc2136", id="R-173"),
    ],
)
def test_an_issuer_that_lacks_something_names_it(dns01: Mapping[str, object], named: str) -> None:
    with pytest.raises(IssuerNotRenderable, match=named):
        issuer_of(dns01)


@pytest.mark.parametrize("provider", ["cloudflare", "route53", "digitalocean", "rfc2136"])
def test_the_solver_is_of_one_provider(provider: str) -> None:
    """R-092, R-170: whatever other blocks there are."""
    blocks = {
        "route53": {"region": "eu"},
        "rfc2136": {"nameserver": "192.0.2.53"},
        "cloudflare": {},
        "digitalocean": {},
    }
    assert list(solver_of(issuer_of({"provider": provider, **blocks}))["dns01"]) == [provider]


def test_another_acme_server_is_an_entry_of_the_settings() -> None:
    """R-145 to R-148, GW-21: with an account's e-mail and the authority that signs the server."""
    server = Server("https://ca.example.org/acme", "ops@example.org", "-----BEGIN CERTIFICATE-----\nx\n")
    rendered = render_issuer(gateway(), server)
    acme = rendered["spec"]["acme"]
    assert (acme["server"], acme["email"]) == ("https://ca.example.org/acme", "ops@example.org")
    assert acme["caBundle"] == "LS0tLS1CRUdJTiBDRVJUSUZJQ0FURS0tLS0tCngK"
    assert render_issuer(gateway(), Server(ca_bundle="eA=="))["spec"]["acme"]["caBundle"] == "eA=="
    admitted(ISSUER_CRD, rendered, api_version=CERT_MANAGER, kind="Issuer")


def test_an_owner_is_a_boundary_of_its_own() -> None:
    """R-149, R-150: names are per namespace, and so is the account."""
    issuer = render_issuer(gateway("tenant-alice"), Server())
    assert (issuer["metadata"]["namespace"], issuer["metadata"]["name"]) == ("tenant-alice", "cozystack-gateway")
    assert issuer["spec"]["acme"]["privateKeySecretRef"] == {"name": "cozystack-acme-account"}
    (parent,) = solver_of(issuer)["http01"]["gatewayHTTPRoute"]["parentRefs"]
    assert (parent["namespace"], parent["name"], parent["sectionName"]) == ("tenant-alice", "cozystack", "http")


def test_everything_is_owned_by_the_tenantgateway() -> None:
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


def test_names_are_literals_for_every_owner() -> None:
    """R-083, R-185, R-227, R-228, R-299."""
    tenantgateway = GATEWAYS["dns01"]
    assert render_gateway(tenantgateway, plan_of(tenantgateway))["metadata"]["name"] == "cozystack"
    assert render_issuer(tenantgateway, Server())["metadata"]["name"] == "cozystack-gateway"
    assert render_certificates(tenantgateway, plan_of(tenantgateway))[0]["metadata"]["name"] == "cozystack-gateway-tls"
    assert render_redirect(tenantgateway)["metadata"]["name"] == "cozystack-http-redirect"


def test_the_label_selects_the_certificates_of_hostnames() -> None:
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
def test_port_443_admits_the_namespaces_of_the_owner_only(mode: str) -> None:
    """R-130, R-131, R-138, PEER-11: nothing more than the label, which an attacker's namespace does not have."""
    for listener in listeners_of(GATEWAYS[mode]).values():
        namespaces = listener["allowedRoutes"]["namespaces"]
        assert namespaces["from"] == "Selector"
        if listener["port"] == 443:
            assert namespaces["selector"] == {"matchLabels": {GATEWAY_LABEL: "tenant-foo"}}


@pytest.mark.parametrize(
    ("namespace", "admitted_"),
    [
        pytest.param("tenant-foo", True, id="the owner's, for the redirect and the solvers"),
        pytest.param("cozy-cert-manager", True, id="R-311, R-323: cert-manager's"),
        pytest.param("cozy-harbor", False, id="R-133: not an attached one's"),
        pytest.param("tenant-foo-alice", False, id="R-140: not an heir's"),
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
def test_kinds_hold_what_a_listener_is_for_and_nothing_unguarded(mode: str, port443_kinds: str) -> None:
    """R-134, R-135, R-136, PEER-01, FACT-8, VAP-3: in both settings."""
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


def test_the_class_is_the_one_that_was_given() -> None:
    """R-089, R-125, CHOICE-6: a misspelt one too."""
    assert gateway_of(gateway(class_name="cillium"))["spec"]["gatewayClassName"] == "cillium"


@pytest.mark.parametrize("mode", MODES)
def test_an_operators_address_and_infrastructure_stay(mode: str) -> None:
    """GW-20, GW-22, R-126, R-129: neither wiped by a change of the listeners, nor a reason to write."""
    tenantgateway = GATEWAYS[mode]
    there = defaulted_gateway(render_gateway(tenantgateway, plan_of(tenantgateway)))
    assert merge_patch(there, render_gateway(tenantgateway, plan_of(tenantgateway))) == {}
    assert set(there["spec"]) - {"addresses", "infrastructure"} == {"gatewayClassName", "listeners"}

    fewer = merge_patch(there, render_gateway(tenantgateway, planned(tenantgateway)))
    assert set(fewer) <= {"spec"}
    assert set(fewer.get("spec", {})) <= {"listeners"}


def test_a_second_pass_over_defaulted_objects_changes_nothing() -> None:
    """R-102, GW-20: with what the schemas fill in."""
    tenantgateway = GATEWAYS["http01"]
    redirect = drop_nulls(render_redirect(tenantgateway))
    redirect["spec"]["rules"][0]["timeouts"] = {}
    issuer = drop_nulls(render_issuer(tenantgateway, Server()))
    issuer["spec"]["acme"]["solvers"][0]["http01"]["gatewayHTTPRoute"]["serviceType"] = "ClusterIP"
    certificate = drop_nulls(render_certificates(tenantgateway, plan_of(tenantgateway))[0])
    certificate["spec"]["privateKey"] = {"rotationPolicy": "Always"}
    assert merge_patch(redirect, render_redirect(tenantgateway)) == {}
    assert merge_patch(issuer, render_issuer(tenantgateway, Server())) == {}
    assert merge_patch(certificate, render_certificates(tenantgateway, plan_of(tenantgateway))[0]) == {}


def test_what_somebody_adds_to_a_listener_goes_again() -> None:
    """A selector that is wider, or a hostname on port 80, is no addition of the operator's."""
    tenantgateway = GATEWAYS["http01"]
    there = gateway_of(tenantgateway)
    there["spec"]["listeners"][0]["hostname"] = "only.foo.example.com"
    assert (
        merge_patch(there, render_gateway(tenantgateway, plan_of(tenantgateway)))["spec"]["listeners"][0].get(
            "hostname"
        )
        is None
    )


def test_a_provider_that_needs_no_secret_any_more_loses_it() -> None:
    """PEER-16: an item of a list is compared with what it must not have, too."""
    with_secret = {"region": "eu", "accessKeyID": "AKIA0", "secretAccessKeySecretRef": {"name": "aws", "key": "k"}}
    there = dict(drop_nulls(issuer_of({"provider": "route53", "route53": with_secret})))
    changes = merge_patch(there, issuer_of({"provider": "route53", "route53": {"region": "eu"}}))
    assert changes["spec"]["acme"]["solvers"] == [{"dns01": {"route53": {"region": "eu"}}}]


def test_a_solver_of_the_other_kind_is_replaced() -> None:
    """R-158."""
    there = dict(drop_nulls(render_issuer(gateway(), Server())))
    (solver,) = merge_patch(there, issuer_of(None))["spec"]["acme"]["solvers"]
    assert list(solver) == ["dns01"]


def test_hostnames_that_somebody_gives_the_redirect_go_again() -> None:
    """R-187."""
    there = dict(drop_nulls(render_redirect(gateway())))
    there["spec"]["hostnames"] = ["harbor.foo.example.com"]
    assert merge_patch(there, render_redirect(gateway())) == {"spec": {"hostnames": None}}


def test_the_labels_hold_the_name_of_a_tenantgateway_of_any_length() -> None:
    tenantgateway = gateway(name="t" * 200)
    label = render_redirect(tenantgateway)["metadata"]["labels"]["cozystack.io/tenantgateway"]
    assert len(label) == 63
    assert label != render_redirect(gateway(name="t" * 201))["metadata"]["labels"]["cozystack.io/tenantgateway"]
