"""ATTACK-20: routes that a Gateway does not admit take nothing from anybody: no hostname, listener or certificate."""

from __future__ import annotations

import itertools
from concurrent.futures import ThreadPoolExecutor
from functools import partial

from tests.e2e.support.clusters.cluster import ROOT, ROOT_HOST
from tests.e2e.support.gateways import Gateways
from tests.e2e.support.tenants import Tenants

QUOTA = "count/certificates.cert-manager.io"
MAX_HOSTNAMES = 32
"""The default of gateway.hostnamesPerHeir."""
_numbers = itertools.count()


class Publisher:
    """A tenant with a Gateway and the host `apex`."""

    def __init__(self, tenants: Tenants, gateways: Gateways) -> None:
        self.tenants = tenants
        self.gateways = gateways
        self.namespace = tenants.create_with_namespace(spec={"gateway": True})
        self.apex = f"{self.namespace.removeprefix('tenant-')}.{ROOT_HOST}"
        gateways.wait_until("the Gateway exists", lambda: gateways.names("gateways", self.namespace) == ["cozystack"])
        self.own_listeners = gateways.listener_hostnames(self.namespace)

    def create_child(self, **spec: object) -> tuple[str, str]:
        """The namespace and the host of a new child."""
        name = self.tenants.create(self.namespace, spec=spec)["metadata"]["name"]
        namespace = f"{self.namespace}-{name}"
        self.tenants.wait_for_namespace(namespace)
        return namespace, str(spec.get("host") or f"{name}.{self.apex}")

    def added_listeners(self) -> list[str]:
        return sorted(set(self.gateways.listener_hostnames(self.namespace)) - set(self.own_listeners))

    def count_certificates(self) -> int:
        return len(self.gateways.names("certificates", self.namespace))


def test_a_route_of_an_unlabelled_namespace_takes_no_hostname(tenants: Tenants, gateways: Gateways) -> None:
    """R-346: it would win by name: its namespace sorts before those of all tenants."""
    publisher = Publisher(tenants, gateways)
    alice, host = publisher.create_child()
    aaa = gateways.create_namespace("aaa")
    gateways.create_route(aaa, "steal", f"harbor.{host}", f"junk1.{publisher.apex}", to=publisher.namespace)
    gateways.create_route(alice, "harbor", f"harbor.{host}", to=publisher.namespace)
    gateways.wait_until("alice is served", lambda: publisher.added_listeners() == [f"harbor.{host}"])
    gateways.wait_until("the thief is told", lambda: gateways.rejection_reason(aaa, "steal") == "NotAllowedByListeners")
    assert gateways.parent_statuses(alice, "harbor") == []
    gateways.wait_until("alice has the certificate", lambda: publisher.count_certificates() == 1)
    assert "steal" not in str(gateways.conditions(publisher.namespace))


def test_a_child_with_a_gateway_of_its_own_takes_no_room_on_that_of_its_parent(
    tenants: Tenants, gateways: Gateways
) -> None:
    """R-364: sixty certificates of the parent's ACME account, and all of its listeners, were its to take."""
    publisher = Publisher(tenants, gateways)
    greedy, greedy_host = publisher.create_child(gateway=True)
    heir, heir_host = publisher.create_child()
    hostnames = [f"h{number}.{greedy_host}" for number in range(62)]
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda each: gateways.create_route(greedy, each.partition(".")[0], each, to=publisher.namespace),
                      hostnames))  # fmt: skip
    gateways.create_route(heir, "shop", f"shop.{heir_host}", to=publisher.namespace)
    gateways.wait_until("the heir is served", lambda: publisher.added_listeners() == [f"shop.{heir_host}"])
    for name in ("h0", "h61"):
        gateways.wait_until("the other is told", partial(_is_rejected, gateways, greedy, name, "NotAllowedByListeners"))


def test_a_host_that_moves_takes_its_hostnames_from_routes_written_before(tenants: Tenants, gateways: Gateways) -> None:
    publisher = Publisher(tenants, gateways)
    number = next(_numbers)
    contested = f"shop{number}.{publisher.apex}"
    alice, _ = publisher.create_child(host=contested)
    zed, _ = publisher.create_child()
    gateways.create_route(alice, "old", f"www.{contested}", to=publisher.namespace)
    gateways.wait_until("alice is served", lambda: publisher.added_listeners() == [f"www.{contested}"])
    for namespace, host in ((alice, f"alice{number}.{publisher.apex}"), (zed, contested)):
        name = namespace.removeprefix(f"{publisher.namespace}-")
        tenants.patch(name, {"spec": {"host": host}}, namespace=publisher.namespace)
        gateways.wait_until("the namespace has the host", partial(_has_host, gateways, namespace, host))
    gateways.create_route(zed, "new", f"www.{contested}", to=publisher.namespace)
    gateways.wait_until(
        "alice's route is told", partial(_is_rejected, gateways, alice, "old", "NoMatchingListenerHostname")
    )
    gateways.wait_until("zed is served", lambda: publisher.added_listeners() == [f"www.{contested}"])
    gateways.wait_until("zed's route is accepted", lambda: gateways.rejection_reason(zed, "new") == "")


def test_a_route_to_a_gateway_that_never_was_is_told_so(tenants: Tenants, gateways: Gateways) -> None:
    """R-347."""
    plain = tenants.create_with_namespace()
    host = f"{plain.removeprefix('tenant-')}.{ROOT_HOST}"
    gateways.create_route(plain, "web", f"web.{host}", to=plain, port=443)
    gateways.wait_until("it is an orphan", partial(_is_rejected, gateways, plain, "web", "Orphaned"))
    tenants.patch(plain.removeprefix("tenant-"), {"spec": {"gateway": True}}, namespace=ROOT)
    gateways.wait_until("it is served", partial(gateways.has_listeners, plain, f"web.{host}"))
    gateways.wait_until("it is accepted", lambda: gateways.rejection_reason(plain, "web") == "")


def test_an_heir_has_no_more_hostnames_than_its_quota_of_certificates(tenants: Tenants, gateways: Gateways) -> None:
    """R-313: each costs its ancestor a listener and a certificate."""
    publisher = Publisher(tenants, gateways)
    heir, host = publisher.create_child(resourceQuotas={QUOTA: "2"})
    served = [f"{label}.{host}" for label in "abc"]
    gateways.create_route(heir, "shop", *served, to=publisher.namespace)
    gateways.wait_until("two are served", lambda: publisher.added_listeners() == served[:2])
    gateways.wait_until("the third is refused", partial(_is_rejected, gateways, heir, "shop", "QuotaExceeded"))
    gateways.wait_until("each has a certificate", lambda: publisher.count_certificates() == 2)
    gateways.wait_until("the publisher is told", lambda: "HostnamesLeftOut" in gateways.conditions(publisher.namespace))
    name = heir.removeprefix(f"{publisher.namespace}-")
    tenants.patch(name, {"spec": {"resourceQuotas": {QUOTA: "3"}}}, namespace=publisher.namespace)
    gateways.wait_until("all are served", lambda: publisher.added_listeners() == served)
    gateways.wait_until("the route is told", lambda: gateways.rejection_reason(heir, "shop") == "")
    tenants.patch(name, {"spec": {"resourceQuotas": {QUOTA: "1"}}}, namespace=publisher.namespace)
    gateways.wait_until("a lower quota ends the excess", lambda: publisher.added_listeners() == served[:1])


def test_an_heir_and_its_children_leave_room_for_others(tenants: Tenants, gateways: Gateways) -> None:
    """Without a quota, the platform's setting limits a child together with its descendants."""
    publisher = Publisher(tenants, gateways)
    greedy, host = publisher.create_child()
    heir, heir_host = publisher.create_child()
    child = tenants.create(greedy)["metadata"]["name"]
    grandchild = f"{greedy}-{child}"
    tenants.wait_for_namespace(grandchild)
    for number, (namespace, domain) in enumerate([(greedy, host), (greedy, host), (grandchild, f"{child}.{host}")]):
        hostnames = [f"h{number}x{each}.{domain}" for each in range(16)]
        gateways.create_route(namespace, f"junk{number}", *hostnames, to=publisher.namespace)
    gateways.wait_until("the budget is used up", lambda: len(publisher.added_listeners()) == MAX_HOSTNAMES)
    gateways.create_route(heir, "shop", f"shop.{heir_host}", to=publisher.namespace)
    gateways.wait_until("another heir is served", lambda: f"shop.{heir_host}" in publisher.added_listeners())
    assert len(publisher.added_listeners()) == MAX_HOSTNAMES + 1
    rejected = [_is_rejected(gateways, namespace, f"junk{number}", "QuotaExceeded")
                for number, namespace in enumerate([greedy, greedy, grandchild])]  # fmt: skip
    assert any(rejected)


def _is_rejected(gateways: Gateways, namespace: str, name: str, reason: str) -> bool:
    return gateways.rejection_reason(namespace, name) == reason


def _has_host(gateways: Gateways, namespace: str, host: str) -> bool:
    labels = gateways.client.get(f"/api/v1/namespaces/{namespace}").expect(200)["metadata"]["labels"]
    return bool(labels.get("namespace.cozystack.io/host") == host)
