"""The network policies that Cozystack's chart apps/tenant renders for one tenant, from the facts of its templates.

The chart takes ancestors from the name of the parent's Namespace, split at `-`; so the root is missing below the first
level.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from apiserver.meta.resource import Object
from tests.controller.tenant.isolation.tenant_forest import ETCD, INGRESS, TO_API_SERVER, TO_ETCD, VMINSERT, Forest

_NAMESPACE = "k8s:io.kubernetes.pod.namespace"
_NAMESPACE_LABEL = "k8s:io.cilium.k8s.namespace.labels."
_INTERFACES = {
    "dashboard": "cozy-dashboard",
    "linstor-gui": "cozy-linstor",
    "keycloak": "cozy-keycloak",
    "grafana-dashboards": "cozy-grafana-operator",
    "cdi-upload-proxy": "cozy-kubevirt-cdi",
}


def chart_policies(forest: Forest) -> Sequence[Object]:
    return [policy for tenant in forest.tenants for policy in _policies(forest, tenant.namespace)]


def ancestors_by_name(namespace: str, parent: str) -> Sequence[str]:
    """Every prefix of the parent's name: tenant-a-b has tenant-a, and no root."""
    parts = parent.split("-")
    prefixes = ["-".join(parts[:count]) for count in range(2, len(parts) + 1)]
    return [each for each in prefixes if each != namespace]


def _policies(forest: Forest, namespace: str) -> Iterator[Object]:
    tenant = forest.tenant(namespace)
    flags = {"etcd", "ingress", "monitoring"} if tenant.is_root else tenant.flags
    ancestors = [] if tenant.is_root else ancestors_by_name(namespace, tenant.key.namespace)
    yield _local(namespace, "allow-internal-communication", ingress=[_from({})], egress=[_to({})])
    entities = [{"fromEntities": ["world", "cluster"]}]
    yield _local(namespace, "allow-external-communication", ingress=entities, egress=[{"toEntities": ["world"]}])
    yield _local(namespace, "allow-to-dns", egress=[_to(_labels({_NAMESPACE: "kube-system", "k8s-app": "kube-dns"}))])
    for name, target in _INTERFACES.items():
        yield _local(namespace, f"allow-to-{name}", egress=[_to(_labels({_NAMESPACE: target}))])
    yield _local(namespace, "allow-to-ingress", egress=[_to(_labels(INGRESS))])
    api_server: list[Object] = [
        {"toEntities": ["kube-apiserver"]},
        {"toPorts": [{"ports": [{"port": "6443", "protocol": "TCP"}]}]},
    ]
    yield _local(namespace, "allow-to-apiserver", selector=_labels(TO_API_SERVER), egress=api_server)
    yield _wide(f"{namespace}-egress", _labels({_NAMESPACE: namespace}), egress=_egress(namespace, ancestors))
    yield _wide(f"{namespace}-ingress", _labels({_NAMESPACE: namespace}), ingress=_ingress(ancestors))
    if "ingress" in flags:
        everyone = _exists(_NAMESPACE)
        selected = _labels({_NAMESPACE: namespace, **INGRESS})
        yield _wide(f"{namespace}-ingress-ingress", selected, ingress=[_from(everyone)])
    if "etcd" in flags:
        heirs = _labels({f"{_NAMESPACE_LABEL}namespace.cozystack.io/etcd": namespace, **TO_ETCD})
        yield _wide(f"{namespace}-ingress-etcd", _labels({_NAMESPACE: namespace, **ETCD}), ingress=[_from(heirs)])
    if "monitoring" in flags:
        selected = _labels({_NAMESPACE: namespace, "app.kubernetes.io/name": "vmagent"})
        handler = _to(_labels({_NAMESPACE: "cozy-kubevirt", "kubevirt.io": "virt-handler"}))
        ports = [{"ports": [{"port": "8443", "protocol": "TCP"}]}]
        yield _wide(f"{namespace}-egress-virt-handler", selected, egress=[{**handler, "toPorts": ports}])


def _egress(namespace: str, ancestors: Sequence[str]) -> Sequence[Object]:
    below = _exists(f"{_NAMESPACE_LABEL}tenant.cozystack.io/{namespace}")
    services = [{**VMINSERT}, {"app.kubernetes.io/instance": "etcd"}, {**INGRESS}]
    above = [_labels({_NAMESPACE: each, **service}) for each in ancestors for service in services]
    return [_to(below, *above)]


def _ingress(ancestors: Sequence[str]) -> Sequence[Object]:
    system = _labels({f"{_NAMESPACE_LABEL}cozystack.io/system": "true"})
    namespaces = [_labels({_NAMESPACE: each}) for each in ("kube-system", *ancestors)]
    return [{"fromEntities": ["kube-apiserver"]}, _from(system, *namespaces)]


def _local(
    namespace: str,
    name: str,
    *,
    selector: Object | None = None,
    ingress: Sequence[Object] = (),
    egress: Sequence[Object] = (),
) -> Object:
    spec = {"endpointSelector": selector or {}, "ingress": ingress, "egress": egress}
    metadata = {"name": name, "namespace": namespace}
    return {"kind": "CiliumNetworkPolicy", "metadata": metadata, "spec": spec}


def _wide(name: str, selector: Object, *, ingress: Sequence[Object] = (), egress: Sequence[Object] = ()) -> Object:
    spec = {"endpointSelector": selector, "ingress": ingress, "egress": egress}
    return {"kind": "CiliumClusterwideNetworkPolicy", "metadata": {"name": name}, "spec": spec}


def _labels(labels: Mapping[str, str]) -> Object:
    return {"matchLabels": dict(labels)}


def _exists(key: str) -> Object:
    return {"matchExpressions": [{"key": key, "operator": "Exists"}]}


def _from(*endpoints: Object) -> Object:
    return {"fromEndpoints": list(endpoints)}


def _to(*endpoints: Object) -> Object:
    return {"toEndpoints": list(endpoints)}
