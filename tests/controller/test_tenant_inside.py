"""What a Tenant's Namespace holds, from the Tenants that ask for it to a host: convergence, drift, charts."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from apiserver import errors
from apiserver.resource import GroupResource, Key, Object
from controller.tenant.access import ROLES
from controller.tenant.tenantgateway import TENANTGATEWAYS
from registry.host import (
    LIMITRANGES,
    NAMESPACES,
    RESOURCEQUOTAS,
    ROLEBINDINGS,
    SECRETS,
    SERVICEACCOUNTS,
    HostResource,
)
from tests.controller.tenant_world import PlatformOfTests, World
from tests.fakes import FakeHost
from tests.virtual_time import run_virtual

LABEL = "namespace.cozystack.io/"
CERTIFICATES = "count/certificates.cert-manager.io"
HELM = {
    "labels": {"app.kubernetes.io/managed-by": "Helm"},
    "annotations": {"meta.helm.sh/release-name": "tenant-alpha", "meta.helm.sh/release-namespace": "tenant-root"},
}


def services(world: World, namespace: str) -> dict[str, str]:
    """The labels namespace.cozystack.io/*, without the host."""
    labels = world.labels(namespace)
    found = {key.removeprefix(LABEL): value for key, value in labels.items() if key.startswith(LABEL)}
    found.pop("host", None)
    return found


def made(world: World) -> Counter[tuple[str, str]]:
    return Counter((verb, plural) for verb, plural, _ in world.writes())


def test_the_tenants_of_seed_001_use_their_own_services_and_their_parents() -> None:
    """R-063, R-064, R-065, R-067, R-075: foo has etcd and monitoring, bar in foo has etcd."""

    async def main() -> None:
        world = World(inside=True)
        async with world.running():
            await world.create("foo", etcd=True, monitoring=True)
            await world.create("bar", "tenant-foo", etcd=True)
        expected = {
            "etcd": "tenant-foo-bar",
            "monitoring": "tenant-foo",
            "ingress": "tenant-root",
            "seaweedfs": "tenant-root",
        }
        assert services(world, "tenant-foo-bar") == expected
        values = world.values("tenant-foo-bar")
        assert values["_namespace"] == {
            **expected,
            "gateway": "",
            "host": "bar.foo.example.org",
        }
        assert values["_cluster"] == {"root-host": "example.org", "solver": "http01"}
        assert services(world, "tenant-root") == dict.fromkeys(expected, "tenant-root")

    run_virtual(main)


def test_a_new_tenant_gets_all_that_its_namespace_holds_with_one_write_an_object() -> None:
    async def main() -> None:
        world = World(inside=True)
        async with world.running():
            world.host.forget_writes()
            await world.create("alpha", gateway=True, resourceQuotas={CERTIFICATES: "10"})
        assert made(world) == {
            ("create", "helmreleases"): 1,
            ("create", "namespaces"): 1,
            ("create", "secrets"): 1,
            ("create", "serviceaccounts"): 1,
            ("create", "rolebindings"): 5,
            ("create", "tenantgateways"): 1,
            ("create", "resourcequotas"): 1,
            ("create", "limitranges"): 1,
            ("patch", "helmreleases"): 1,
        }
        bindings = [world.content(ROLEBINDINGS, "tenant-alpha", role)["roleRef"]["name"] for role in ROLES]
        assert bindings == list(ROLES)
        assert world.content(SERVICEACCOUNTS, "tenant-alpha", "tenant-alpha")
        assert world.content(LIMITRANGES, "tenant-alpha", "tenant-range-limits")
        assert world.conditions("alpha") == {
            "GatewayReady": ("Unknown", "Pending"),
            "NamespaceReady": ("True", "Reconciled"),
            "Ready": ("True", "Reconciled"),
        }

    run_virtual(main)


def test_a_second_pass_writes_nothing_and_reads_nothing() -> None:
    async def main() -> None:
        world = World(inside=True)
        async with world.running():
            await world.create("alpha", gateway=True, resourceQuotas={"cpu": "1000m"})
            await world.create("beta", "tenant-alpha", schedulingClass="gold")
            await world.settle()
            world.host.forget_writes()
            calls = _calls(world.host)
            await world.again()
            assert calls == []
        assert world.writes() == []

        successor = World(world.host, inside=True)
        async with successor.running():
            pass
        assert successor.writes() == []
        assert [call for call in calls if call[0] not in ("list", "watch")] == []

    run_virtual(main)


def _calls(host: FakeHost) -> list[tuple[str, str]]:
    calls: list[tuple[str, str]] = []

    async def count(verb: str, res: HostResource, key: Key) -> None:
        calls.append((verb, res.plural))

    host.before = count
    return calls


_OURS: list[Any] = [
    pytest.param(SECRETS, "cozystack-values", {"data": {"values.yaml": "eA=="}}, id="Secret"),
    pytest.param(
        SECRETS, "cozystack-values", {"metadata": {"labels": {"reconcile.fluxcd.io/watch": None}}}, id="label"
    ),
    pytest.param(ROLEBINDINGS, "cozy:tenant:admin", {"subjects": []}, id="RoleBinding"),
    pytest.param(RESOURCEQUOTAS, "tenant-quota", {"spec": {"hard": {"pods": "1"}}}, id="ResourceQuota"),
    pytest.param(LIMITRANGES, "tenant-range-limits", {"spec": {"limits": [{"type": "Pod"}]}}, id="LimitRange"),
    pytest.param(TENANTGATEWAYS, "cozystack", {"spec": {"apex": "victim.example"}}, id="TenantGateway"),
]


@pytest.mark.parametrize(("res", "name", "edit"), _OURS)
def test_what_is_edited_comes_back_with_one_write(res: HostResource, name: str, edit: Object) -> None:
    async def main() -> None:
        world = World(inside=True)
        async with world.running():
            await world.create("alpha", gateway=True, resourceQuotas={"cpu": "1"})
            await world.settle()
            before = _content(world, res, name)
            ours = world.apply.writes
            await world.edit(res, "tenant-alpha", name, edit)
            await world.settle()
            assert world.apply.writes == ours + 1
        assert _content(world, res, name) == before

    run_virtual(main)


@pytest.mark.parametrize(
    ("res", "name"),
    [
        *(pytest.param(*each.values[:2], id=f"{each.id}") for each in _OURS if each.id != "label"),
        pytest.param(SERVICEACCOUNTS, "tenant-alpha", id="ServiceAccount"),
    ],
)
def test_what_is_deleted_comes_back(res: HostResource, name: str) -> None:
    async def main() -> None:
        world = World(inside=True)
        async with world.running():
            await world.create("alpha", gateway=True, resourceQuotas={"cpu": "1"})
            await world.settle()
            before = _content(world, res, name)
            await world.host.delete(res, "tenant-alpha", name)
        assert _content(world, res, name) == before

    run_virtual(main)


def _content(world: World, res: HostResource, name: str) -> Object:
    found = world.content(res, "tenant-alpha", name)
    kept = {"name", "namespace", "labels", "annotations"}
    return {**found, "metadata": {key: value for key, value in found["metadata"].items() if key in kept}}


def test_a_binding_to_another_role_is_made_anew() -> None:
    """The host lets nobody change a roleRef."""

    async def main() -> None:
        world = World(inside=True)
        async with world.running():
            await world.create("alpha")
            await world.settle()
            await world.host.delete(ROLEBINDINGS, "tenant-alpha", "cozy:tenant:view")
            stolen = {"metadata": {"name": "cozy:tenant:view", "namespace": "tenant-alpha"}, "subjects": []}
            stolen["roleRef"] = {"kind": "ClusterRole", "name": "cluster-admin"}
            world.host.add(ROLEBINDINGS, stolen)
            await world.settle()
        assert world.content(ROLEBINDINGS, "tenant-alpha", "cozy:tenant:view")["roleRef"]["name"] == "cozy:tenant:view"

    run_virtual(main)


def test_a_quota_is_exactly_what_is_declared_and_goes_with_the_declaration() -> None:
    """R-313, C-13: a cap of Certificates, under the key that counts them."""

    async def main() -> None:
        world = World(inside=True)
        async with world.running():
            await world.create("alpha", resourceQuotas={CERTIFICATES: "10", "cpu": 2})
            await world.settle()
            hard = world.content(RESOURCEQUOTAS, "tenant-alpha", "tenant-quota")["spec"]["hard"]
            assert hard == {CERTIFICATES: "10", "cpu": "2"}
            await world.change("alpha", resourceQuotas={"cpu": None})
            await world.settle()
            hard = world.content(RESOURCEQUOTAS, "tenant-alpha", "tenant-quota")["spec"]["hard"]
            assert hard == {CERTIFICATES: "10"}
            await world.change("alpha", resourceQuotas={CERTIFICATES: None})
        assert world.host.peek(RESOURCEQUOTAS, "tenant-alpha", "tenant-quota") is None
        assert world.host.peek(LIMITRANGES, "tenant-alpha", "tenant-range-limits") is None

    run_virtual(main)


def test_a_quota_of_somebody_elses_is_not_deleted() -> None:
    async def main() -> None:
        world = World(inside=True)
        async with world.running():
            await world.create("alpha")
            await world.settle()
            world.host.add(RESOURCEQUOTAS, {"metadata": {"name": "tenant-quota", "namespace": "tenant-alpha"}})
        assert world.content(RESOURCEQUOTAS, "tenant-alpha", "tenant-quota")

    run_virtual(main)


def test_gateways_are_inherited_and_only_owners_have_a_tenantgateway() -> None:
    """The tenants of seed 000.

    R-066, R-067, R-068, R-069, R-070, R-071, R-072, R-073, R-074, R-082, R-083, R-084, R-085, R-086.
    """

    async def main() -> None:
        world = World(inside=True)
        async with world.running():
            await world.create("alice")
            await world.create("acme", host="customer1.example", gateway=True)
            await world.create("bob", gateway=True)
            await world.create("plain", host="customer2.example", gateway=False)
            await world.settle()
            assert [name for name in _WITH if world.host.peek(TENANTGATEWAYS, name, "cozystack")] == [
                "tenant-acme",
                "tenant-bob",
            ]
            apexes = [world.content(TENANTGATEWAYS, name, "cozystack")["spec"]["apex"] for name in _WITH[1:3]]
            assert apexes == ["customer1.example", "bob.example.org"]
            assert "gateway" not in services(world, "tenant-alice")
            await world.create("kid", "tenant-acme")
            await world.settle()
            assert services(world, "tenant-acme-kid")["gateway"] == "tenant-acme"
            assert world.values("tenant-acme-kid")["_namespace"]["gateway"] == "tenant-acme"
            await world.change("root", gateway=True)
            await world.settle()
            owners = [services(world, name)["gateway"] for name in _WITH]
            assert owners == ["tenant-root", "tenant-acme", "tenant-bob", "tenant-root"]
            await world.change("acme", gateway=False)
            await world.settle()
            assert [services(world, name)["gateway"] for name in ("tenant-acme", "tenant-acme-kid")] == [
                "tenant-root",
                "tenant-root",
            ]
            assert world.host.peek(TENANTGATEWAYS, "tenant-acme", "cozystack") is None
            await world.change("root", gateway=None)
        assert ["gateway" in services(world, name) for name in _WITH] == [False, False, True, False]
        kinds = {plural for _, plural, _ in world.writes()}
        assert kinds.isdisjoint({"gateways", "issuers", "certificates", "httproutes"}), "R-096"

    run_virtual(main)


_WITH = ("tenant-alice", "tenant-acme", "tenant-bob", "tenant-plain")


def test_a_tenantgateway_follows_the_settings_and_the_host() -> None:
    """R-088, R-089: the class, as all of the spec, is the platform's."""

    async def main() -> None:
        world = World(inside=True)
        async with world.running():
            await world.create("alpha", gateway=True)
            await world.settle()
            world.platform.gateway_class = "other"
            await world.again()
            assert world.content(TENANTGATEWAYS, "tenant-alpha", "cozystack")["spec"]["gatewayClassName"] == "other"
            await world.change("alpha", host="new.example")
        spec = world.content(TENANTGATEWAYS, "tenant-alpha", "cozystack")["spec"]
        assert spec == world.platform.tenantgateway("new.example")

    run_virtual(main)


def test_a_host_that_no_label_holds_has_no_tenantgateway_and_a_condition() -> None:
    """N-6: an ancestor's change brought it about."""

    async def main() -> None:
        world = World(inside=True)
        long = "b" * 30
        async with world.running():
            await world.create("alpha")
            await world.create(long, "tenant-alpha", gateway=True)
            await world.settle()
            assert world.content(TENANTGATEWAYS, f"tenant-alpha-{long}", "cozystack")
            await world.change("alpha", host=f"{'a' * 40}.example")
            await world.settle()
            conditions = world.conditions(long, "tenant-alpha")
            assert conditions["TenantGatewayMissing"] == ("True", "HostTooLongForLabel")
            assert world.host.peek(TENANTGATEWAYS, f"tenant-alpha-{long}", "cozystack") is None
            await world.change("alpha", host="a.example")
        assert world.content(TENANTGATEWAYS, f"tenant-alpha-{long}", "cozystack")
        assert "TenantGatewayMissing" not in world.conditions(long, "tenant-alpha")

    run_virtual(main)


def test_a_host_without_tenantgateways_is_a_condition_and_the_rest_is_written() -> None:
    async def main() -> None:
        world = World(inside=True, platform=PlatformOfTests(served=False))
        async with world.running():
            await world.create("alpha", gateway=True, resourceQuotas={"cpu": "1"})
        assert world.conditions("alpha")["TenantGatewayMissing"] == ("True", "NotServed")
        assert world.content(RESOURCEQUOTAS, "tenant-alpha", "tenant-quota")

    run_virtual(main)


def test_a_kind_that_the_host_comes_to_have_is_picked_up() -> None:
    async def main() -> None:
        world = World(inside=True, platform=PlatformOfTests(served=False))
        async with world.running():
            await world.create("alpha", gateway=True)
            await world.create("aside")
            await world.settle()
            world.platform.served = True
            for handler in world.handlers:
                handler.unreachable(None)
            await world.settle()
        assert world.content(TENANTGATEWAYS, "tenant-alpha", "cozystack")
        assert "TenantGatewayMissing" not in world.conditions("alpha")

    run_virtual(main)


def test_what_somebody_else_made_in_the_name_of_a_tenantgateway_is_not_deleted() -> None:
    async def main() -> None:
        world = World(inside=True)
        async with world.running():
            await world.create("alpha")
            await world.settle()
            theirs = {"metadata": {"name": "cozystack", "namespace": "tenant-alpha"}, "spec": {"apex": "x.example"}}
            world.host.add(TENANTGATEWAYS, theirs)
        assert world.content(TENANTGATEWAYS, "tenant-alpha", "cozystack")["spec"] == {"apex": "x.example"}

    run_virtual(main)


def test_the_gateway_parts_label_is_left_alone_until_the_tree_gives_an_owner() -> None:
    async def main() -> None:
        world = World(inside=True)
        async with world.running():
            await world.create("alpha")
            await world.settle()
            attach = {
                "labels": {f"{LABEL}gateway": "tenant-bob"},
                "annotations": {"cozystack.io/gateway-attached-by": "tenant-bob/cozystack"},
            }
            await world.edit_namespace("tenant-alpha", attach)
            await world.settle()
            ours = world.apply.writes
            await world.again()
            assert world.apply.writes == ours
            assert services(world, "tenant-alpha")["gateway"] == "tenant-bob"
            await world.change("alpha", gateway=True)
            await world.settle()
            metadata = world.namespace("tenant-alpha")["metadata"]
            assert metadata["labels"][f"{LABEL}gateway"] == "tenant-alpha"
            assert "cozystack.io/gateway-attached-by" not in metadata["annotations"]
            await world.change("alpha", gateway=None)
        assert "gateway" not in services(world, "tenant-alpha")

    run_virtual(main)


def test_a_parents_scheduling_class_wins() -> None:
    async def main() -> None:
        world = World(inside=True)
        async with world.running():
            await world.create("alpha")
            await world.create("beta", "tenant-alpha", schedulingClass="mine")
            await world.settle()
            label = "scheduler.cozystack.io/scheduling-class"
            assert world.labels("tenant-alpha-beta")[label] == "mine"
            await world.change("alpha", schedulingClass="theirs")
            await world.settle()
            assert world.labels("tenant-alpha-beta")[label] == "theirs"
            assert world.values("tenant-alpha-beta")["_namespace"]["schedulingClass"] == "theirs"
            await world.change("alpha", schedulingClass="not a label")
        assert label not in world.labels("tenant-alpha-beta")
        assert world.conditions("beta", "tenant-alpha")["SchedulingClassInvalid"] == ("True", "NotALabel")

    run_virtual(main)


def test_unknown_keys_of_the_roots_secret_reach_every_descendant_with_one_write_each() -> None:
    async def main() -> None:
        world = World(inside=True)
        async with world.running():
            await world.create("alpha")
            await world.create("beta", "tenant-alpha")
            await world.create("aside")
            await world.settle()
            world.host.forget_writes()
            text = "X2NsdXN0ZXI6IHtidW5kbGU6IGlzcC1mdWxsfQo="  # _cluster: {bundle: isp-full}
            await world.edit(SECRETS, "tenant-root", "cozystack-values", {"data": {"values.yaml": text}})
            await world.settle()
            for namespace in ("tenant-root", "tenant-alpha", "tenant-alpha-beta", "tenant-aside"):
                assert world.values(namespace)["_cluster"]["bundle"] == "isp-full"
                assert world.values(namespace)["_cluster"]["solver"] == "http01"
            # the edit, the root's own values beside it, and each of the three below
            assert made(world) == {("patch", "secrets"): 5}
            world.platform.cluster["solver"] = "dns01"
            world.host.forget_writes()
            await world.again()
        assert world.values("tenant-alpha-beta")["_cluster"] == {
            "bundle": "isp-full",
            "root-host": "example.org",
            "solver": "dns01",
        }
        assert made(world) == {("patch", "secrets"): 4}

    run_virtual(main)


def test_a_secret_of_the_roots_that_cannot_be_read_is_left_and_said() -> None:
    async def main() -> None:
        world = World(inside=True)
        async with world.running():
            await world.create("alpha")
            await world.settle()
            good = world.values("tenant-alpha")
            await world.edit(SECRETS, "tenant-root", "cozystack-values", {"data": {"values.yaml": "Ww=="}})
            await world.settle()
            assert world.conditions("root")["ValuesReady"] == ("False", "Malformed")
            assert world.conditions("alpha")["ValuesReady"] == ("False", "Malformed")
            assert world.values("tenant-alpha") == good
            await world.edit(SECRETS, "tenant-root", "cozystack-values", {"data": {"values.yaml": None}})
        assert "ValuesReady" not in world.conditions("root")
        assert "ValuesReady" not in world.conditions("alpha")

    run_virtual(main)


def test_an_immutable_secret_in_the_way_is_made_anew() -> None:
    async def main() -> None:
        world = World(inside=True)
        async with world.running():
            await world.create("alpha")
            await world.settle()
            await world.edit(
                SECRETS, "tenant-alpha", "cozystack-values", {"immutable": True, "data": {"values.yaml": ""}}
            )
        assert world.values("tenant-alpha")["_namespace"]["host"] == "alpha.example.org"
        assert "immutable" not in world.content(SECRETS, "tenant-alpha", "cozystack-values")

    run_virtual(main)


def test_what_the_host_refuses_stops_no_other_step() -> None:
    async def main() -> None:
        world = World(inside=True)

        async def refuse(verb: str, res: HostResource, key: Key) -> None:
            if verb == "create" and res == RESOURCEQUOTAS:
                raise errors.Forbidden(GroupResource("", "resourcequotas"), key.name, "must be a standard resource")

        world.host.before = refuse
        async with world.running():
            await world.create("alpha", gateway=True, resourceQuotas={"nonsense": "1"})
        assert world.conditions("alpha")["QuotaReady"] == ("False", "Refused")
        assert world.content(TENANTGATEWAYS, "tenant-alpha", "cozystack")

    run_virtual(main)


def test_nothing_is_written_into_a_namespace_that_is_somebody_elses() -> None:
    """S-07."""

    async def main() -> None:
        world = World(inside=True)
        world.host.add(NAMESPACES, {"metadata": {"name": "tenant-alpha"}})
        async with world.running():
            world.host.forget_writes()
            await world.create("alpha", gateway=True, resourceQuotas={"cpu": "1"})
        assert made(world) == {("create", "helmreleases"): 1, ("patch", "helmreleases"): 1}

    run_virtual(main)


def test_a_namespace_that_was_taken_meanwhile_gets_nothing() -> None:
    async def main() -> None:
        world = World(inside=True)

        async def take(verb: str, res: HostResource, key: Key) -> None:
            if (verb, res, key.name) == ("create", NAMESPACES, "tenant-alpha"):
                world.host.before = None
                world.host.add(NAMESPACES, {"metadata": {"name": "tenant-alpha"}})

        async with world.running():
            world.host.before = take
            world.host.forget_writes()
            await world.create("alpha")
        assert made(world) == {("create", "helmreleases"): 1, ("patch", "helmreleases"): 1}
        assert world.conditions("alpha")["NamespaceReady"] == ("False", "NamespaceConflict")

    run_virtual(main)


def test_what_a_stale_view_would_create_is_only_read() -> None:
    """An object that is there, and was not seen yet, is compared and not written."""

    async def main() -> None:
        world = World(inside=True)
        async with world.running():
            await world.create("alpha", gateway=True)
            await world.settle()
            ours = world.apply.writes
            for handler in world.handlers:
                handler.replace([], 0)
            await world.again()
            # each was tried to be made, and found to be there
            assert world.apply.writes > ours
            world.host.forget_writes()
            await world.again()
        assert world.writes() == []

    run_virtual(main)


def _chart(world: World) -> dict[tuple[HostResource, str], Object]:
    """What the tenant's chart makes: the same objects, with a few other values, and Helm's marks."""
    return {
        (NAMESPACES, "tenant-alpha"): {"metadata": {"labels": {f"{LABEL}host": "chart.example", f"{LABEL}etcd": ""}}},
        (SECRETS, "cozystack-values"): {"type": "Opaque", "data": {"values.yaml": "X2NsdXN0ZXI6IHt9Cg=="}},
        (SERVICEACCOUNTS, "tenant-alpha"): {},
        **{
            (ROLEBINDINGS, role): {
                "roleRef": {"kind": "ClusterRole", "name": role},
                "subjects": [{"kind": "Group", "name": "x"}],
            }
            for role in ROLES
        },
        (RESOURCEQUOTAS, "tenant-quota"): {"spec": {"hard": {"cpu": "9"}}},
        (LIMITRANGES, "tenant-range-limits"): {"spec": {"limits": [{"type": "Container", "default": {"cpu": "9"}}]}},
        (TENANTGATEWAYS, "cozystack"): {"spec": {**world.platform.tenantgateway("chart.example")}},
    }


async def _helm(world: World) -> None:
    """Helm re-applies its version of everything."""
    for (res, name), obj in _chart(world).items():
        metadata = {**obj.get("metadata", {}), "name": name, "annotations": HELM["annotations"]}
        metadata["labels"] = {**metadata.get("labels", {}), **HELM["labels"]}
        namespace = "tenant-alpha" if res.namespaced else ""
        if namespace:
            metadata["namespace"] = namespace
        body = {**obj, "metadata": metadata}
        if world.host.peek(res, namespace, name) is None:
            world.host.add(res, body)
        else:
            await world.edit(res, namespace, name, body)


@pytest.mark.parametrize("chart", ["none", "flux"])
def test_with_the_tenants_chart_there_is_no_war_of_writes(chart: Any) -> None:
    """20 alternations of our reconcile with a writer that re-applies the chart's version of every object."""

    async def main() -> None:
        world = World(inside=True, platform=PlatformOfTests(chart=chart))
        async with world.running():
            await _helm(world)
            await world.create("alpha", gateway=True, resourceQuotas={"cpu": "1", CERTIFICATES: "10"})
            await world.settle()
            conditions = world.conditions("alpha")
            assert conditions["ChartConflict"] == ("True", "ObjectsDiffer")
            assert conditions["NamespaceReady"] == ("True", "Reconciled")
            for (res, name), obj in _chart(world).items():
                _assert_kept(world.content(res, "tenant-alpha" if res.namespaced else "", name), obj)
            # what the chart does not say is ours to say
            quota = world.content(RESOURCEQUOTAS, "tenant-alpha", "tenant-quota")
            assert quota["spec"]["hard"] == {"cpu": "9", CERTIFICATES: "10"}
            assert services(world, "tenant-alpha")["gateway"] == "tenant-alpha"
            ours = world.apply.writes
            for _ in range(20):
                await _helm(world)
                await world.again()
            assert world.apply.writes == ours

    run_virtual(main)


def _assert_kept(found: Any, chart: Any) -> None:
    if isinstance(chart, dict):
        for key, value in chart.items():
            _assert_kept(found[key], value)
    else:
        assert found == chart


def test_where_flux_installs_charts_what_we_make_is_for_helm_to_take_over() -> None:
    async def main() -> None:
        world = World(inside=True, platform=PlatformOfTests(chart="flux"))
        async with world.running():
            await world.create("alpha", gateway=True, resourceQuotas={"cpu": "1"})
            await world.settle()
            ours = world.apply.writes
            await world.again()
            assert world.apply.writes == ours
        for res, name in _chart(world):
            metadata = world.content(res, "tenant-alpha" if res.namespaced else "", name)["metadata"]
            assert metadata["labels"]["app.kubernetes.io/managed-by"] == "Helm"
            # the TenantGateway is of a chart of its own, in the tenant's namespace
            release = ("tenant-alpha", "gateway") if res == TENANTGATEWAYS else ("tenant-root", "tenant-alpha")
            annotations = metadata["annotations"]
            assert annotations["meta.helm.sh/release-namespace"] == release[0]
            assert annotations["meta.helm.sh/release-name"] == release[1]
        assert "ChartConflict" not in world.conditions("alpha")
        root = world.namespace("tenant-root")["metadata"]
        assert "app.kubernetes.io/managed-by" not in root["labels"]
        # no chart makes the root's
        values = world.content(SECRETS, "tenant-root", "cozystack-values")["metadata"]
        assert values["labels"]["app.kubernetes.io/managed-by"] == "tenant-controller"

    run_virtual(main)


def test_what_we_made_is_handed_over_when_the_chart_comes() -> None:
    async def main() -> None:
        world = World(inside=True)
        async with world.running():
            await world.create("alpha", resourceQuotas={"cpu": "1"})
            await world.settle()
            secret = world.content(SECRETS, "tenant-alpha", "cozystack-values")
            assert secret["metadata"]["labels"]["app.kubernetes.io/managed-by"] == "tenant-controller"
            world.platform.chart = "flux"
            await world.again()
            ours = world.apply.writes
            await world.again()
            assert world.apply.writes == ours
        for res, name in ((NAMESPACES, "tenant-alpha"), (SECRETS, "cozystack-values")):
            metadata = world.content(res, "tenant-alpha" if res.namespaced else "", name)["metadata"]
            assert metadata["labels"]["app.kubernetes.io/managed-by"] == "Helm"
            assert metadata["annotations"]["meta.helm.sh/release-name"] == "tenant-alpha"

    run_virtual(main)


def test_a_change_of_a_host_reaches_a_wide_and_deep_tree_with_one_write_an_object() -> None:
    """R-062: nobody asks twice, and nobody else is written to."""

    async def main() -> None:
        world = World(inside=True)
        async with world.running():
            await world.create("alpha")
            await world.create("aside")
            await world.settle()
            for branch in range(8):
                await world.create(f"b{branch}", "tenant-alpha")
            await world.settle()
            for branch in range(8):
                for leaf in range(8):
                    await world.create(f"l{leaf}", f"tenant-alpha-b{branch}")
            await world.settle()
            await world.change("alpha", host="new.example")
            world.host.forget_writes()
            await world.settle()
        assert made(world) == {("patch", "namespaces"): 73, ("patch", "secrets"): 73, ("patch", "helmreleases"): 73}
        assert world.values("tenant-alpha-b7-l7")["_namespace"]["host"] == "l7.b7.new.example"

    run_virtual(main)


def test_an_event_of_one_tenant_costs_no_reads_of_others() -> None:
    async def main() -> None:
        world = World(inside=True)
        async with world.running():
            for number in range(20):
                await world.create(f"n{number}")
            await world.settle()
            calls = _calls(world.host)
            await world.change("n7", etcd=True)
            await world.settle()
        # the change itself, and the generation that the status is about
        assert Counter(calls) == {
            ("patch", "helmreleases"): 2,
            ("patch", "namespaces"): 1,
            ("get", "secrets"): 1,
            ("patch", "secrets"): 1,
        }

    run_virtual(main)
