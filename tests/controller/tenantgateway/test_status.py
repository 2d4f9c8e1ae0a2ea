"""Conditions and listeners in the status of a TenantGateway."""

from __future__ import annotations

import copy
from dataclasses import replace

import pytest

from apiserver.meta.resource import Object
from controller.runtime.conditions import find_condition
from controller.tenantgateway.model import InheritingNamespace, TenantGateway
from controller.tenantgateway.status import ReconcileResult, render_tenantgateway_status
from tests.controller.tenantgateway.gateway_builders import (
    DNS01,
    EXISTING,
    HARBOR,
    HTTP01,
    LATER,
    NOW,
    TAKEOVER,
    all_well,
    assert_admitted,
    certificates,
    gateway,
    planned,
    programmed,
    ready_of,
    reported,
    route,
    shown,
)

MODES = [
    pytest.param(HTTP01, id="http01"),
    pytest.param(DNS01, id="dns01"),
    pytest.param(EXISTING, id="existingSecret"),
]


@pytest.mark.parametrize("tenantgateway", MODES)
def test_a_complete_gateway_is_ready(tenantgateway: TenantGateway) -> None:
    """R-230."""
    status = render_tenantgateway_status(all_well(tenantgateway), now=NOW)
    (ready,) = status["conditions"]
    assert (ready["type"], ready["status"], ready["reason"]) == ("Ready", "True", "Reconciled")
    assert ready["observedGeneration"] == status["observedGeneration"] == 3
    assert all(each["ready"] for each in status["listeners"])
    assert not any("reason" in each for each in status["listeners"])
    assert_admitted(
        "manifests/overlays/prerequisites/tenantgateway-crd.yaml",
        {"metadata": {}, "spec": {"apex": "foo.example.com"}, "status": status},
        api_version="gateway.cozystack.io/v1alpha1",
        kind="TenantGateway",
    )


@pytest.mark.parametrize("tenantgateway", MODES)
def test_a_second_pass_changes_nothing(tenantgateway: TenantGateway) -> None:
    """R-102."""
    found = all_well(tenantgateway)
    before = render_tenantgateway_status(found, now=NOW)
    assert render_tenantgateway_status(replace(found, previous=before), now=LATER) == before


def test_a_transition_updates_the_transition_time() -> None:
    found = all_well(HTTP01)
    before = render_tenantgateway_status(replace(found, errors=["no"]), now=NOW)
    after = render_tenantgateway_status(replace(found, previous=before), now=LATER)
    assert after["conditions"][0]["lastTransitionTime"] == LATER


def test_errors_are_reported_and_listeners_are_still_shown() -> None:
    """R-217, R-218, R-223 to R-226, R-317: errors are listed in the order of the steps."""
    found = replace(all_well(HTTP01), errors=[f"{TAKEOVER}: rename it", "issuer tenant-foo/cozystack-gateway exists"])
    ready = ready_of(found)
    assert (ready["status"], ready["reason"]) == ("False", "ReconcileError")
    assert ready["message"] == f"{TAKEOVER}: rename it; issuer tenant-foo/cozystack-gateway exists"
    assert shown(found, "https-harbor-760d5a8a")["ready"] is True


def _without_status(found: ReconcileResult) -> ReconcileResult:
    current = {**(found.current or {}), "status": {}}
    return replace(found, current=current)


def _with_condition(found: ReconcileResult, replacement: Object) -> ReconcileResult:
    current = copy.deepcopy(found.current or {})
    conditions = current["status"]["conditions"]
    current["status"]["conditions"] = [
        replacement if each["type"] == replacement["type"] else each for each in conditions
    ]
    return replace(found, current=current)


@pytest.mark.parametrize(
    ("found", "reason", "message"),
    [
        pytest.param(
            replace(all_well(HTTP01), current=None), "GatewayNotAccepted", "does not exist", id="Gateway missing"
        ),
        pytest.param(
            _without_status(all_well(HTTP01)),
            "GatewayNotAccepted",
            "Pending",
            id="R-125: no controller reports on the Gateway",
        ),
        pytest.param(
            _with_condition(all_well(HTTP01), reported("Accepted", "False", "Invalid")),
            "GatewayNotAccepted",
            "Invalid: reported",
            id="not accepted",
        ),
        pytest.param(
            _with_condition(all_well(HTTP01), reported("Accepted", generation=1)),
            "GatewayNotAccepted",
            "earlier generation",
            id="accepted in an earlier generation",
        ),
        pytest.param(
            _with_condition(all_well(HTTP01), reported("Programmed", "False", "AddressNotAssigned")),
            "GatewayNotProgrammed",
            "AddressNotAssigned",
            id="R-230: without an address",
        ),
        pytest.param(
            _with_condition(all_well(HTTP01), reported("Programmed", "Unknown", "Pending")),
            "GatewayNotProgrammed",
            "Pending",
            id="R-230: programming not finished",
        ),
    ],
)
def test_ready_depends_on_the_conditions_of_the_gateway(found: ReconcileResult, reason: str, message: str) -> None:
    ready = ready_of(found)
    assert (ready["status"], ready["reason"]) == ("False", reason)
    assert message in ready["message"]
    assert "tenant-foo/cozystack" in ready["message"]


@pytest.mark.parametrize(
    ("conditions", "reason"),
    [
        pytest.param([reported("Accepted")], "Pending", id="not programmed yet"),
        pytest.param(
            [reported("ResolvedRefs", "False", "InvalidCertificateRef"), reported("Programmed", "False", "Invalid")],
            "InvalidCertificateRef",
            id="R-318: its Secret does not exist, and the cause is reported first",
        ),
        pytest.param([reported("Programmed", "False", "Invalid")], "Invalid", id="not programmed"),
        pytest.param(
            [reported("Programmed"), reported("Conflicted", "True", "ProtocolConflict")],
            "ProtocolConflict",
            id="GW-3: conflict with another listener",
        ),
    ],
)
def test_the_ready_condition_names_a_listener_that_is_not_ready(conditions: list[Object], reason: str) -> None:
    found = all_well(HTTP01)
    found = replace(found, current=programmed(HTTP01, found.plan, https_harbor_760d5a8a=conditions))
    ready = ready_of(found)
    assert (ready["status"], ready["reason"]) == ("False", "ListenersNotReady")
    assert "https-harbor-760d5a8a" in ready["message"]
    assert "tls-api" not in ready["message"]
    assert shown(found, "https-harbor-760d5a8a") == {
        "name": "https-harbor-760d5a8a",
        "hostname": HARBOR,
        "certificateName": "cozystack-harbor-760d5a8a-tls",
        "ready": False,
        "reason": reason,
    }
    assert shown(found, "tls-api") == {"name": "tls-api", "hostname": "api.foo.example.com", "ready": True}


def test_a_listener_without_a_status_is_pending() -> None:
    found = all_well(HTTP01)
    current = copy.deepcopy(found.current or {})
    current["status"]["listeners"].pop()
    assert ready_of(replace(found, current=current))["reason"] == "ListenersNotReady"


def test_a_listener_with_only_the_programmed_condition_is_ready() -> None:
    """R-230: as in a status that was patched by hand."""
    found = all_well(HTTP01)
    bare = {"type": "Programmed", "status": "True"}
    current = programmed(HTTP01, found.plan, https_harbor_760d5a8a=[bare])
    current["status"]["conditions"] = [{"type": "Accepted", "status": "True"}, bare]
    assert ready_of(replace(found, current=current))["status"] == "True"


def test_a_programmed_listener_with_route_kinds_that_cilium_does_not_know_is_ready() -> None:
    """R-230: with `gateway.port443Kinds: shared`, Cilium reports unknown kinds beside Programmed."""
    found = all_well(HTTP01)
    conditions = [reported("Accepted"), reported("ResolvedRefs", "False", "InvalidRouteKinds"), reported("Programmed")]
    current = programmed(HTTP01, found.plan, https_harbor_760d5a8a=conditions)
    assert ready_of(replace(found, current=current))["status"] == "True"


@pytest.mark.parametrize(
    "existing",
    [
        pytest.param({}, id="Certificate missing"),
        pytest.param(None, id="Certificate not ready"),
    ],
)
def test_ready_depends_on_the_wildcard_certificate_in_dns01(existing: dict[str, Object] | None) -> None:
    """GW-17."""
    found = all_well(DNS01)
    found = replace(found, certificates=certificates(found.plan, "False") if existing is None else existing)
    ready = ready_of(found)
    assert (ready["status"], ready["reason"]) == ("False", "CertificatesNotReady")
    assert "cozystack-gateway-tls" in ready["message"]
    assert shown(found, "https-apex")["reason"] == "CertificateNotReady"
    assert shown(found, "http") == {"name": "http", "ready": True}


def test_a_certificate_condition_of_an_earlier_generation_is_not_ready() -> None:
    found = all_well(DNS01)
    found.certificates["cozystack-gateway-tls"]["metadata"]["generation"] = 3
    assert ready_of(found)["reason"] == "CertificatesNotReady"


def test_the_certificate_of_one_hostname_affects_its_listener_only() -> None:
    """A hostname that waits for its DNS record does not affect Ready."""
    found = all_well(HTTP01)
    found = replace(found, certificates=certificates(found.plan, "False"))
    assert ready_of(found)["status"] == "True"
    assert shown(found, "https-harbor-760d5a8a")["ready"] is False
    assert shown(found, "https-harbor-760d5a8a")["reason"] == "CertificateNotReady"


def test_hostnames_beyond_the_limit_are_listed_and_the_rest_is_ready() -> None:
    """R-122 as issue 3 changes it, GW-4."""
    plan = planned(HTTP01, route("tenant-foo", "app", *(f"a{index:02}.foo.example.com" for index in range(65))))
    found = ReconcileResult(
        gateway=HTTP01, plan=plan, current=programmed(HTTP01, plan), certificates=certificates(plan)
    )
    status = render_tenantgateway_status(found, now=NOW)
    truncated = find_condition(status["conditions"], "ListenersTruncated")
    assert truncated is not None
    assert truncated["status"] == "True"
    assert all(f"a{index}.foo.example.com" in truncated["message"] for index in (62, 63, 64))
    assert "a61." not in truncated["message"]
    assert ready_of(found)["status"] == "True"


def test_a_condition_message_is_truncated_to_its_limit() -> None:
    """ATTACK-13."""
    names = [f"{'a' * 60}{index:04}"[-63:] + ".foo.example.com" for index in range(2000)]
    plan = planned(HTTP01, route("tenant-foo", "app", *names))
    truncated = find_condition(
        render_tenantgateway_status(ReconcileResult(gateway=HTTP01, plan=plan), now=NOW)["conditions"],
        "ListenersTruncated",
    )
    assert truncated is not None
    assert len(truncated["message"]) <= 32768
    assert truncated["message"].endswith(" more")


@pytest.mark.parametrize(
    ("tenantgateway", "names"),
    [
        pytest.param(HTTP01, ("*.foo.example.com", "tenant-foo/bad"), id="FACT-4: a wildcard in HTTP-01"),
        pytest.param(
            DNS01,
            ("customer1.example", "a namespace that inherits the gateway"),
            id="PEER-22, FACT-2: an inheriting namespace of another domain",
        ),
    ],
)
def test_omitted_hostnames_of_others_are_reported_and_do_not_affect_ready(
    tenantgateway: TenantGateway, names: tuple[str, ...]
) -> None:
    plan = planned(
        tenantgateway,
        route("tenant-foo", "bad", "*.foo.example.com"),
        inheriting=(InheritingNamespace("tenant-heir", "customer1.example"),),
    )
    found = ReconcileResult(
        gateway=tenantgateway, plan=plan, current=programmed(tenantgateway, plan), certificates=certificates(plan)
    )
    omitted = find_condition(render_tenantgateway_status(found, now=NOW)["conditions"], "HostnamesLeftOut")
    assert omitted is not None
    assert all(name in omitted["message"] for name in names)
    assert "tenant-heir" not in omitted["message"]
    assert ready_of(found)["status"] == "True"


def test_hostnames_of_routes_that_the_gateway_does_not_serve_are_not_reported_to_its_readers() -> None:
    """The route says so itself, to its own readers. Else a tenant could fill the conditions and Events of another."""
    plan = planned(
        HTTP01,
        route("tenant-heir", "heir", "heirs.example.org"),
        route("tenant-other", "stranger", "strangers.example.org"),
        inheriting=(InheritingNamespace("tenant-heir", "heir.example.org"),),
    )
    assert {each.hostname for each in plan.omitted} == {"heirs.example.org", "strangers.example.org"}
    found = ReconcileResult(gateway=HTTP01, plan=plan, current=programmed(HTTP01, plan), heirs={"tenant-heir"})
    omitted = find_condition(render_tenantgateway_status(found, now=NOW)["conditions"], "HostnamesLeftOut")
    assert omitted is not None
    assert '"heirs.example.org"' in omitted["message"]
    assert "strangers" not in omitted["message"]


@pytest.mark.parametrize(
    ("tenantgateway", "message"),
    [
        pytest.param(gateway(passthrough=("a_b",)), "a_b", id="an invalid passthrough service"),
        pytest.param(gateway(cert_mode="existingSecret"), "wildcardSecretRef", id="no Secret in existingSecret"),
        pytest.param(gateway(apex="a_b.example"), "spec.apex", id="an apex that is not a domain"),
    ],
)
def test_omitted_hostnames_of_the_tenantgateway_itself_are_errors(tenantgateway: TenantGateway, message: str) -> None:
    plan = planned(tenantgateway)
    ready = ready_of(ReconcileResult(gateway=tenantgateway, plan=plan, current=programmed(tenantgateway, plan)))
    assert (ready["status"], ready["reason"]) == ("False", "ReconcileError")
    assert message in ready["message"]


def test_a_secret_that_nobody_consented_to_is_reported() -> None:
    found = replace(all_well(EXISTING), refused_secret="Secret vault/ours: no grant")
    conditions = render_tenantgateway_status(found, now=NOW)["conditions"]
    certificates = find_condition(conditions, "CertificatesReady")
    assert certificates is not None
    assert (certificates["status"], certificates["reason"]) == ("False", "RefNotPermitted")
    assert "certificates stay as they are" in certificates["message"]
    assert (ready_of(found)["status"], ready_of(found)["reason"]) == ("False", "RefNotPermitted")
    assert (
        find_condition(render_tenantgateway_status(all_well(EXISTING), now=NOW)["conditions"], "CertificatesReady")
        is None
    )


def test_namespaces_attached_elsewhere_are_reported_and_do_not_affect_ready() -> None:
    """GW-13. The other gateway is not named, as users of this one need not be allowed to get it (ATTACK-15)."""
    found = replace(all_well(HTTP01), attached_elsewhere={"cozy-x": "tenant-root", "cozy-a": "tenant-bar"})
    lost = find_condition(render_tenantgateway_status(found, now=NOW)["conditions"], "AttachedElsewhere")
    assert lost is not None
    assert lost["message"].endswith(": cozy-a, cozy-x")
    assert ready_of(found)["status"] == "True"


@pytest.mark.parametrize(
    ("elsewhere", "reason", "message"),
    [
        pytest.param(
            {"cozy-x": ""},
            "PlatformNamespace",
            "namespaces of the platform, which only the Gateway of publishing.ingressName may have: cozy-x",
            id="nobody has it",
        ),
        pytest.param(
            {"cozy-x": "", "cozy-a": "tenant-bar"},
            "OtherGateway",
            "namespaces that another gateway has: cozy-a; namespaces of the platform, which only the Gateway of "
            "publishing.ingressName may have: cozy-x",
            id="both",
        ),
    ],
)
def test_a_namespace_that_nobody_has_is_not_said_to_be_anothers(
    elsewhere: dict[str, str], reason: str, message: str
) -> None:
    found = replace(all_well(HTTP01), attached_elsewhere=elsewhere)
    lost = find_condition(render_tenantgateway_status(found, now=NOW)["conditions"], "AttachedElsewhere")
    assert lost is not None
    assert (lost["reason"], lost["message"]) == (reason, message)


def test_routes_served_without_tls_are_reported_and_do_not_affect_ready() -> None:
    """GW-12."""
    found = all_well(HTTP01)
    served = tuple(route(each, "plain", HARBOR).id for each in ("cozy-a", "tenant-foo", "tenant-heir", "tenant-other"))
    status = render_tenantgateway_status(replace(found, plan=replace(found.plan, plaintext=served)), now=NOW)
    plain = find_condition(status["conditions"], "PlaintextRoutes")
    assert plain is not None
    # routes of other tenants are neither named nor counted
    assert plain["message"].endswith(": cozy-a/plain, tenant-foo/plain, routes of other namespaces")
