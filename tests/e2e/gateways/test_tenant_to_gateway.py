"""The tenants with Gateways from the feature description, from the Tenant to the commands of an operator."""

from __future__ import annotations

import re
from functools import partial

import pytest
import yaml

from tests.e2e.support.clusters.cluster import ROOT, ROOT_HOST, E2eCluster
from tests.e2e.support.gateways import DNS01, HOST_LABEL, LABEL, LABEL_PATH, OURS, Gateways
from tests.e2e.support.tenants import Tenants, manifest


class PublishingTenant:
    """A tenant `foo` with a Gateway, like the publishing tenant of a platform, and its children."""

    def __init__(self, cluster: E2eCluster, tenants: Tenants, gateways: Gateways) -> None:
        self.cluster = cluster
        self.tenants = tenants
        self.gateways = gateways
        self.name = tenants.new_name()
        self.namespace = f"tenant-{self.name}"
        self.apex = f"{self.name}.{ROOT_HOST}"

    def apply(self, *documents: dict[str, object]) -> None:
        text = "---\n".join(yaml.safe_dump(each) for each in documents)
        self.cluster.kubectl("apply", "-f", "-", input=text)

    def create(self) -> None:
        """Creates the tenant and waits for its Gateway."""
        self.apply(manifest(self.name, spec={"gateway": True}))
        self.gateways.wait_until("the issuer of foo exists", lambda: self.gateways.names("issuers", self.namespace))

    def create_child(self, **spec: object) -> tuple[str, str]:
        """Creates a child tenant and returns its name and its namespace."""
        name = self.tenants.new_name(self.namespace)
        self.apply(manifest(name, self.namespace, spec=dict(spec)))
        namespace = f"{self.namespace}-{name}"
        self.tenants.wait_for_namespace(namespace)
        return name, namespace


@pytest.fixture
def foo(cluster: E2eCluster, tenants: Tenants, gateways: Gateways) -> PublishingTenant:
    return PublishingTenant(cluster, tenants, gateways)


def test_alice_inherits_and_acme_and_bob_have_gateways_of_their_own(foo: PublishingTenant) -> None:
    """Each owner has its own Gateway, Issuer and Certificates; an inheriting tenant has none.

    R-058, R-097, R-106, R-107, R-118, R-119, R-120, R-121, R-141, R-149, R-155, R-177, R-183, R-198, R-210.
    """
    foo.create()
    gateways = foo.gateways
    alice, alice_namespace = foo.create_child()
    bob, bob_namespace = foo.create_child(gateway=True)
    acme, acme_namespace = foo.create_child(gateway=True, host=f"{foo.name}.customer.example")
    customer = f"{foo.name}.customer.example"
    for namespace, apex in ((bob_namespace, f"{bob}.{foo.apex}"), (acme_namespace, customer)):
        gateways.wait_until(
            "the Gateway of the tenant serves the API", partial(gateways.has_listeners, namespace, f"api.{apex}")
        )
    assert gateways.names("tenantgateways", alice_namespace) == []
    harbor = f"harbor.{alice}.{foo.apex}"
    gateways.create_route(alice_namespace, "harbor", harbor, to=foo.namespace)
    gateways.create_route(bob_namespace, "harbor", f"harbor.{bob}.{foo.apex}", to=bob_namespace, port=443)
    gateways.create_route(acme_namespace, "harbor", f"harbor.{customer}", to=acme_namespace, port=443)
    passthrough = [f"{service}.{foo.apex}" for service in ("api", "cdi-uploadproxy", "vm-exportproxy")]
    gateways.wait_until(
        "the route of alice is served",
        lambda: gateways.listener_hostnames(foo.namespace) == sorted([*passthrough, harbor]),
    )
    gateways.wait_until(
        "the route of bob is served", partial(gateways.has_listeners, bob_namespace, f"harbor.{bob}.{foo.apex}")
    )
    gateways.wait_until(
        "the route of acme is served", partial(gateways.has_listeners, acme_namespace, f"harbor.{customer}")
    )
    for namespace in (foo.namespace, bob_namespace, acme_namespace):
        _assert_owns_gateway_objects(gateways, namespace)
    assert gateways.names("certificates", alice_namespace) == []
    assert foo.cluster.kubectl("get", "namespace", alice_namespace, "-o", LABEL_PATH).stdout.strip() == foo.namespace
    listener = gateways.get("gateways", foo.namespace)["spec"]["listeners"][1]
    assert listener["allowedRoutes"]["namespaces"]["selector"] == {"matchLabels": {LABEL: foo.namespace}}
    assert acme in acme_namespace
    owners = {
        foo.namespace: foo.namespace,
        alice_namespace: foo.namespace,
        bob_namespace: bob_namespace,
        acme_namespace: acme_namespace,
    }
    assert all(gateways.attachment(namespace) == (owner, None) for namespace, owner in owners.items())


def _assert_owns_gateway_objects(gateways: Gateways, namespace: str) -> None:
    gateways.wait_until("there is one certificate", partial(_has_certificates, gateways, namespace, 1))
    assert gateways.names("issuers", namespace) == ["cozystack-gateway"]
    gateways.wait_until(
        "the redirect exists", lambda: "cozystack-http-redirect" in gateways.names("httproutes", namespace)
    )


def _has_certificates(gateways: Gateways, namespace: str, count: int) -> bool:
    return len(gateways.names("certificates", namespace)) == count


def test_a_tenant_migrates_to_a_gateway_and_back(foo: PublishingTenant) -> None:
    """With the commands of the feature description (R-101, R-227, R-228, R-229)."""
    foo.create()
    gateways, kubectl, owner = foo.gateways, foo.cluster.kubectl, foo.namespace
    name, child = foo.create_child()
    hostnames = [f"{app}.{name}.{foo.apex}" for app in ("harbor", "bucket")]
    for hostname in hostnames:
        gateways.create_route(child, hostname.partition(".")[0], hostname, to=owner)
    gateways.wait_until("both routes are served", partial(gateways.has_listeners, owner, *hostnames))
    wait = ("-n", owner, "wait")
    late = kubectl(*wait, "gateway/cozystack", "--for=condition=Programmed", "--timeout=1s", status=None)
    assert late.returncode == 1
    gateways.mark_gateway_programmed(owner)
    programmed = kubectl(*wait, "gateway/cozystack", "--for=condition=Programmed", "--timeout=5m").stdout
    assert programmed == "gateway.gateway.networking.k8s.io/cozystack condition met\n"
    gateways.wait_until("there are two certificates", partial(_has_certificates, gateways, owner, 2))
    gateways.mark_certificates_ready(owner)
    selector = ("--selector", "cozystack.io/per-listener-cert=true")
    issued = kubectl(*wait, "certificate", *selector, "--for=condition=Ready", "--timeout=10m").stdout
    assert len(re.findall("condition met", issued)) == 2
    gateways.wait_until("the Gateway is ready", lambda: gateways.ready_reason(owner) == "Reconciled")

    gateways.delete("httproutes", child, "bucket")
    gateways.wait_until("there is one certificate", partial(_has_certificates, gateways, owner, 1))
    foo.tenants.patch(foo.name, {"spec": {"gateway": False}})
    for plural in ("tenantgateways", "gateways", "issuers"):
        gateways.wait_until(f"the {plural} are deleted", partial(_is_empty, gateways, plural, owner))
    gateways.wait_until("the child has no Gateway", lambda: gateways.attachment(child) == (None, None))
    assert kubectl("get", "namespace", child, "-o", LABEL_PATH).stdout.strip() == ""
    foo.tenants.patch(foo.name, {"spec": {"gateway": True}})
    gateways.wait_until("the route is served again", partial(gateways.has_listeners, owner, hostnames[0]))


def _is_empty(gateways: Gateways, plural: str, namespace: str) -> bool:
    return gateways.names(plural, namespace) == []


def test_waiting_for_the_wildcard_certificate(gateways: Gateways, cluster: E2eCluster) -> None:
    """The wildcard certificate has a fixed name and no per-listener label (R-228, R-229)."""
    owner = gateways.create_owner()
    gateways.create_tenantgateway(owner, "foo.example.com", **DNS01)
    gateways.wait_until("the certificate exists", partial(_has_certificates, gateways, owner, 1))
    gateways.mark_certificates_ready(owner, "cozystack-gateway-tls")
    wait = ("-n", owner, "wait", "certificate/cozystack-gateway-tls", "--for=condition=Ready", "--timeout=10m")
    assert "condition met" in cluster.kubectl(*wait).stdout
    selected = cluster.kubectl(
        "-n", owner, "get", "certificate", "-l", "cozystack.io/per-listener-cert=true", "-o", "name"
    )
    assert selected.stdout == ""


def test_troubleshooting_commands_show_the_problem(foo: PublishingTenant) -> None:
    """The commands of the feature description; R-217, R-218, R-224, R-225, R-226, R-317, R-319, R-321."""
    gateways, kubectl = foo.gateways, foo.cluster.kubectl
    foo.create()
    owner = foo.namespace
    gateways.wait_until("the status is written", lambda: gateways.ready_reason(owner) == "GatewayNotAccepted")
    for name in ("tenantgateway", "tgw"):
        rows = kubectl("get", name, "--all-namespaces", "--no-headers").stdout
        assert re.search(rf"^{owner} +cozystack +{foo.apex} +http01 +False ", rows, re.MULTILINE)
    described = kubectl("-n", owner, "describe", "tenantgateway", "cozystack").stdout
    assert re.search(r"Reason: +GatewayNotAccepted", described)
    assert "Waiting for controller" in described

    tenant, child = foo.create_child()
    name = f"harbor.{tenant}.{foo.apex}"
    gateways.create_route(owner, "winner", name, to=owner, port=443)
    gateways.create_route(child, "loser", name, to=owner)
    gateways.wait_until(
        "the losing route has the conflict in its status", lambda: gateways.has_conflict(child, "loser")
    )
    described = kubectl("-n", child, "describe", "httproute", "loser").stdout
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
        gateways.wait_until("the foreign object is reported", lambda: gateways.ready_reason(owner) == "ReconcileError")
        described = kubectl("-n", owner, "describe", "tenantgateway", "cozystack").stdout
        assert re.search(r"Reason: +ReconcileError", described)
        assert re.search(rf"Message: .*{re.escape(command.format(owner))}.* exists but is not owned", described)
        gateways.delete(plural, owner, made)
        gateways.wait_until("the error is resolved", lambda: gateways.ready_reason(owner) == "GatewayNotAccepted")
    for kind, name in (("gateway", "cozystack"), ("certificate", made)):
        assert re.search(rf"Name: +{name}", kubectl("-n", owner, "describe", kind, name).stdout)
    assert kubectl("get", "namespace", child, "-o", LABEL_PATH).stdout.strip() == owner


def test_conflicts_are_reported_as_events(gateways: Gateways, cluster: E2eCluster) -> None:
    """`kubectl describe` shows them."""
    owner = gateways.create_owner()
    early = gateways.create_namespace("a", labels={LABEL: owner})
    gateways.create("gateways", owner, "cozystack", {"gatewayClassName": "x", "listeners": [_HTTP]})
    gateways.create_tenantgateway(owner, "foo.example.com")
    for namespace in (early, owner):
        gateways.create_route(namespace, "harbor", "harbor.foo.example.com", to=owner, port=443)

    def has_event(kind: str, name: str, reason: str) -> bool:
        return bool(re.search(rf"Warning +{reason} ", cluster.kubectl("-n", owner, "describe", kind, name).stdout))

    gateways.wait_until(
        "the TenantGateway has the event", lambda: has_event("tenantgateway", "cozystack", "ReconcileError")
    )
    gateways.wait_until("the route has the event", lambda: has_event("httproute", "harbor", "HostnameConflict"))


_HTTP = {"name": "x", "port": 80, "protocol": "HTTP"}


@pytest.mark.controller_manager
def test_deleting_a_tenant_deletes_its_gateway(foo: PublishingTenant) -> None:
    """Labels of other namespaces and entries in the status of routes are removed, too."""
    foo.create()
    gateways = foo.gateways
    app = gateways.create_namespace("z-app")
    gateways.patch_labels(app, {LABEL: foo.namespace, HOST_LABEL: None})
    gateways.create_route(foo.namespace, "winner", f"harbor.{foo.apex}", to=foo.namespace, port=443)
    gateways.create_route(app, "loser", f"harbor.{foo.apex}", to=foo.namespace)
    gateways.wait_until("the losing route has the conflict in its status", lambda: gateways.has_conflict(app, "loser"))
    foo.cluster.kubectl("delete", "tenant", foo.name, "-n", ROOT)
    foo.tenants.wait_until_gone(f"/api/v1/namespaces/{foo.namespace}")
    gateways.wait_until(
        "the route is told that its Gateway is deleted", lambda: gateways.rejection_reason(app, "loser") == "Orphaned"
    )
