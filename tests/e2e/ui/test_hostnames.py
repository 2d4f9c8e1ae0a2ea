"""The hostnames of a tenant on the page: "Served" is said of what is, and hidden is not said to be missing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.support.browser.chromium import Chromium
from tests.e2e.support.clusters.embedded import EmbeddedCluster
from tests.e2e.support.tenants import Tenants
from tests.e2e.ui.test_page import row
from tests.e2e.ui.test_rights import page_of

_HOST, _NOW = "shop.example.org", "2026-01-01T00:00:00Z"
_ROWS = """
    const [routes, gateways, certificates, now] = arguments, done = arguments[arguments.length - 1];
    Promise.all([import("/static/hosts.js"), import("/static/sections.js")]).then(([{hostRows}, {hostsOf}]) => {
        const rows = hostRows(routes, gateways ?? undefined, certificates ?? undefined, true, Date.parse(now));
        const actions = {why() {}, pageOf: () => 0, turn() {}};
        const shown = [...hostsOf(rows, actions).querySelectorAll("li")];
        done(shown.map(each => [each.querySelector(".chip").textContent, each.querySelector(".note").textContent]));
    });
"""


def _route(accepted: str = "True") -> Mapping[str, Any]:
    condition = {"type": "Accepted", "status": accepted, "reason": "NotAllowedByListeners"}
    return {
        "kind": "HTTPRoute",
        "metadata": {"name": "shop"},
        "spec": {"hostnames": [_HOST]},
        "status": {"parents": [{"conditions": [condition]}]},
    }


def _gateway(**listener: object) -> Mapping[str, Any]:
    return {"status": {"listeners": [{"name": "https", "hostname": _HOST, "ready": True, **listener}]}}


def _certificate(ready: str, not_after: str) -> Mapping[str, Any]:
    conditions = [{"type": "Ready", "status": ready, "reason": "Issuing"}]
    return {"metadata": {"name": "web"}, "status": {"conditions": conditions, "notAfter": not_after}}


_HTTPS = _gateway(certificateName="web")
_VALID = _certificate("True", "2026-01-11T00:00:00Z")
_UNUSED = "listener tls-api · no route that you see in the tenant's namespace has it · no certificate"


@pytest.mark.parametrize(
    ("routes", "gateways", "certificates", "expected"),
    [
        pytest.param(
            [_route()],
            [_HTTPS],
            [_VALID],
            ["Served", "HTTPRoute/shop · certificate web: 10 days left, renew it"],
            id="all is ready",
        ),
        pytest.param(
            [_route()],
            [_HTTPS],
            [_certificate("False", "2026-01-11T00:00:00Z")],
            ["Certificate not ready", "HTTPRoute/shop · Issuing · certificate web: 10 days left, renew it"],
            id="the certificate is not ready",
        ),
        pytest.param(
            [_route()],
            [_HTTPS],
            [_certificate("True", "2025-12-30T00:00:00Z")],
            ["Certificate has ended", "HTTPRoute/shop · certificate web has ended"],
            id="the certificate has ended",
        ),
        pytest.param(
            [_route()],
            [_gateway(certificateName="web", ready=False, reason="CertificateNotReady")],
            None,
            ["Certificate not ready", "HTTPRoute/shop · certificate web not visible to you"],
            id="the Gateway tells that a hidden certificate is not ready",
        ),
        pytest.param(
            [_route()],
            [_gateway(ready=False, reason="Pending")],
            [],
            ["Listener not ready", "HTTPRoute/shop · Pending · no certificate"],
            id="the listener is not ready",
        ),
        pytest.param(
            [_route()],
            None,
            None,
            ["Served", "HTTPRoute/shop · certificate not visible to you"],
            id="the Gateway is hidden",
        ),
        pytest.param(
            [_route("False")],
            [_HTTPS],
            [_VALID],
            ["Not served", "HTTPRoute/shop · NotAllowedByListeners · certificate web: 10 days left, renew it"],
            id="the route is not accepted",
        ),
        pytest.param([], [_gateway(name="tls-api")], [], ["Listener ready", _UNUSED], id="no route uses the listener"),
    ],
)
def test_a_hostname_is_served_where_its_route_listener_and_certificate_are_ready(
    page: Chromium, routes: Sequence[Any], gateways: object, certificates: object, expected: Sequence[str]
) -> None:
    assert page.driver.execute_async_script(_ROWS, routes, gateways, certificates, _NOW) == [list(expected)]


def test_a_certificate_that_the_user_may_not_see_is_told_so(
    chromium: Chromium, embedded: EmbeddedCluster, tenants: Tenants, unique: str, tmp_path: Path
) -> None:
    namespace = tenants.create_with_namespace(spec={"gateway": True})
    name = namespace.removeprefix("tenant-")
    path = f"/apis/gateway.cozystack.io/v1alpha1/namespaces/{namespace}/tenantgateways"
    admin = embedded.client()
    route = {
        "apiVersion": "gateway.networking.k8s.io/v1",
        "kind": "HTTPRoute",
        "metadata": {"name": "shop"},
        "spec": {
            "parentRefs": [{"name": "cozystack"}],
            "hostnames": [f"shop.{name}.example.org"],
            "rules": [{"backendRefs": [{"name": "shop", "port": 80}]}],
        },
    }
    routes = f"/apis/gateway.networking.k8s.io/v1/namespaces/{namespace}/httproutes"
    admin.request("POST", routes, route).expect(201)
    embedded.wait_until("the listener has a certificate", lambda: "certificateName" in str(admin.get(path).json()))
    with page_of(chromium, embedded, unique, f"{namespace}-admin", tmp_path):
        chromium.click(row(name))
        chromium.wait_for_text("tenant-panel h3", "Events")
        chromium.wait_for_text("tenant-panel", "not visible to you")
        assert "no certificate" not in chromium.text("tenant-panel")
