"""A run of the server that uses every right of its ServiceAccount once."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from tests.e2e.support.clusters.cluster import CORE_GROUP_VERSION, PATIENCE, RBAC, ROOT, tenants_path
from tests.e2e.support.clusters.control_plane import TOKEN
from tests.e2e.support.clusters.kube import KubeCluster
from tests.e2e.support.clusters.processes import wait_until
from tests.e2e.support.gateways import DNS01, MERGE, Gateways
from tests.e2e.support.tenants import Tenants, manifest

APEX = "rights.example.com"
_WEBHOOKS = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations"


class EveryRight:
    def __init__(self, kube: KubeCluster, directory: Path) -> None:
        self._kube = kube
        self._directory = directory
        self._client = kube.client()
        self._tenants, self._gateways = Tenants(kube), Gateways(kube)

    def use_all(self) -> None:
        workload = self._tenants.create_with_namespace(spec={"gateway": True, "resourceQuotas": {"cpu": "4"}})
        self._change_contents(workload)
        self._change_gateways()
        self._write_a_tenantsecret(workload)
        self._adopt_and_release()
        self._send_requests_with_a_token_and_a_webhook()
        self._hand_over_to_helm(workload)
        self._delegate_other_kinds()
        self._renew_the_serving_certificate()
        self._list_again()
        self._delete(workload)

    def _wait(self, what: str, check: Callable[[], object]) -> None:
        wait_until(what, check, seconds=PATIENCE, processes=self._kube.processes)

    def _is(self, path: str, check: Callable[[dict[str, Any]], bool]) -> bool:
        answer = self._client.get(path)
        return answer.status == 200 and check(answer.json())

    def _patch(self, path: str, body: dict[str, Any]) -> None:
        self._client.request("PATCH", path, body, content_type=MERGE).expect(200)

    def _change_contents(self, workload: str) -> None:
        """Other users edit and replace the objects of a tenant; the quota changes and is removed."""
        namespace, name = f"/api/v1/namespaces/{workload}", workload.removeprefix("tenant-")
        ranges, quota = f"{namespace}/limitranges/tenant-range-limits", f"{namespace}/resourcequotas/tenant-quota"
        bindings = f"/apis/{RBAC}/v1/namespaces/{workload}/rolebindings"
        self._wait("the quota exists", lambda: self._is(quota, lambda each: True))
        limits = [{"type": "Container", "default": {"cpu": "1"}}]
        self._patch(ranges, {"spec": {"limits": limits}})
        self._wait("limits are restored", lambda: self._is(ranges, lambda each: each["spec"]["limits"] != limits))
        self._replace(
            f"{namespace}/secrets",
            "cozystack-values",
            {"type": "kubernetes.io/basic-auth", "data": {"username": "eA=="}},
        )
        values = f"{namespace}/secrets/cozystack-values"
        self._wait("the Secret is restored", lambda: self._is(values, lambda each: each["type"] == "Opaque"))
        self._patch(values, {"data": {"values.yaml": "eA=="}})
        self._wait("values are restored", lambda: self._is(values, lambda each: each["data"]["values.yaml"] != "eA=="))
        policy = f"/apis/networking.k8s.io/v1/namespaces/{workload}/networkpolicies/tenant-isolation"
        self._patch(policy, {"spec": {"ingress": [{}]}})
        self._wait("isolation is restored", lambda: self._is(policy, lambda each: "ingress" not in each["spec"]))
        role = {"apiGroup": RBAC, "kind": "ClusterRole", "name": "cozy:tenant:view"}
        self._replace(bindings, "cozy:tenant:use", {"roleRef": role})
        use = f"{bindings}/cozy:tenant:use"
        self._wait(
            "the role is restored", lambda: self._is(use, lambda each: each["roleRef"]["name"] == "cozy:tenant:use")
        )
        self._patch(use, {"subjects": []})
        self._wait("subjects are restored", lambda: self._is(use, lambda each: bool(each.get("subjects"))))
        own = f"/apis/{RBAC}/v1/namespaces/{ROOT}/roles/cozy:tenant-self:{name}"
        self._patch(own, {"rules": []})
        self._wait("the Role of the own Tenant is restored", lambda: self._is(own, lambda each: bool(each["rules"])))
        tenant = self._tenants.get(name)
        tenant["spec"]["resourceQuotas"] = {"cpu": "5"}
        self._update(tenant)
        self._wait(
            "the quota has changed", lambda: self._is(quota, lambda each: each["spec"]["hard"].get("limits.cpu") == "5")
        )
        self._tenants.patch(name, {"spec": {"resourceQuotas": None}})
        self._wait("the quota is gone", lambda: self._client.get(quota).status == 404)
        self._wait("the limits are gone", lambda: self._client.get(ranges).status == 404)

    def _update(self, tenant: dict[str, Any]) -> None:
        path = tenants_path(ROOT, tenant["metadata"]["name"])

        def is_stored() -> bool:
            live = self._client.get(path).expect(200)["metadata"]["resourceVersion"]
            tenant["metadata"]["resourceVersion"] = live
            return self._client.request("PUT", path, tenant).status == 200

        self._wait("the tenant is updated", is_stored)

    def _replace(self, collection: str, name: str, fields: dict[str, Any]) -> None:
        """Deletes the object and creates another one before the controller does."""
        body = {"metadata": {"name": name}, **fields}

        def is_replaced() -> bool:
            self._client.request("DELETE", f"{collection}/{name}")
            return self._client.request("POST", collection, body).status == 201

        self._wait(f"{name} is replaced", is_replaced)

    def _change_gateways(self) -> None:
        """Certificate modes change, namespaces are attached, and two routes contest a hostname."""
        gateways = self._gateways
        owner, harbor = gateways.create_owner("tenant-rights", APEX), gateways.create_namespace("cozy-rights")
        gateways.create_tenantgateway(owner, APEX, attachedNamespaces=[harbor])
        self._wait("the namespace is attached", lambda: gateways.attachment(harbor) == (owner, owner))
        for plural in ("httproutes", "tlsroutes"):
            host = f"{plural}.{APEX}"
            gateways.create_route(harbor, "winner", host, to=owner, plural=plural)
            gateways.create_route(owner, f"loser-{plural}", host, to=owner, plural=plural)
            lost = partial(gateways.conflict_message, owner, f"loser-{plural}", plural)
            self._wait(f"the conflict of {plural} is reported", lost)
        self._fill_the_gateway(owner)
        self._delegate_and_withdraw(owner, "httproutes")
        of_http01 = set(gateways.names("certificates", owner))
        gateways.patch("tenantgateways", owner, "cozystack", {"spec": DNS01})
        # the others would be deleted while they are edited
        self._wait("DNS-01 has a certificate", lambda: set(gateways.names("certificates", owner)) - of_http01)
        self._wait(
            "those of HTTP-01 are gone", lambda: not of_http01.intersection(gateways.names("certificates", owner))
        )
        for plural, changed in (
            ("issuers", {"spec": {"acme": {"email": "x@example.org"}}}),
            ("certificates", {"spec": {"dnsNames": ["x.example.org"]}}),
            ("httproutes", {"spec": {"hostnames": ["x.example.org"]}}),
        ):
            self._edit_and_wait(plural, owner, changed)
        secret = {"certMode": "existingSecret", "dns01": None, "wildcardSecretRef": {"name": "wildcard"}}
        gateways.patch("tenantgateways", owner, "cozystack", {"spec": secret})
        self._wait("issuers are gone", lambda: not gateways.names("issuers", owner))
        gateways.mark_gateway_programmed(owner)
        self._wait("certificates are gone", lambda: not gateways.names("certificates", owner))

    def _fill_the_gateway(self, owner: str) -> None:
        """More hostnames than a Gateway has room for come and go."""
        gateways = self._gateways
        gateways.create_gateway_class("cilium", "ListenerSet")
        for first in range(0, 70, 14):
            hostnames = [f"h{first + number}.{APEX}" for number in range(14)]
            gateways.create_route(owner, f"many-{first}", *hostnames, to=owner, port=443)
        self._wait("there is a ListenerSet", lambda: gateways.names("listenersets", owner))
        gateways.create_route(owner, "more", f"more.{APEX}", to=owner, port=443)
        self._wait(
            "it has one more listener",
            lambda: f"more.{APEX}" in str(gateways.get("listenersets", owner, "cozystack-1")["spec"]),
        )
        for each in gateways.names("httproutes", owner):
            if each.startswith(("many-", "more")):
                gateways.delete("httproutes", owner, each)
        self._wait("the ListenerSet is removed", lambda: not gateways.names("listenersets", owner))
        self._wait("so are its Certificates", lambda: len(gateways.names("certificates", owner)) == 1)

    def _delegate_other_kinds(self) -> None:
        owner = self._gateways.create_owner("tenant-rights", APEX)
        self._gateways.create_tenantgateway(owner, APEX, tlsPassthroughServices=["www"])
        for plural in ("grpcroutes", "tlsroutes"):
            self._delegate_and_withdraw(owner, plural)

    def _delegate_and_withdraw(self, owner: str, plural: str) -> None:
        """A part of a hostname is delegated to a route of another namespace, changed, and taken back."""
        gateways, vertex, host = self._gateways, self._gateways.create_namespace("vertex"), f"www.{APEX}"
        hostnames = [host] if plural == "tlsroutes" else []
        gateways.create_root(owner, "www", host, "/part", f"{vertex}/part", plural=plural)
        gateways.create_vertex(vertex, "part", "/part", *hostnames, parent=f"{owner}/www", plural=plural)
        gateways.create_delegation_grant(vertex, owner, "part", plural=plural)

        def flat_routes() -> list[str]:
            return [each for each in gateways.names(plural, owner) if each.startswith("www-")]

        self._wait("the flat route is written", flat_routes)
        (flat,) = flat_routes()
        (rule,) = gateways.get(plural, vertex, "part")["spec"]["rules"]
        rule["backendRefs"] = [{"name": "web", "port": 8081}]
        gateways.patch(plural, vertex, "part", {"spec": {"rules": [rule]}})
        self._wait("it is changed", lambda: "8081" in str(gateways.get(plural, owner, flat)["spec"]))
        gateways.delete("referencegrants", vertex, "delegation")
        self._wait("it is deleted", lambda: not flat_routes())

    def _edit_and_wait(self, plural: str, namespace: str, changed: dict[str, Any]) -> None:
        owned = [each for each in self._gateways.names(plural, namespace) if "loser" not in each]
        version = self._gateways.patch(plural, namespace, owned[0], changed)["metadata"]["generation"]
        self._wait(
            f"{plural} are restored",
            lambda: self._gateways.get(plural, namespace, owned[0])["metadata"]["generation"] > version,
        )

    def _write_a_tenantsecret(self, workload: str) -> None:
        path = f"{CORE_GROUP_VERSION}/namespaces/{workload}/tenantsecrets"
        self._client.request("POST", path, {"metadata": {"name": "rights"}}).expect(201)
        one = f"{path}/rights"
        self._client.request("PATCH", one, {"stringData": {"a": "b"}}, content_type=MERGE).expect(200)
        self._client.request("DELETE", one).expect(200)

    def _adopt_and_release(self) -> None:
        """A tenant adopts a Namespace and is deleted: everything of ours in the Namespace is."""
        name = self._tenants.new_name()
        namespace, path = f"tenant-{name}", f"/api/v1/namespaces/tenant-{name}"
        adopted = {"metadata": {"name": namespace, "annotations": {"apps.cozystack.io/adopt": f"{ROOT}/{name}"}}}
        self._client.request("POST", "/api/v1/namespaces", adopted).expect(201)
        self._client.request("POST", tenants_path(ROOT), manifest(name)).expect(201)
        account = f"{path}/serviceaccounts/{namespace}"
        self._wait("the account exists", lambda: self._client.get(account).status == 200)
        self._tenants.wait_until_settled(name)
        self._client.request("DELETE", tenants_path(ROOT, name)).expect(200)
        self._tenants.wait_until_gone(tenants_path(ROOT, name))
        self._wait("the account is gone", lambda: self._client.get(account).status == 404)
        self._client.request("DELETE", path)

    def _send_requests_with_a_token_and_a_webhook(self) -> None:
        headers = {"Authorization": f"Bearer {TOKEN}"}
        self._kube.anonymous_client().get(tenants_path(ROOT, "root"), headers=headers)
        rule = {
            "apiGroups": ["apps.cozystack.io"],
            "apiVersions": ["*"],
            "operations": ["CREATE"],
            "resources": ["tenants"],
        }
        hook = {
            "name": "rights.example.org",
            "clientConfig": {"service": {"namespace": "default", "name": "missing"}},
            "rules": [rule],
            "failurePolicy": "Ignore",
            "sideEffects": "None",
            "admissionReviewVersions": ["v1"],
            "timeoutSeconds": 1,
        }
        self._client.request("POST", _WEBHOOKS, {"metadata": {"name": "rights"}, "webhooks": [hook]}).expect(201)
        try:
            self._wait("the webhook is called", self._calls_the_webhook)
        finally:
            self._client.request("DELETE", f"{_WEBHOOKS}/rights")

    def _calls_the_webhook(self) -> bool:
        body = manifest("rights")
        answer = self._client.request("POST", tenants_path(ROOT), body, query={"dryRun": "All"})
        text = self._kube.direct_client().get("/metrics").content.decode()
        return answer.status == 201 and 'fail_open_count{name="rights.example.org"' in text

    def _hand_over_to_helm(self, workload: str) -> None:
        settings = self._directory / "platform.yaml"
        settings.write_text("tenants: {chart: flux}\ngateway: {grpcRoutes: true}\n")
        self._kube.flags = (f"--config={settings}",)
        self._kube.restart()
        account = f"/api/v1/namespaces/{workload}/serviceaccounts/{workload}"
        label = "app.kubernetes.io/managed-by"
        self._wait(
            "Helm manages it", lambda: self._is(account, lambda each: each["metadata"]["labels"][label] == "Helm")
        )

    def _renew_the_serving_certificate(self) -> None:
        path = "/api/v1/namespaces/cozy-system/secrets/tenant-apiserver-serving-cert"
        self._patch(path, {"data": {"tls.crt": "eA=="}})
        self._wait("the certificate is renewed", lambda: self._is(path, lambda each: each["data"]["tls.crt"] != "eA=="))

    def _list_again(self) -> None:
        """After an outage, each informer sends a small list before it watches again."""
        self._kube.kube_apiserver.restart_after_kill()
        self._wait("kube-apiserver is back", self._is_back)
        # its cache of HelmReleases may still be empty, and it then answers 429
        name = self._tenants.new_name()
        path, body = tenants_path(ROOT), manifest(name)
        self._wait("Tenants are created", lambda: self._client.request("POST", path, body).status in (201, 409))
        self._tenants.wait_for_namespace(f"tenant-{name}")

    def _is_back(self) -> bool:
        try:
            return self._client.get("/readyz").status == 200 and self._client.get(tenants_path(ROOT)).status == 200
        except OSError:
            return False

    def _delete(self, workload: str) -> None:
        """Deletes the Gateway first, then the tenant with its Namespace."""
        self._kube.flags = ()
        self._kube.restart()
        later = self._tenants.create_with_namespace(spec={"gateway": True})
        gateway = f"/apis/gateway.cozystack.io/v1alpha1/namespaces/{later}/tenantgateways/cozystack"
        self._wait("the TenantGateway exists", lambda: self._client.get(gateway).status == 200)
        self._patch(gateway, {"spec": {"gatewayClassName": "other"}})
        self._wait(
            "it is restored", lambda: self._is(gateway, lambda each: each["spec"]["gatewayClassName"] != "other")
        )
        self._client.request("DELETE", tenants_path(ROOT, later.removeprefix("tenant-"))).expect(200)
        self._tenants.wait_until_gone(f"/api/v1/namespaces/{later}")
        self._tenants.clean_up()
