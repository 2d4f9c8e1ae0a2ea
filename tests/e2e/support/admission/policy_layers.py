"""Installs the policies of the five layers in a cluster and sends the cases of their table as requests.

kube-apiserver evaluates no policy for aggregated resources, and our server checks Tenants before any policy. So layer 3
is tested on a stand-in kind: a CRD with the schema of Tenants.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any

from apiserver.patch.json_and_merge import merge_patch
from tests.e2e.support.admission.policies import BINDINGS as BINDINGS_PATH
from tests.e2e.support.admission.policies import POLICIES as POLICIES_PATH
from tests.e2e.support.clusters.cluster import RBAC, E2eCluster
from tests.e2e.support.http.https_client import Client
from tests.e2e.support.http.impersonation import ImpersonatingClient
from tests.policies import cases
from tests.policies.case_table import BINDINGS, CLUSTER_CASES, POLICIES
from tests.policies.cases import NAMESPACES, Case
from tests.policies.stand_in_kind import STAND_IN_GROUP, stand_in_crd

_CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
_BINDINGS_OF_ROLES = f"/apis/{RBAC}/v1/clusterrolebindings"
_NAMESPACES = "/api/v1/namespaces"
_WRITERS = "policy-layers-writers"
_NEW = "layers-new"
_MERGE = "application/merge-patch+json"
_JSON = "application/json"
_TENANT = "Tenant"
# one rejected case of each policy
_PROBES = tuple({case.policy: case for case in reversed(CLUSTER_CASES) if case.denial}.values())
Outcome = tuple[int, str]
"""Status code and message; the message of an admitted write is empty."""


@dataclass(frozen=True, slots=True)
class StandIn:
    """The kind that is used instead of Tenants."""

    group: str
    version: str
    kind: str

    @property
    def plural(self) -> str:
        return f"{self.kind.lower()}s"


_STAND_IN = StandIn(STAND_IN_GROUP, "v1alpha1", _TENANT)


@contextmanager
def enforced_layers(cluster: E2eCluster) -> Iterator[PolicyLayers]:
    layers = PolicyLayers(cluster)
    try:
        layers.install()
        yield layers
    finally:
        layers.remove()


class PolicyLayers:
    """Creates the objects that the cases change before it installs the policies; the cases themselves are dry runs."""

    def __init__(self, cluster: E2eCluster) -> None:
        self._cluster = cluster
        self._client: Client = cluster.client()
        self._sender = ImpersonatingClient(self._client)
        self._prepared: dict[str, str] = {}
        self._created: list[str] = []
        self._are_enforced = False

    def install(self) -> None:
        self._serve_stand_in()
        for name, labels in NAMESPACES.items():
            self._create(_NAMESPACES, _namespace(name, {"metadata": {"labels": dict(labels)}}))
        self._allow_writers()
        for case in CLUSTER_CASES:
            if case.old is not None:
                self._prepare(case, case.old)
        for policy in POLICIES.values():
            self._create(POLICIES_PATH, self._for_stand_in(policy))
        for binding in BINDINGS.values():
            self._create(BINDINGS_PATH, binding)
        for case in _PROBES:
            self._cluster.wait_until(f"{case.policy} is enforced", partial(self._is_rejected, case))
        self._are_enforced = True

    def remove(self) -> None:
        """Deletes everything, policies first, so that none rejects a deletion, and none rejects a later test."""
        for path in reversed(self._created):
            if path.startswith((POLICIES_PATH, BINDINGS_PATH)):
                self._client.request("DELETE", path)
        for case in _PROBES if self._are_enforced else ():
            self._cluster.wait_until(f"{case.policy} is forgotten", partial(self._is_admitted, case))
        for path in reversed(self._created):
            self._client.request("DELETE", path)
        self._sender.close()

    def try_case(self, case: Case) -> Outcome:
        """Sends the case and returns the outcome."""
        name = self._name(case)
        path = f"{self._collection(case)}?dryRun=All"
        if case.old is not None:
            path = f"{self._collection(case)}/{name}{case.subresource and '/'}{case.subresource}?dryRun=All"
        method, content_type, body = "POST", _JSON, self._document(case, name, case.new)
        if case.subresource == "finalize":
            # this subresource supports PUT but not PATCH; without a version, a controller's write is no conflict
            live = self._client.get(f"{self._collection(case)}/{name}").expect(200)
            method, body = "PUT", merge_patch(merge_patch(live, case.new), {"metadata": {"resourceVersion": None}})
        elif case.old is not None:
            method, content_type, body = "PATCH", _MERGE, dict(case.new)
        groups = (*case.groups, _WRITERS)
        status, answer = self._sender.send(method, path, body, content_type=content_type, user=case.user, groups=groups)
        return status, "" if status < 400 else answer["message"]

    def expected_outcome(self, case: Case) -> Outcome:
        """The outcome that the table names."""
        group, _, plural = self._resource(case)
        message = cases.rejection_message(case, self._name(case), f"{plural}.{group}" if group else plural)
        return (403, message) if message else (201 if case.old is None else 200, "")

    def _is_rejected(self, case: Case) -> bool:
        return self.try_case(case)[0] == 403

    def _is_admitted(self, case: Case) -> bool:
        return self.try_case(case)[0] in (200, 201)

    def _name(self, case: Case) -> str:
        return _NEW if case.old is None else self._prepared[_key(case)]

    def _resource(self, case: Case) -> tuple[str, str, str]:
        """The group, version and plural of the resource."""
        if case.kind == _TENANT:
            return _STAND_IN.group, _STAND_IN.version, _STAND_IN.plural
        return case.group, case.version, case.plural

    def _collection(self, case: Case) -> str:
        group, version, plural = self._resource(case)
        root = f"/apis/{group}/{version}" if group else f"/api/{version}"
        return f"{root}/namespaces/{case.namespace}/{plural}" if case.namespace else f"{root}/{plural}"

    def _document(self, case: Case, name: str, content: Mapping[str, Any]) -> dict[str, Any]:
        group, version, _ = self._resource(case)
        kind = _STAND_IN.kind if case.kind == _TENANT else case.kind
        base = {"apiVersion": f"{group}/{version}" if group else version, "kind": kind, "metadata": {"name": name}}
        document: dict[str, Any] = merge_patch(base, content)
        return document

    def _prepare(self, case: Case, content: Mapping[str, Any]) -> None:
        key = _key(case)
        if key not in self._prepared:
            self._prepared[key] = name = f"layers-{len(self._prepared)}"
            self._create(self._collection(case), self._document(case, name, content))

    def _create(self, collection: str, document: Mapping[str, Any]) -> None:
        self._client.request("POST", collection, dict(document)).expect(201)
        self._created.append(f"{collection}/{document['metadata']['name']}")

    def _serve_stand_in(self) -> None:
        self._create(_CRDS, stand_in_crd())
        self._cluster.wait_until_served(f"/apis/{_STAND_IN.group}/{_STAND_IN.version}/{_STAND_IN.plural}")

    def _allow_writers(self) -> None:
        subject = {"apiGroup": RBAC, "kind": "Group", "name": _WRITERS}
        role = {"apiGroup": RBAC, "kind": "ClusterRole", "name": "cluster-admin"}
        binding = {"apiVersion": f"{RBAC}/v1", "kind": "ClusterRoleBinding", "metadata": {"name": _WRITERS}}
        self._create(_BINDINGS_OF_ROLES, {**binding, "roleRef": role, "subjects": [subject]})

    def _for_stand_in(self, policy: Mapping[str, Any]) -> dict[str, Any]:
        """The policy, with the stand-in kind if it is that of layer 3."""
        copy: dict[str, Any] = json.loads(json.dumps(policy))
        if policy["metadata"]["name"] == cases.TENANT_POLICY:
            [rule] = copy["spec"]["matchConstraints"]["resourceRules"]
            rule.update(apiGroups=[_STAND_IN.group], resources=[_STAND_IN.plural])
        return copy


def _namespace(name: str, content: Mapping[str, Any]) -> dict[str, Any]:
    base = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}
    document: dict[str, Any] = merge_patch(base, content)
    return document


def _key(case: Case) -> str:
    return f"{case.kind} {case.namespace} {json.dumps(case.old)}"
