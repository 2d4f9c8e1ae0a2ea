"""`tenants/explain` on a server: who may ask, what it answers, and that discovery and OpenAPI have it."""

from __future__ import annotations

from tests.e2e.support.clusters.cluster import GROUP_VERSION, ROOT, E2eCluster, tenants_path
from tests.e2e.support.explanations import explain
from tests.e2e.support.gateways import Gateways
from tests.e2e.support.tenants import Object, Tenants


def test_the_people_of_a_tenant_learn_why_a_hostname_is_not_served(
    cluster: E2eCluster, tenants: Tenants, unique: str
) -> None:
    tenant = tenants.create()["metadata"]["name"]
    tenants.wait_until_settled(tenant)
    eve = cluster.client(unique, [f"tenant-{tenant}-view"])
    path = tenants_path(ROOT, tenant, "explain")
    cluster.wait_until("eve may ask about her tenant", lambda: eve.get(path).status == 200)
    cluster.wait_until("her tenant has a domain", lambda: len(explain(eve, tenant)["facts"]) > 4)
    found = explain(eve, tenant)
    assert (found["kind"], found["format"], found["about"]) == ("TenantExplanation", 1, "tenant")
    assert any("of a tenant that you may not see" in each.get("value", "") for each in found["facts"])
    domain = tenants.get(tenant)["status"]["host"]["value"]
    outside = explain(eve, tenant, "host/shop.elsewhere.example")
    assert outside["verdict"] == "False"
    assert outside["summary"].startswith(f"shop.elsewhere.example is not below {domain}; use a name below {domain}")
    # a route that is hidden, and one that does not exist
    for name in ("kube-system/x", f"tenant-{tenant}/x"):
        assert explain(eve, tenant, f"route/{name}")["facts"][0]["object"] == {"hidden": True}
    assert explain(eve, tenant, f"user/{unique}")["verdict"] == "True"
    assert eve.get(path, query={"about": "user/bob"}).status == 403
    assert eve.get(path, query={"about": "who-can-see"}).status == 403
    assert eve.get(path, query={"about": "nonsense"}).status == 400
    assert eve.get(tenants_path(ROOT, "root", "explain")).status == 403
    bindings = [each["object"]["name"] for each in explain(tenants.client, tenant, "who-can-see")["facts"]]
    assert f"cozy:tenant-self:{tenant}" in bindings


def test_groups_of_another_user_are_part_of_the_question(cluster: E2eCluster, tenants: Tenants, unique: str) -> None:
    tenant = tenants.create()["metadata"]["name"]
    tenants.wait_until_settled(tenant)
    path, group = tenants_path(ROOT, tenant, "explain"), f"tenant-{tenant}-view"
    eve = cluster.client(unique, [group])
    cluster.wait_until("eve may ask about her tenant", lambda: eve.get(path).status == 200)

    def ask(*groups: str) -> Object:
        answer: Object = tenants.client.get(path, query={"about": f"user/{unique}", "group": list(groups)}).expect(200)
        return answer

    assert ask()["verdict"] == "Unknown"
    assert ask("others", group)["verdict"] == "True"
    denied = ask("others")
    assert denied["verdict"] == "False"
    assert denied["facts"][0]["remedy"] == (
        f"add {unique} to the group {group}, or bind {unique} to the Role cozy:tenant-self:{tenant} in {ROOT}, "
        "which shows this tenant alone"
    )
    assert eve.get(path, query={"about": f"user/{unique}", "group": group}).status == 403
    assert eve.get(path, query={"about": "tenant", "group": group}).status == 400


def test_a_hostname_is_explained_from_its_domain_to_its_listener(
    cluster: E2eCluster, tenants: Tenants, gateways: Gateways
) -> None:
    """No controller of a GatewayClass runs here: the Gateway waits for one, and the answer says so."""
    tenant = tenants.create(spec={"gateway": True})["metadata"]["name"]
    namespace = f"tenant-{tenant}"
    gateways.wait_until("the issuer exists", lambda: gateways.names("issuers", namespace))
    host = f"shop.{tenants.get(tenant)['status']['host']['value']}"
    hint = f"create an HTTPRoute with this hostname in {namespace}, whose parentRefs name Gateway {namespace}/cozystack"
    assert hint in str(explain(tenants.client, tenant, f"host/{host}"))
    gateways.create_route(namespace, "shop", host, to=namespace)

    def facts() -> list[Object] | None:
        found: list[Object] = explain(tenants.client, tenant, f"host/{host}")["facts"]
        return found if any("listeners[" in each["object"].get("field", "") for each in found) else None

    found = cluster.wait_until("the answer has the listener of the hostname", facts)
    kinds = list(dict.fromkeys(each["object"]["kind"] for each in found))
    assert kinds == ["Tenant", "TenantGateway", "HTTPRoute"]
    [ready] = [each for each in found if each["object"].get("field") == "status.conditions[Ready]"]
    assert ready["status"] == "False"
    assert ready["remedy"].startswith("ask a platform administrator to install the controller of GatewayClass ")


def test_discovery_and_openapi_have_the_subresource(cluster: E2eCluster) -> None:
    document = cluster.client().get(GROUP_VERSION).expect(200)
    [found] = [each for each in document["resources"] if each["name"] == "tenants/explain"]
    assert (found["kind"], found["verbs"]) == ("TenantExplanation", ["get"])
    paths = cluster.client().get("/openapi/v3/apis/apps.cozystack.io/v1alpha1").expect(200)["paths"]
    operation = paths[f"{GROUP_VERSION}/namespaces/{{namespace}}/tenants/{{name}}/explain"]["get"]
    assert {"about", "group"} <= {each["name"] for each in operation["parameters"]}
    assert cluster.client().request("POST", tenants_path(ROOT, "root", "explain"), {}).status == 405
