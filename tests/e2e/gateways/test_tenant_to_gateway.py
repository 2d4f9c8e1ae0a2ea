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
        self.name = tenants.new_name()
        self.foo = f"tenant-{self.name}"
        self.apex = f"{self.name}.{ROOT_HOST}"

    def apply(self, *documents: dict[str, object]) -> None:
        text = "---\n".join(yaml.safe_dump(each) for each in documents)
        self.cluster.kubectl("apply", "-f", "-", input=text)

    def open(self) -> None:
        """With a Gateway that is there."""
        self.apply(manifest(self.name, spec={"gateway": True}))
        self.gateways.wait_until("foo's gateway", lambda: self.gateways.names("issuers", self.foo))

    def child(self, **spec: object) -> tuple[str, str]:
        """Name and namespace of a new tenant in foo."""
        name = self.tenants.new_name(self.foo)
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
        gateways.wait_until("a gateway of its own", partial(flow.gateways.has_listeners, namespace, f"api.{apex}"))
    assert (
        gateways.client.get(f"/apis/gateway.cozystack.io/v1alpha1/namespaces/{alices}/tenantgateways").json()["items"]
        == []
    )
    harbor = f"harbor.{alice}.{flow.apex}"
    gateways.create_route(alices, "harbor", harbor, to=flow.foo)
    gateways.create_route(bobs, "harbor", f"harbor.{bob}.{flow.apex}", to=bobs, sectionName="https")
    gateways.create_route(acmes, "harbor", f"harbor.{customer}", to=acmes, sectionName="https")
    passthrough = [f"{service}.{flow.apex}" for service in ("api", "cdi-uploadproxy", "vm-exportproxy")]
    gateways.wait_until(
        "alice's route", lambda: gateways.listener_hostnames(flow.foo) == sorted([*passthrough, harbor])
    )
    gateways.wait_until("bob's", partial(flow.gateways.has_listeners, bobs, f"harbor.{bob}.{flow.apex}"))
    gateways.wait_until("acme's", partial(flow.gateways.has_listeners, acmes, f"harbor.{customer}"))
    for namespace in (flow.foo, bobs, acmes):
        gateways.wait_until("one certificate", partial(_has_certificates, gateways, namespace, 1))
        assert gateways.names("issuers", namespace) == ["cozystack-gateway"]
        assert "cozystack-http-redirect" in gateways.names("httproutes", namespace)
    assert gateways.names("certificates", alices) == []
    assert flow.cluster.kubectl("get", "namespace", alices, "-o", LABEL_PATH).stdout.strip() == flow.foo
    selector = gateways.get("gateways", flow.foo)["spec"]["listeners"][1]["allowedRoutes"]["namespaces"]["selector"]
    assert selector == {"matchLabels": {LABEL: flow.foo}}
    assert acme in acmes
    owned = {namespace: gateways.attachment(namespace) for namespace in (flow.foo, alices, bobs, acmes)}
    expected = {flow.foo: flow.foo, alices: flow.foo, bobs: bobs, acmes: acmes}
    assert owned == {namespace: (owner, None) for namespace, owner in expected.items()}


def _has_certificates(gateways: Gateways, namespace: str, count: int) -> bool:
    return len(gateways.names("certificates", namespace)) == count


def test_a_tenant_migrates_to_a_gateway_and_back(flow: Flow) -> None:
    """R-101, R-227, R-228, R-229: with the commands of the seed."""
    flow.open()
    gateways, kubectl, owner = flow.gateways, flow.cluster.kubectl, flow.foo
    _, kids = flow.child()
    for app in ("harbor", "bucket"):
        gateways.create_route(kids, app, f"{app}.{flow.apex}", to=owner)
    gateways.wait_until(
        "both are served", partial(flow.gateways.has_listeners, owner, f"harbor.{flow.apex}", f"bucket.{flow.apex}")
    )
    wait = ("-n", owner, "wait")
    late = kubectl(*wait, "gateway/cozystack", "--for=condition=Programmed", "--timeout=1s", status=None)
    assert late.returncode == 1
    gateways.mark_gateway_programmed(owner)
    programmed = kubectl(*wait, "gateway/cozystack", "--for=condition=Programmed", "--timeout=5m").stdout
    assert programmed == "gateway.gateway.networking.k8s.io/cozystack condition met\n"
    gateways.wait_until("both certificates", partial(_has_certificates, gateways, owner, 2))
    gateways.mark_certificates_ready(owner)
    selector = ("--selector", "cozystack.io/per-listener-cert=true")
    issued = kubectl(*wait, "certificate", *selector, "--for=condition=Ready", "--timeout=10m").stdout
    assert len(re.findall("condition met", issued)) == 2
    gateways.wait_until("the gateway is ready", lambda: gateways.ready_reason(owner) == "Reconciled")

    gateways.delete("httproutes", kids, "bucket")
    gateways.wait_until("one is left", partial(_has_certificates, gateways, owner, 1))
    flow.tenants.patch(flow.name, {"spec": {"gateway": False}})
    for plural in ("tenantgateways", "gateways", "issuers"):
        gateways.wait_until(f"no {plural}", partial(_is_empty, gateways, plural, owner))
    assert kubectl("get", "namespace", kids, "-o", LABEL_PATH).stdout.strip() == ""
    flow.tenants.patch(flow.name, {"spec": {"gateway": True}})
    gateways.wait_until("and there again", partial(flow.gateways.has_listeners, owner, f"harbor.{flow.apex}"))


def _is_empty(gateways: Gateways, plural: str, namespace: str) -> bool:
    return gateways.names(plural, namespace) == []


def test_waiting_for_the_wildcard_certificate(gateways: Gateways, cluster: E2eCluster) -> None:
    """R-228, R-229."""
    owner = gateways.create_namespace()
    gateways.create_tenantgateway(owner, "foo.example.com", **DNS01)
    gateways.wait_until("it is there", partial(_has_certificates, gateways, owner, 1))
    gateways.mark_certificates_ready(owner, "cozystack-gateway-tls")
    wait = ("-n", owner, "wait", "certificate/cozystack-gateway-tls", "--for=condition=Ready", "--timeout=10m")
    assert "condition met" in cluster.kubectl(*wait).stdout
    selected = cluster.kubectl(
        "-n", owner, "get", "certificate", "-l", "cozystack.io/per-listener-cert=true", "-o", "name"
    )
    assert selected.stdout == ""


def test_troubleshooting_commands_show_the_problem(flow: Flow) -> None:
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
    gateways.create_route(owner, "winner", name, to=owner, port=443)
    gateways.create_route(kids, "loser", name, to=owner)
    gateways.wait_until("the loser is told", lambda: gateways.conflict_message(kids, "loser"))
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
        gateways.patch(plural, owner, made, {"metadata": {"ownerReferences": None}})
        gateways.wait_until("it is refused", lambda: gateways.ready_reason(owner) == "ReconcileError")
        described = kubectl("-n", owner, "describe", "tenantgateway", "cozystack").stdout
        assert re.search(r"Reason: +ReconcileError", described)
        assert re.search(rf"Message: .*{re.escape(command.format(owner))}.* exists but is not owned", described)
        gateways.delete(plural, owner, made)
        gateways.wait_until("it is ours again", lambda: gateways.ready_reason(owner) == "GatewayNotAccepted")
    for kind, name in (("gateway", "cozystack"), ("certificate", made)):
        assert re.search(rf"Name: +{name}", kubectl("-n", owner, "describe", kind, name).stdout)
    assert kubectl("get", "namespace", kids, "-o", LABEL_PATH).stdout.strip() == owner


def test_conflicts_are_reported_as_events(gateways: Gateways, cluster: E2eCluster) -> None:
    """As `kubectl describe` prints them."""
    owner, early = gateways.create_namespace("m"), gateways.create_namespace("a")
    gateways.create("gateways", owner, "cozystack", {"gatewayClassName": "x", "listeners": [_HTTP]})
    gateways.create_tenantgateway(owner, "foo.example.com")
    for namespace in (early, owner):
        gateways.create_route(namespace, "harbor", "harbor.foo.example.com", to=owner, port=443)

    def told(kind: str, name: str, reason: str) -> bool:
        return bool(re.search(rf"Warning +{reason} ", cluster.kubectl("-n", owner, "describe", kind, name).stdout))

    gateways.wait_until("of the gateway", lambda: told("tenantgateway", "cozystack", "ReconcileError"))
    gateways.wait_until("of the route", lambda: told("httproute", "harbor", "HostnameConflict"))


_HTTP = {"name": "x", "port": 80, "protocol": "HTTP"}


@pytest.mark.controller_manager
def test_deleting_a_tenant_deletes_its_gateway(flow: Flow) -> None:
    """Also what the gateway left elsewhere: labels, and words in the status of routes."""
    flow.open()
    gateways = flow.gateways
    app = gateways.create_namespace("z-app")
    gateways.patch_labels(app, {LABEL: flow.foo, HOST_LABEL: None})
    gateways.create_route(flow.foo, "winner", f"harbor.{flow.apex}", to=flow.foo, port=443)
    gateways.create_route(app, "loser", f"harbor.{flow.apex}", to=flow.foo)
    gateways.wait_until("the loser is told", lambda: gateways.conflict_message(app, "loser"))
    flow.cluster.kubectl("delete", "tenant", flow.name, "-n", ROOT)
    flow.tenants.wait_until_gone(f"/api/v1/namespaces/{flow.foo}")
    gateways.wait_until("nothing is said any more", lambda: gateways.parent_statuses(app, "loser") == [])
