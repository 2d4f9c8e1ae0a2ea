"""A matrix of connections in the tree of seed 001: who must reach whom, and who must not."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from apiserver.meta.resource import Object
from tests.controller.tenant.isolation import policy_model as model
from tests.controller.tenant.isolation.policy_model import End, may_connect
from tests.controller.tenant.isolation.tenant_forest import (
    ETCD,
    INGRESS,
    TO_API_SERVER,
    TO_ETCD,
    VMINSERT,
    Forest,
    from_namespace,
)
from tests.tenant_objects import root_summary, tenant_summary


@dataclass(frozen=True)
class Cell:
    """One connection, and whether it must be possible."""

    name: str
    sender: End
    receiver: End
    allowed: bool
    port: int = 0

    @property
    def judged_port(self) -> int:
        return self.port or (6443 if isinstance(self.receiver, model.Outside) else 8443)

    def judge(self, policies: Sequence[Object]) -> bool:
        return may_connect(policies, self.sender, self.receiver, port=self.judged_port)


# seed 001's tenants, a sibling of each, and a third level
SEED = Forest.of(
    [
        root_summary(),
        tenant_summary("foo", spec={"etcd": True, "monitoring": True, "ingress": True}),
        tenant_summary("bar", "tenant-foo", spec={"etcd": True}),
        tenant_summary("baz", "tenant-foo-bar"),
        tenant_summary("qux", "tenant-foo"),
        tenant_summary("other"),
    ]
)
ROOT, FOO, BAR, BAZ, QUX, OTHER = (
    SEED.pod(each)
    for each in ("tenant-root", "tenant-foo", "tenant-foo-bar", "tenant-foo-bar-baz", "tenant-foo-qux", "tenant-other")
)
SYSTEM = from_namespace("cozy-system", namespace_labels={"cozystack.io/system": "true"})
DASHBOARD = from_namespace("cozy-dashboard")
KUBE_DNS = from_namespace("kube-system", {"k8s-app": "kube-dns"})
DEFAULT = from_namespace("default")
VIRT_HANDLER = from_namespace("cozy-kubevirt", {"kubevirt.io": "virt-handler"})


def of(pod: model.Pod, labels: Mapping[str, str]) -> model.Pod:
    return SEED.pod(pod.namespace, labels)


def on_host(pod: model.Pod) -> model.Pod:
    return replace(pod, on_host_network=True)


# each holds in both forms
CELLS: Sequence[Cell] = [
    Cell("own pods", BAR, BAR, True),
    Cell("sibling", BAR, QUX, False),
    Cell("sibling, the other way", QUX, BAR, False),
    Cell("cousin", BAZ, QUX, False),
    Cell("another tree", OTHER, FOO, False),
    Cell("another tree, the other way", FOO, OTHER, False),
    Cell("parent to child", FOO, BAR, True),
    Cell("grandparent", FOO, BAZ, True),
    Cell("root to all", ROOT, BAZ, True),
    Cell("child to parent", BAR, FOO, False),
    Cell("child to the parent's ingress", BAR, of(FOO, INGRESS), True),
    Cell("child to the parent's vminsert", BAR, of(FOO, VMINSERT), True),
    Cell("grandchild to the root's ingress", BAZ, of(ROOT, INGRESS), True),
    Cell("the root's vminsert has no metrics of foo's heirs", BAZ, of(ROOT, VMINSERT), False),
    Cell("the root's vminsert of its own heir", OTHER, of(ROOT, VMINSERT), True),
    Cell("a sibling's ingress", QUX, of(BAR, INGRESS), False),
    Cell("own etcd without the label", BAR, of(BAR, ETCD), False),
    Cell("own etcd with the label", of(BAR, TO_ETCD), of(BAR, ETCD), True),
    Cell("etcd to etcd", of(BAR, ETCD), of(BAR, ETCD), True),
    Cell("the parent's etcd from an heir with the label", of(QUX, TO_ETCD), of(FOO, ETCD), True),
    Cell("the parent's etcd without the label", QUX, of(FOO, ETCD), False),
    Cell("the parent's etcd from one that has its own", of(BAR, TO_ETCD), of(FOO, ETCD), False),
    Cell("the etcd of the tenant above from the third level", of(BAZ, TO_ETCD), of(BAR, ETCD), True),
    Cell("a sibling's etcd with the label", of(QUX, TO_ETCD), of(BAR, ETCD), False),
    Cell("the child's etcd from the parent", of(FOO, TO_ETCD), of(BAR, ETCD), False),
    Cell("a service's own etcd from the root's tree", of(OTHER, TO_ETCD), of(ROOT, ETCD), True),
    Cell("the world to pods", model.WORLD, BAR, True),
    Cell("pods to the world", BAR, model.WORLD, True),
    Cell("a node to pods", model.HOST, BAR, True),
    Cell("another node to pods", model.REMOTE_NODE, BAR, True),
    Cell("a Gateway to pods", model.GATEWAY, BAR, True),
    Cell("a node to etcd", model.HOST, of(BAR, ETCD), True),
    Cell("the world to etcd", model.WORLD, of(BAR, ETCD), False),
    Cell("the API server to pods", model.API_SERVER, BAR, True),
    Cell("pods to the API server", BAR, model.API_SERVER, False),
    Cell("labelled pods to the API server", of(BAR, TO_API_SERVER), model.API_SERVER, True),
    Cell("pods to an API server outside of the cluster", BAR, model.EXTERNAL_API_SERVER, False),
    Cell("labelled pods to it", of(BAR, TO_API_SERVER), model.EXTERNAL_API_SERVER, True),
    Cell(
        "a value of the label other than true",
        of(BAR, {**TO_API_SERVER, next(iter(TO_API_SERVER)): "yes"}),
        model.API_SERVER,
        False,
    ),
    Cell("pods to nodes", BAR, model.HOST, False),
    Cell("a Pod on the network of its node, to a sibling", on_host(QUX), BAR, True),
    Cell("a Pod on the network of its node, to a sibling's etcd", on_host(QUX), of(BAR, ETCD), True),
    Cell("to a sibling's Pod on the network of its node", BAR, on_host(QUX), False),
    Cell("to an own Pod on the network of its node", BAR, on_host(BAR), False),
    Cell("the platform to pods", SYSTEM, BAR, True),
    Cell("the platform to etcd", SYSTEM, of(BAR, ETCD), True),
    Cell("pods to the platform", BAR, SYSTEM, False),
    Cell("pods to the dashboard", BAR, DASHBOARD, True),
    Cell("kube-system to pods", KUBE_DNS, BAR, True),
    Cell("pods to DNS", BAR, KUBE_DNS, True),
    Cell("default to pods", DEFAULT, BAR, False),
    Cell("default to the ingress", DEFAULT, of(FOO, INGRESS), True),
    Cell("pods to default", BAR, DEFAULT, False),
    Cell("port 6443 of a sibling, with the label of the API server", of(QUX, TO_API_SERVER), BAR, False, port=6443),
    Cell("vmagent of a tenant with monitoring", of(FOO, {"app.kubernetes.io/name": "vmagent"}), VIRT_HANDLER, True),
    Cell("vmagent of another tenant", of(BAR, {"app.kubernetes.io/name": "vmagent"}), VIRT_HANDLER, False),
]
