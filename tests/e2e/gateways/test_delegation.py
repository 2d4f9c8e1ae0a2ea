"""Parts of a hostname are given to routes of other tenants, and taken back: examples/delegation, applied (seed 003).

The tenants of the examples get names of their own, so that the tests can run beside others.
"""

from __future__ import annotations

import re
import time
from functools import partial
from pathlib import Path

import pytest

from tests.e2e.support.clusters.cluster import ROOT_HOST, E2eCluster, tenants_path
from tests.e2e.support.explanations import explain
from tests.e2e.support.gateways import Gateways, Object
from tests.e2e.support.http.pace import Pace
from tests.e2e.support.tenants import Tenants, manifest

EXAMPLES = Path(__file__).parents[3] / "examples" / "delegation"
MAX_SECONDS = 1.0
ACCEPTED, ORPHANED, REFUSED = ("True", "Accepted"), ("False", "Orphaned"), ("False", "RefNotPermitted")


class Story:
    """A publishing tenant in the place of tenant-root, with the tenants of the examples below it."""

    def __init__(self, cluster: E2eCluster, tenants: Tenants, gateways: Gateways) -> None:
        self.cluster = cluster
        self.tenants = tenants
        self.gateways = gateways
        created = tenants.create(spec={"gateway": True})
        self.name: str = created["metadata"]["name"]
        self.root: str = created["status"]["namespace"]
        self.apex = f"{self.name}.{ROOT_HOST}"
        tenants.wait_for_namespace(self.root)
        self.names = {each: tenants.new_name(self.root) for each in ("finance", "gmail", "dave")}
        self.finance, self.gmail, self.dave = (f"{self.root}-{each}" for each in self.names.values())

    def apply(self, file: str) -> None:
        self.cluster.kubectl("apply", "-f", "-", input=self.adapt((EXAMPLES / file).read_text()))

    def adapt(self, text: str) -> str:
        for name, own in self.names.items():
            text = text.replace(f"tenant-{name}", f"{self.root}-{own}")
            text = text.replace(
                f"metadata: {{name: {name}, namespace: tenant-root}}",
                f"metadata: {{name: {own}, namespace: {self.root}}}",
            )
            text = text.replace(f".{name}.example.org", f".{own}.example.org")
        return text.replace("tenant-root", self.root).replace("example.org", self.apex)

    def apply_tenants(self) -> None:
        self.apply("tenants.yaml")
        for namespace in (self.finance, self.gmail, self.dave):
            self.tenants.wait_for_namespace(namespace)

    def flat_routes(self, namespace: str = "") -> list[str]:
        names = self.gateways.names("httproutes", namespace or self.root)
        return [each for each in names if re.search(r"-[0-9a-f]{8}$", each)]

    def told(self, namespace: str, name: str, type_: str = "Accepted") -> tuple[str, str]:
        """Status and reason of our condition on a route with one parent; empty if there is none."""
        for entry in self.gateways.parent_statuses(namespace, name):
            for each in entry["conditions"]:
                if each["type"] == type_:
                    return each["status"], each["reason"]
        return "", ""

    def told_of(self, namespace: str, name: str) -> dict[str, str]:
        """The reason of our condition Accepted on a route, by the namespace of its parent."""
        entries = self.gateways.parent_statuses(namespace, name)
        conditions = [
            (each["parentRef"]["namespace"], condition) for each in entries for condition in each["conditions"]
        ]
        return {parent: each["reason"] for parent, each in conditions if each["type"] == "Accepted"}

    def delete_tenant(self, name: str) -> None:
        """Deletes a tenant of the examples, with everything in its namespace."""
        own = self.names[name]
        self.tenants.client.request("DELETE", tenants_path(self.root, own)).expect(200)
        self.tenants.wait_until_gone(f"/api/v1/namespaces/{self.root}-{own}")
        self.tenants.wait_until_gone(tenants_path(self.root, own))

    def create_tenant(self, name: str) -> None:
        """Creates a tenant of the examples anew."""
        own = self.names[name]
        self.tenants.client.request("POST", tenants_path(self.root), manifest(own, self.root)).expect(201)
        self.tenants.wait_for_namespace(f"{self.root}-{own}")

    def wait_for(self, namespace: str, name: str, expected: tuple[str, str], type_: str = "Accepted") -> None:
        what = f"{namespace}/{name} has {type_}: {expected}"
        self.gateways.wait_until(what, lambda: self.told(namespace, name, type_) == expected)

    def wait_for_flat_routes(self, count: int) -> float:
        """Waits for a number of flat routes in the namespace of the root; returns the seconds that it took."""
        started = time.monotonic()
        self.gateways.wait_until(f"there are {count} flat routes", lambda: len(self.flat_routes()) == count)
        return time.monotonic() - started

    def rule(self, path: str) -> Object:
        return {
            "matches": [{"path": {"type": "PathPrefix", "value": path}}],
            "backendRefs": [{"name": "web", "port": 80}],
        }


@pytest.fixture
def story(cluster: E2eCluster, tenants: Tenants, gateways: Gateways) -> Story:
    return Story(cluster, tenants, gateways)


def test_the_owner_of_a_domain_gives_a_path_away_and_the_tenant_takes_its_consent_back(story: Story) -> None:
    """One listener and one certificate for a hostname, however many share it; connected since when; and within a second
    of the deletion of the grant nothing is served any more (R-346 to R-348, R-350, R-356, R-358 to R-362)."""
    story.apply_tenants()
    pace = Pace(story.cluster.direct_client())
    gateways, www = story.gateways, f"www.{story.apex}"
    story.apply("finance.yaml")
    story.wait_for_flat_routes(2)
    gateways.wait_until("the hostname is served", lambda: gateways.has_listeners(story.root, www))
    story.wait_for(story.finance, "finance", ACCEPTED)
    story.wait_for(story.root, "www", ACCEPTED)
    assert gateways.listener_hostnames(story.root).count(www) == 1
    assert sum("-www-" in each for each in gateways.names("certificates", story.root)) == 1
    (entry,) = gateways.parent_statuses(story.finance, "finance")
    accepted = '.status.parents[0].conditions[?(@.type=="Accepted")]'
    query = f"jsonpath={{range {accepted}}}{{.lastTransitionTime}} {{.message}}{{end}}"
    shown = story.cluster.kubectl("get", "httproute", "-n", story.finance, "finance", "-o", query).stdout
    # there is no data plane that could confirm it
    message = f"{www}/finance, delegated by HTTPRoute {story.root}/www; not yet confirmed by the Gateway's controller"
    assert re.fullmatch(rf"\d{{4}}-\d\d-\d\dT\d\d:\d\d:\d\dZ {re.escape(message)}", shown.strip())
    (flat,) = [
        each
        for each in map(partial(gateways.get, "httproutes", story.root), story.flat_routes())
        if "-own-" not in each["metadata"]["name"]
    ]
    assert flat["spec"]["hostnames"] == [www]
    assert [each["backendRefs"][0]["namespace"] for each in flat["spec"]["rules"]] == [story.finance] * 2
    durations = []
    grant = gateways.get("referencegrants", story.finance, "www")["spec"]
    for _ in range(3):
        gateways.delete("referencegrants", story.finance, "www")
        durations.append(story.wait_for_flat_routes(1))
        story.wait_for(story.finance, "finance", ORPHANED)
        story.wait_for(story.root, "www", REFUSED, "ResolvedRefs")
        assert gateways.parent_statuses(story.finance, "finance")[0]["parentRef"] == entry["parentRef"]
        gateways.create("referencegrants", story.finance, "www", grant)
        story.wait_for_flat_routes(2)
        story.wait_for(story.finance, "finance", ACCEPTED)
    assert sorted(durations)[1] < pace.limit(MAX_SECONDS), durations


def test_dave_cannot_publish_gmail_and_gmail_hears_nothing_of_him(story: Story) -> None:
    """The seed's security hole, closed: both sides must agree (R-360, R-361)."""
    story.apply_tenants()
    story.apply("gmail.yaml")
    story.wait_for(story.gmail, "gmail", ACCEPTED)
    before = story.gateways.get("httproutes", story.gmail, "gmail")
    story.apply("dave.yaml")
    story.wait_for(story.dave, "dave", REFUSED, "ResolvedRefs")
    assert story.flat_routes(story.dave) == []
    assert story.gateways.get("httproutes", story.gmail, "gmail") == before
    listed = story.cluster.kubectl("get", "events", "-n", story.gmail, "-o", "yaml").stdout
    assert story.dave not in listed
    assert len(story.flat_routes()) == 1


def test_what_lies_outside_or_in_a_circle_is_told_and_not_served(story: Story) -> None:
    """R-349, R-350: /css is not below /static, and a circle of delegations changes nothing that is served. A
    vertex is deleted, and with it the flat routes of what it delegated."""
    story.apply_tenants()
    gateways, finance, root = story.gateways, story.finance, story.root
    gateways.create_root(root, "static", f"static.{story.apex}", "/static", f"{finance}/a")
    gateways.create_vertex(finance, "a", "/css", parent=f"{root}/static")
    gateways.create_delegation_grant(finance, root, "a")
    story.wait_for(finance, "a", ("False", "OutsideDelegation"))
    assert story.flat_routes() == []
    inner = {"group": "gateway.networking.k8s.io", "kind": "HTTPRoute", "name": "b"}
    rules = [story.rule("/static/css"), {**story.rule("/static"), "backendRefs": [inner]}]
    gateways.patch("httproutes", finance, "a", {"spec": {"rules": rules}})
    gateways.create_vertex(finance, "b", "/static/b", parent=f"{finance}/a")
    story.wait_for_flat_routes(2)
    served = story.flat_routes()
    back = {**inner, "name": "a"}
    rules = [story.rule("/static/b"), {**story.rule("/static"), "backendRefs": [back]}]
    gateways.patch("httproutes", finance, "b", {"spec": {"rules": rules}})
    parents = [{"kind": "HTTPRoute", "namespace": root, "name": "static"}, {"kind": "HTTPRoute", "name": "b"}]
    gateways.patch("httproutes", finance, "a", {"spec": {"parentRefs": parents}})

    def told_of_b() -> list[str]:
        entries = [each for each in gateways.parent_statuses(finance, "a") if each["parentRef"]["name"] == "b"]
        return [each["reason"] for entry in entries for each in entry["conditions"] if each["status"] == "False"]

    gateways.wait_until("the circle is told", lambda: told_of_b() == ["DelegationCycle"])
    assert story.flat_routes() == served
    gateways.delete("httproutes", finance, "a")
    story.wait_for_flat_routes(0)
    story.wait_for(finance, "b", ORPHANED)


def test_a_deleted_tenant_leaves_nothing_of_a_chain_of_delegation_behind(story: Story) -> None:
    """As a root, and as a vertex in the middle: what went through it is not served any more, and the rest is. A new
    tenant of its name starts without the consent that the old one gave."""
    story.apply_tenants()
    gateways, root, finance, gmail, dave = story.gateways, story.root, story.finance, story.gmail, story.dave
    mail, site = "/finance/mail", f"site.{story.names['dave']}.{story.apex}"
    gateways.create_root(root, "www", f"www.{story.apex}", "/finance", f"{finance}/finance")
    gateways.create_root(dave, "site", site, "/", f"{gmail}/mail", owner=root)
    gateways.create_vertex(finance, "finance", "/finance", parent=f"{root}/www")
    rules = gateways.get("httproutes", finance, "finance")["spec"]["rules"]
    further = {"group": "gateway.networking.k8s.io", "kind": "HTTPRoute", "namespace": gmail, "name": "mail"}
    rules.append({**story.rule(mail), "backendRefs": [further]})
    gateways.patch("httproutes", finance, "finance", {"spec": {"rules": rules}})
    gateways.create_vertex(gmail, "mail", mail, parent=f"{finance}/finance")
    parents = [{"kind": "HTTPRoute", "namespace": finance, "name": "finance"}]
    parents.append({"kind": "HTTPRoute", "namespace": dave, "name": "site"})
    gateways.patch("httproutes", gmail, "mail", {"spec": {"parentRefs": parents}})
    for guest, host in ((root, finance), (finance, gmail), (dave, gmail)):
        gateways.create_delegation_grant(host, guest, "finance" if host == finance else "mail", name=guest)
    story.wait_for_flat_routes(2)
    gateways.wait_until("dave serves it, too", lambda: len(story.flat_routes(dave)) == 1)
    gateways.wait_until(
        "both are told", lambda: story.told_of(gmail, "mail") == {finance: "Accepted", dave: "Accepted"}
    )
    served = story.flat_routes()
    story.delete_tenant("dave")
    gateways.wait_until(
        "gmail hears it", lambda: story.told_of(gmail, "mail") == {finance: "Accepted", dave: "Orphaned"}
    )
    assert story.flat_routes() == served
    story.wait_for(root, "www", ACCEPTED)
    story.delete_tenant("finance")
    story.wait_for_flat_routes(0)
    gateways.wait_until(
        "gmail hears it", lambda: story.told_of(gmail, "mail") == {finance: "Orphaned", dave: "Orphaned"}
    )
    story.wait_for(root, "www", REFUSED, "ResolvedRefs")
    assert "mail" not in str(gateways.get("tenantgateways", root)["status"]["delegations"])
    story.create_tenant("finance")
    gateways.create_vertex(finance, "finance", "/finance", parent=f"{root}/www")
    story.wait_for(finance, "finance", ORPHANED)
    assert (story.flat_routes(), story.told(root, "www", "ResolvedRefs")) == ([], REFUSED)


def test_a_hostname_without_passthrough_listener_needs_a_setting_of_the_platform(story: Story) -> None:
    """tls.yaml as it is: the field of the TenantGateway is written by the controller of Tenants, which takes back what
    others write."""
    story.apply_tenants()
    story.apply("tls.yaml")

    def message() -> str:
        entries = story.gateways.parent_statuses(story.root, "db", "tlsroutes")
        return next((each["message"] for entry in entries for each in entry["conditions"]), "")

    advice = f"an administrator can add the name before {story.apex} to gateway.tlsPassthroughServices"
    story.gateways.wait_until("the root is told", lambda: message().endswith(advice))
    assert explain(story.tenants.client, story.name, f"route/{story.root}/db")["summary"].endswith(
        "; ask a platform administrator to add the name to gateway.tlsPassthroughServices of the platform settings"
    )


def test_explain_names_the_nearest_change_to_a_route_that_is_not_delegated(story: Story) -> None:
    """The parent, the ReferenceGrant and the name of the TenantGateway are missing in turn."""
    story.apply_tenants()
    gateways, root, finance = story.gateways, story.root, story.finance

    def is_told(namespace: str, name: str, remedy: str) -> bool:
        summary: str = explain(story.tenants.client, story.name, f"route/{namespace}/{name}")["summary"]
        return summary.endswith(f"; {remedy}")

    gateways.create_vertex(finance, "finance", "/finance", parent=f"{root}/www")
    by_the_parent = "let a rule of the parent name the route in its backendRefs, or correct the parentRef"
    gateways.wait_until("nobody delegates to it", lambda: is_told(finance, "finance", by_the_parent))
    gateways.create_root(root, "www", f"www.{story.apex}", "/finance", f"{finance}/finance")
    granted = "have the ReferenceGrant created that the message names"
    gateways.wait_until("it needs a grant", lambda: is_told(finance, "finance", granted))
    parents = gateways.get("httproutes", root, "www")["spec"]["parentRefs"]
    misspelt = [{**each, "name": "cozystak"} for each in parents]
    gateways.patch("httproutes", root, "www", {"spec": {"parentRefs": misspelt}})
    named = f"name TenantGateway {root}/cozystack in parentRefs"
    gateways.wait_until("there is a TenantGateway", lambda: is_told(root, "www", named))


def test_tlsroutes_delegate_hostnames_and_grpcroutes_are_told_what_to_set(gateways: Gateways) -> None:
    """tls.yaml and grpc.yaml. Layer 5 admits a TLSRoute with a hostname of others that refers to TLSRoutes only. By
    default no listener admits GRPCRoutes; test_other_kinds.py tests in process what is served with the setting."""
    apex = "delegation.example.com"
    owner = gateways.create_owner("tenant-tls", apex)
    guest = gateways.create_owner(f"{owner}-guest", f"guest.{apex}")
    gateways.create_tenantgateway(owner, apex, tlsPassthroughServices=["db"])
    for file in ("tls.yaml", "grpc.yaml"):
        text = (EXAMPLES / file).read_text().replace("tenant-root", owner).replace("tenant-finance", guest)
        gateways.cluster.kubectl("apply", "-f", "-", input=text.replace("example.org", apex))
    gateways.wait_until("the flat route is written", lambda: len(gateways.names("tlsroutes", owner)) == 2)
    (flat,) = [each for each in gateways.names("tlsroutes", owner) if each != "db"]
    spec = gateways.get("tlsroutes", owner, flat)["spec"]
    backend = spec["rules"][0]["backendRefs"][0]
    assert (spec["hostnames"], backend["namespace"], backend["name"]) == ([f"db.{apex}"], guest, "postgres")

    def told(plural: str, namespace: str, name: str) -> list[str]:
        entries = gateways.parent_statuses(namespace, name, plural)
        return [each["reason"] for entry in entries for each in entry["conditions"] if each["type"] == "Accepted"]

    gateways.wait_until("the vertex is told", lambda: told("tlsroutes", guest, "db") == ["Accepted"])
    gateways.wait_until("the GRPCRoute is told", lambda: told("grpcroutes", owner, "grpc") == ["NotAllowedByListeners"])
    assert gateways.names("grpcroutes", owner) == ["grpc"]
