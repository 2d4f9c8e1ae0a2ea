"""The tenants of the seed with Gateways, from the Tenant to the commands that its operator types."""

from __future__ import annotations

import re
from functools import partial

import pytest
import yaml

from tests.e2e.support.clusters import ROOT, ROOT_HOST, E2eCluster
from tests.e2e.support.gateways import DNS01, HOST_LABEL, LABEL, LABEL_PATH, OURS, Gateways
from tests.e2e.support.tenants import Tenants, manifest


class Flow:
    """A tenant `foo` with a Gateway, as the publishing tenant of a platform, and what hangs on it."""

    def __init__(self, cluster: E2eCluster, tenants: Tenants, gateways: Gateways) -> None:
        self.cluster = cluster
        self.tenants = tenants
        self.gateways = gateways
        self.name = tenants.name()
        self.foo = f"tenant-{self.name}"
        self.apex = f"{self.name}.{ROOT_HOST}"

    def apply(self, *documents: dict[str, object]) -> None:
        text = "---\n".join(yaml.safe_dump(each) for each in documents)
        self.cluster.kubectl("apply", "-f", "-", input=text)

    def open(self) -> None:
        """With a Gateway that is there."""
        self.apply(manifest(self.name, spec={"gateway": True}))
        self.gateways.until("foo's gateway", lambda: self.gateways.names("issuers", self.foo))

    def child(self, **spec: object) -> tuple[str, str]:
        """Name and namespace of a new tenant in foo."""
        name = self.tenants.name(self.foo)
        self.apply(manifest(name, self.foo, spec=dict(spec)))
        namespace = f"{self.foo}-{name}"
        self.tenants.wait_for_namespace(namespace)
        return name, namespace


@pytest.fixture
def flow(cluster: E2eCluster, tenants: Tenants, gateways: Gateways) -> Flow:
    return Flow(cluster, tenants, gateways)


def test_alice_inherits_and_acme_and_bob_have_gateways_of_their_own(flow: Flow) -> None:
    """R-058, R-097, R-106, R-107, R-118, R-119, R-120, R-121, R-141, R-149, R-155, R-177, R-183, R-198, R-210."""
    flow.open()
    gateways = flow.gateways
    alice, alices = flow.child()
    bob, bobs = flow.child(gateway=True)
    acme, acmes = flow.child(gateway=True, host=f"{flow.name}.customer.example")
    customer = f"{flow.name}.customer.example"
    for namespace, apex in ((bobs, f"{bob}.{flow.apex}"), (acmes, customer)):
        gateways.until("a gateway of its own", partial(flow.gateways.serves, namespace, f"api.{apex}"))
    assert (
        gateways.client.get(f"/apis/gateway.cozystack.io/v1alpha1/namespaces/{alices}/tenantgateways").json()["items"]
        == []
    )
    harbor = f"harbor.{alice}.{flow.apex}"
    gateways.route(alices, "harbor", harbor, to=flow.foo)
    gateways.route(bobs, "harbor", f"harbor.{bob}.{flow.apex}", to=bobs, sectionName="https")
    gateways.route(acmes, "harbor", f"harbor.{customer}", to=acmes, sectionName="https")
    passthrough = [f"{service}.{flow.apex}" for service in ("api", "cdi-uploadproxy", "vm-exportproxy")]
    gateways.until("alice's route", lambda: gateways.listeners(flow.foo) == sorted([*passthrough, harbor]))
    gateways.until("bob's", partial(flow.gateways.serves, bobs, f"harbor.{bob}.{flow.apex}"))
    gateways.until("acme's", partial(flow.gateways.serves, acmes, f"harbor.{customer}"))
    for namespace in (flow.foo, bobs, acmes):
        gateways.until("one certificate", partial(_has_certificates, gateways, namespace, 1))
        assert gateways.names("issuers", namespace) == ["cozystack-gateway"]
        assert "cozystack-http-redirect" in gateways.names("httproutes", namespace)
    assert gateways.names("certificates", alices) == []
    assert flow.cluster.kubectl("get", "namespace", alices, "-o", LABEL_PATH).stdout.strip() == flow.foo
    selector = gateways.get("gateways", flow.foo)["spec"]["listeners"][1]["allowedRoutes"]["namespaces"]["selector"]
    assert selector == {"matchLabels": {LABEL: flow.foo}}
    assert acme in acmes
    owned = {namespace: gateways.mark(namespace) for namespace in (flow.foo, alices, bobs, acmes)}
    expected = {flow.foo: flow.foo, alices: flow.foo, bobs: bobs, acmes: acmes}
    assert owned == {namespace: (owner, None) for namespace, owner in expected.items()}


def _has_certificates(gateways: Gateways, namespace: str, count: int) -> bool:
    return len(gateways.names("certificates", namespace)) == count


def test_a_migration_step_by_step_and_back(flow: Flow) -> None:
    """R-101, R-227, R-228, R-229: with the commands of the seed."""
    flow.open()
    gateways, kubectl, owner = flow.gateways, flow.cluster.kubectl, flow.foo
    _, kids = flow.child()
    for app in ("harbor", "bucket"):
        gateways.route(kids, app, f"{app}.{flow.apex}", to=owner)
    gateways.until(
        "both are served", partial(flow.gateways.serves, owner, f"harbor.{flow.apex}", f"bucket.{flow.apex}")
    )
    wait = ("-n", owner, "wait")
    late = kubectl(*wait, "gateway/cozystack", "--for=condition=Programmed", "--timeout=1s", status=None)
    assert late.returncode == 1
    gateways.be_cilium(owner)
    programmed = kubectl(*wait, "gateway/cozystack", "--for=condition=Programmed", "--timeout=5m").stdout
    assert programmed == "gateway.gateway.networking.k8s.io/cozystack condition met\n"
    gateways.until("both certificates", partial(_has_certificates, gateways, owner, 2))
    gateways.be_cert_manager(owner)
    selector = ("--selector", "cozystack.io/per-listener-cert=true")
    issued = kubectl(*wait, "certificate", *selector, "--for=condition=Ready", "--timeout=10m").stdout
    assert len(re.findall("condition met", issued)) == 2
    gateways.until("the gateway is ready", lambda: gateways.reason(owner) == "Reconciled")

    gateways.delete("httproutes", kids, "bucket")
    gateways.until("one is left", partial(_has_certificates, gateways, owner, 1))
    flow.tenants.patch(flow.name, {"spec": {"gateway": False}})
    for plural in ("tenantgateways", "gateways", "issuers"):
        gateways.until(f"no {plural}", partial(_is_empty, gateways, plural, owner))
    assert kubectl("get", "namespace", kids, "-o", LABEL_PATH).stdout.strip() == ""
    flow.tenants.patch(flow.name, {"spec": {"gateway": True}})
    gateways.until("and there again", partial(flow.gateways.serves, owner, f"harbor.{flow.apex}"))


def _is_empty(gateways: Gateways, plural: str, namespace: str) -> bool:
    return gateways.names(plural, namespace) == []


def test_waiting_for_the_wildcard_certificate(gateways: Gateways, cluster: E2eCluster) -> None:
    """R-228, R-229."""
    owner = gateways.namespace()
    gateways.ask(owner, "foo.example.com", **DNS01)
    gateways.until("it is there", partial(_has_certificates, gateways, owner, 1))
    gateways.be_cert_manager(owner, "cozystack-gateway-tls")
    wait = ("-n", owner, "wait", "certificate/cozystack-gateway-tls", "--for=condition=Ready", "--timeout=10m")
    assert "condition met" in cluster.kubectl(*wait).stdout
    selected = cluster.kubectl(
        "-n", owner, "get", "certificate", "-l", "cozystack.io/per-listener-cert=true", "-o", "name"
    )
    assert selected.stdout == ""


def test_troubleshooting_finds_the_fault(flow: Flow) -> None:
    """R-217, R-218, R-224, R-225, R-226, R-317, R-319, R-321: what the seed's commands print."""
    gateways, kubectl = flow.gateways, flow.cluster.kubectl
    flow.open()
    owner = flow.foo
    for name in ("tenantgateway", "tgw"):
        rows = kubectl("get", name, "--all-namespaces", "--no-headers").stdout
        assert re.search(rf"^{owner} +cozystack +{flow.apex} +http01 +False ", rows, re.MULTILINE)
    described = kubectl("-n", owner, "describe", "tenantgateway", "cozystack").stdout
    assert re.search(r"Reason: +GatewayNotAccepted", described)
    assert "Waiting for controller" in described

    _, kids = flow.child()
    name = f"harbor.{flow.apex}"
    gateways.route(owner, "winner", name, to=owner, port=443)
    gateways.route(kids, "loser", name, to=owner)
    gateways.until("the loser is told", lambda: gateways.lost(kids, "loser"))
    described = kubectl("-n", kids, "describe", "httproute", "loser").stdout
    assert re.search(rf"Controller Name: +{OURS}", described)
    assert re.search(r"Reason: +HostnameConflict", described)
    assert f'"{name}" belongs to HTTPRoute {owner}/winner' in described

    for plural, command in (
        ("gateways", "gateway {}/cozystack"),
        ("issuers", "issuer {}/cozystack-gateway"),
        ("certificates", "certificate {}/cozystack-harbor-"),
    ):
        [made] = gateways.names(plural, owner)
        gateways.edit(plural, owner, made, {"metadata": {"ownerReferences": None}})
        gateways.until("it is refused", lambda: gateways.reason(owner) == "ReconcileError")
        described = kubectl("-n", owner, "describe", "tenantgateway", "cozystack").stdout
        assert re.search(r"Reason: +ReconcileError", described)
        assert re.search(rf"Message: .*{re.escape(command.format(owner))}.* exists but is not owned", described)
        gateways.delete(plural, owner, made)
        gateways.until("it is ours again", lambda: gateways.reason(owner) == "GatewayNotAccepted")
    for kind, name in (("gateway", "cozystack"), ("certificate", made)):
        assert re.search(rf"Name: +{name}", kubectl("-n", owner, "describe", kind, name).stdout)
    assert kubectl("get", "namespace", kids, "-o", LABEL_PATH).stdout.strip() == owner


def test_events_tell_what_happened(gateways: Gateways, cluster: E2eCluster) -> None:
    """As `kubectl describe` prints them."""
    owner, early = gateways.namespace("m"), gateways.namespace("a")
    gateways.create("gateways", owner, "cozystack", {"gatewayClassName": "x", "listeners": [_HTTP]})
    gateways.ask(owner, "foo.example.com")
    for namespace in (early, owner):
        gateways.route(namespace, "harbor", "harbor.foo.example.com", to=owner, port=443)

    def told(kind: str, name: str, reason: str) -> bool:
        return bool(re.search(rf"Warning +{reason} ", cluster.kubectl("-n", owner, "describe", kind, name).stdout))

    gateways.until("of the gateway", lambda: told("tenantgateway", "cozystack", "ReconcileError"))
    gateways.until("of the route", lambda: told("httproute", "harbor", "HostnameConflict"))


_HTTP = {"name": "x", "port": 80, "protocol": "HTTP"}


@pytest.mark.controller_manager
def test_a_tenant_that_goes_takes_its_gateway_along(flow: Flow) -> None:
    """Also what the gateway left elsewhere: labels, and words in the status of routes."""
    flow.open()
    gateways = flow.gateways
    app = gateways.namespace("z-app")
    gateways.label(app, {LABEL: flow.foo, HOST_LABEL: None})
    gateways.route(flow.foo, "winner", f"harbor.{flow.apex}", to=flow.foo, port=443)
    gateways.route(app, "loser", f"harbor.{flow.apex}", to=flow.foo)
    gateways.until("the loser is told", lambda: gateways.lost(app, "loser"))
    flow.cluster.kubectl("delete", "tenant", flow.name, "-n", ROOT)
    flow.tenants.wait_until_gone(f"/api/v1/namespaces/{flow.foo}")
    gateways.until("nothing is said any more", lambda: gateways.verdicts(app, "loser") == [])
