"""Namespaces, and what is in those of tenants."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from typing import Any

from apiserver.meta.resource import Object
from controller.tenant.isolation.policy_kinds import CILIUM_NAMES, PLAIN_NAMES
from tests.policies.account.case import (
    CILIUM_POLICIES,
    CONFIGMAPS,
    HOME,
    LIMITRANGES,
    NAMESPACE_KIND,
    NETWORKPOLICIES,
    OTHER,
    RESOURCEQUOTAS,
    SECRETS,
    SERVICEACCOUNTS,
    TENANT,
    TENANTGATEWAYS,
    AccountCase,
    Kind,
    case,
)

_TOKEN = {
    "type": "kubernetes.io/service-account-token",
    "metadata": {"annotations": {"kubernetes.io/service-account.name": "cluster-admin"}},
}
_OPAQUE = {"type": "Opaque", "data": {"values.yaml": ""}}


def _metadata(**fields: Any) -> Object:
    return {"metadata": fields}


def namespaces() -> Iterator[AccountCase]:
    def create(id: str, name: str, new: Object, refusal: str = "") -> AccountCase:
        return case(NAMESPACE_KIND, id, "", name, new=new, refusal=refusal)

    def change(id: str, name: str, old: Object, new: Object, refusal: str = "") -> AccountCase:
        return case(NAMESPACE_KIND, id, "", name, old=old, new=new, refusal=refusal)

    place = "may write namespaces only so: tenant-*; others may only be updated"
    label, annotation = "only the label namespace.cozystack.io/gateway", "only the annotation cozystack.io/gateway"
    ours = {
        "tenant.cozystack.io/tenant-root": "",
        "namespace.cozystack.io/host": "a.example.org",
        "scheduler.cozystack.io/scheduling-class": "fast",
        "platform.cozystack.io/no-delete": "true",
        "app.kubernetes.io/managed-by": "tenant-controller",
    }
    record = {"apps.cozystack.io/tenant": "tenant-root/a", "meta.helm.sh/release-name": "tenant-a"}
    yield create("of a tenant", "tenant-new", _metadata(labels=ours, annotations=record))
    yield create("elsewhere", "limits-new", {}, place)
    yield create("named like a tenant", "my-tenant-a", {}, place)
    yield create(
        "privileged", "tenant-new", _metadata(labels={"pod-security.kubernetes.io/enforce": "privileged"}), label
    )
    yield create("with a foreign annotation", "tenant-new", _metadata(annotations={"x": "y"}), annotation)
    yield create("for a system component", "kube-new", _metadata(labels=ours), place)
    yield case(NAMESPACE_KIND, "deleted, of a tenant", "", "tenant-gone", old={})
    yield case(NAMESPACE_KIND, "deleted, elsewhere", "", "limits-gone", old={}, refusal=place)
    privileged = _metadata(labels={"pod-security.kubernetes.io/enforce": "privileged"})
    restricted = _metadata(labels={"pod-security.kubernetes.io/enforce": "restricted"})
    other_label = _metadata(labels={"pod-security.kubernetes.io/enforce": "restricted", **ours})
    yield change("labelled, of a tenant", "tenant-changed", restricted, other_label)
    yield change("unprotected", "tenant-changed", restricted, privileged, label)
    yield change("a label removed", "tenant-changed", restricted, {}, label)
    system = _metadata(labels={"cozystack.io/system": "true"})
    yield change("the platform's label removed", "tenant-changed", system, {})
    yield change("the platform's label set", "tenant-changed", {}, system, label)
    yield change("our label removed", "tenant-changed", _metadata(labels=ours), {})
    yield change("annotated, of a tenant", "tenant-changed", {}, _metadata(annotations=record))
    yield change("a foreign annotation removed", "tenant-changed", _metadata(annotations={"x": "y"}), {}, annotation)
    altered = {**record, "apps.cozystack.io/tenant": "tenant-root/b"}
    yield change(
        "an annotation changed", "tenant-changed", _metadata(annotations=record), _metadata(annotations=altered)
    )
    foreign = _metadata(annotations={"x": "z"})
    yield change(
        "a foreign annotation changed", "tenant-changed", _metadata(annotations={"x": "y"}), foreign, annotation
    )
    attached = _metadata(
        labels={"namespace.cozystack.io/gateway": TENANT}, annotations={"cozystack.io/gateway-attached-by": TENANT}
    )
    yield change("attached, elsewhere", "limits-changed", {}, attached)
    yield change("detached, elsewhere", "limits-changed", attached, {})
    yield change("our label elsewhere", "limits-changed", {}, _metadata(labels=ours), label)
    yield change("our annotation elsewhere", "limits-changed", {}, _metadata(annotations=record), annotation)
    owner = [
        {"apiVersion": "v1", "kind": "Namespace", "name": "tenant-root", "uid": "00000000-0000-0000-0000-000000000000"}
    ]
    owned, finalized = _metadata(ownerReferences=owner), _metadata(finalizers=["example.org/limits"])
    rest = "owners and finalizers change only in the Namespaces of tenants"
    yield change("owned, of a tenant", "tenant-changed", {}, owned)
    yield change("owned, elsewhere", "limits-changed", {}, owned, rest)
    yield change("finalizer, elsewhere", "limits-changed", {}, finalized, rest)


def secrets() -> Iterator[AccountCase]:
    values, serving = "cozystack-values", "tenant-apiserver-serving-cert"
    certificate = {"type": "kubernetes.io/tls", "data": {"tls.crt": "", "tls.key": ""}}
    place = (
        "may write secrets only so: cozystack-values in namespaces tenant-*, or "
        f"{serving} in the account's own namespace, or those with the label internal.cozystack.io/tenantresource in"
    )
    yield case(SECRETS, "values", TENANT, values, new=_OPAQUE)
    yield case(SECRETS, "a token in kube-system", "kube-system", values, new=_TOKEN, refusal=place)
    yield case(SECRETS, "values elsewhere", OTHER, values, new=_OPAQUE, refusal=place)
    yield case(SECRETS, "of a tenant, another name", TENANT, "other", new=_OPAQUE, refusal=place)
    yield case(SECRETS, "a token", TENANT, values, new=_TOKEN, refusal="this Secret has type Opaque")
    yield case(SECRETS, "values changed", TENANT, values, old=_OPAQUE, new={**_OPAQUE, "data": {"values.yaml": "eA=="}})
    yield case(SECRETS, "values deleted", TENANT, values, old=_OPAQUE)
    yield case(SECRETS, "another type deleted", TENANT, values, old=certificate)
    yield case(SECRETS, "deleted elsewhere", OTHER, values, old=_OPAQUE, refusal=place)
    yield case(
        SECRETS, "a certificate for values", TENANT, values, new=certificate, refusal="this Secret has type Opaque"
    )
    yield case(SECRETS, "serving certificate", HOME, serving, new=certificate)
    yield case(SECRETS, "serving certificate elsewhere", TENANT, serving, new=certificate, refusal=place)
    yield case(SECRETS, "a token at home", HOME, serving, new=_TOKEN, refusal="this Secret has type kubernetes.io/tls")
    yield case(SECRETS, "another name at home", HOME, "limits", new=certificate, refusal=place)


def configmaps() -> Iterator[AccountCase]:
    name, content = "tenant-apiserver-application-kinds", {"binaryData": {"redis": "eA=="}}
    refusal = f"may write configmaps only so: {name} in the account's own namespace"
    yield case(CONFIGMAPS, "of the kinds", HOME, name, new=content)
    yield case(CONFIGMAPS, "of the kinds, changed", HOME, name, old=content, new={"binaryData": {}})
    yield case(CONFIGMAPS, "of another component", HOME, "other", new=content, refusal=refusal)
    yield case(CONFIGMAPS, "of another component, changed", HOME, "other", old=content, new={}, refusal=refusal)
    yield case(CONFIGMAPS, "of another component, deleted", HOME, "other", old=content, refusal=refusal)
    yield case(CONFIGMAPS, "of a tenant", TENANT, name, new=content, refusal=refusal)


def tenant_secrets() -> Iterator[AccountCase]:
    """Secrets that are shown as TenantSecrets."""
    label = {"internal.cozystack.io/tenantresource": "true"}
    place = "or those with the label internal.cozystack.io/tenantresource in namespaces tenant-*"

    def secret(type_: str = "Opaque", **labels: str) -> Object:
        return {"type": type_, **_metadata(labels=labels)}

    own, changed = secret(**label), {**secret(**label), "data": {"a": "eA=="}}
    yield case(SECRETS, "labelled", TENANT, "shown", new=own)
    yield case(SECRETS, "labelled, changed", TENANT, "shown", old=own, new=changed)
    yield case(SECRETS, "labelled, deleted", TENANT, "shown", old=own)
    yield case(SECRETS, "labelled elsewhere", OTHER, "shown", new=own, refusal=place)
    yield case(SECRETS, "labelled otherwise", TENANT, "shown", new=secret(**dict.fromkeys(label, "no")), refusal=place)
    yield case(SECRETS, "adopted", TENANT, "shown", old=secret(), new=own, refusal=place)
    yield case(SECRETS, "not labelled, deleted", TENANT, "shown", old=secret(), refusal=place)
    yield case(SECRETS, "label taken away", TENANT, "shown", old=own, new=secret(), refusal="keeps it")
    yield case(SECRETS, "labelled values", TENANT, "cozystack-values", new=own)
    yield case(SECRETS, "labelled history of Helm", TENANT, "sh.helm.release.v1.a.v1", new=own, refusal=place)
    acted_upon = "no type that the cluster acts upon"
    token = {**_TOKEN, "metadata": {**_TOKEN["metadata"], "labels": label}}  # type: ignore[dict-item]
    yield case(SECRETS, "labelled token", TENANT, "shown", new=token, refusal=acted_upon)
    for type_ in ("bootstrap.kubernetes.io/token", "helm.sh/release.v1"):
        yield case(SECRETS, f"labelled {type_}", TENANT, "shown", new=secret(type_, **label), refusal=acted_upon)


def named_contents() -> Iterator[AccountCase]:
    range_spec = {"spec": {"limits": [{"type": "Container", "default": {"cpu": "1"}}]}}
    gateway = {"spec": {"apex": "a.example.org"}}
    part = {"spec": {"hard": {"pods": "1"}}}
    yield case(RESOURCEQUOTAS, "a part of a pool", TENANT, "tenant-pool", new=part)
    yield case(RESOURCEQUOTAS, "the witness of a part", TENANT, "tenant-pool-witness", new=part)
    for kind, name, content in (
        (RESOURCEQUOTAS, "tenant-quota", {"spec": {"hard": {"cpu": "1"}}}),
        (LIMITRANGES, "tenant-range-limits", range_spec),
        (TENANTGATEWAYS, "cozystack", gateway),
    ):
        names = "tenant-quota or tenant-pool or tenant-pool-witness" if kind is RESOURCEQUOTAS else name
        refusal = f"may write {kind.plural} only so: {names} in namespaces tenant-*"
        yield case(kind, "of a tenant", TENANT, name, new=content)
        yield case(kind, "another name", TENANT, "other", new=content, refusal=refusal)
        yield case(kind, "elsewhere", OTHER, name, new=content, refusal=refusal)
        # a real TenantGateway would be reconciled
        fields = {"old": content, "refusal": refusal, "in_process": kind is TENANTGATEWAYS}
        yield case(kind, "deleted elsewhere", OTHER, name, **fields)


def network_policies() -> Iterator[AccountCase]:
    kinds: Sequence[tuple[Kind, Object, Collection[str]]] = (
        (NETWORKPOLICIES, {"podSelector": {}}, PLAIN_NAMES),
        (CILIUM_POLICIES, {"endpointSelector": {}}, CILIUM_NAMES),
    )
    for kind, spec, names in kinds:
        place = f"may write {kind.plural} only so: tenant-apiserver or tenant-ingress"
        content: Object = {"spec": spec}
        # few clusters serve Cilium's kinds
        in_process = {"in_process": kind is CILIUM_POLICIES}
        for name in sorted(names):
            yield case(kind, name, TENANT, name, new=content, **in_process)
        yield case(kind, "another name", TENANT, "other", new=content, refusal=place, **in_process)
        yield case(kind, "elsewhere", OTHER, "tenant-isolation", new=content, refusal=place, **in_process)
        yield case(kind, "deleted, of a tenant", TENANT, "tenant-to-etcd", old=content, **in_process)
        yield case(kind, "deleted, a user's", TENANT, "other", old=content, refusal=place, **in_process)


def security_groups() -> Iterator[AccountCase]:
    """Policies that are shown as SecurityGroups. Few clusters serve them."""
    label = {"sdn.cozystack.io/securitygroup": "true"}
    place, rule = "or those with the label sdn.cozystack.io/securitygroup in", "selects the members of its group"

    def policy(member: str = "web", **labels: str) -> Object:
        selector = {"matchLabels": {f"securitygroup.sdn.cozystack.io/{member}": ""}}
        return {**_metadata(labels=labels), "spec": {"endpointSelector": selector, "ingress": []}}

    def group(id: str, *, namespace: str = TENANT, **fields: Any) -> AccountCase:
        return case(CILIUM_POLICIES, id, namespace, "web", in_process=True, **fields)

    own = policy(**label)
    yield group("of a group", new=own)
    yield group("of a group, changed", old=own, new={**own, "spec": {**own["spec"], "egress": []}})
    yield group("of a group, deleted", old=own)
    yield group("of a group, elsewhere", namespace=OTHER, new=own, refusal=place)
    yield group("of a group, with the members of another", new=policy("db", **label), refusal=rule)
    yield group("of a group, for all Pods", old=own, new={**own, "spec": {"endpointSelector": {}}}, refusal=rule)
    yield group("a user's, adopted", old=policy(), new=own, refusal=place)
    yield group("of a group, label taken away", old=own, new=policy(), refusal=rule)


def service_accounts() -> Iterator[AccountCase]:
    place = "may write serviceaccounts only so: the one with the name of its namespace, in namespaces tenant-*"
    annotation = "only annotations below meta.helm.sh/ may change"
    role = _metadata(annotations={"eks.amazonaws.com/role-arn": "arn"})
    helm = _metadata(annotations={"meta.helm.sh/release-name": "tenant-limits"}, labels={"x": "y"})
    yield case(SERVICEACCOUNTS, "of a tenant", TENANT, TENANT, new={})
    yield case(
        SERVICEACCOUNTS,
        "handed to Helm",
        TENANT,
        TENANT,
        old=role,
        new={"metadata": {"annotations": {**role["metadata"]["annotations"], **helm["metadata"]["annotations"]}}},
    )
    yield case(SERVICEACCOUNTS, "another name", TENANT, "other", new={}, refusal=place)
    yield case(SERVICEACCOUNTS, "elsewhere", OTHER, OTHER, new={}, refusal=place)
    yield case(SERVICEACCOUNTS, "deleted elsewhere", OTHER, OTHER, old={}, refusal=place)
    yield case(SERVICEACCOUNTS, "with rights in a cloud", TENANT, TENANT, new=role, refusal=annotation)
    other_role = _metadata(annotations={"eks.amazonaws.com/role-arn": "other"})
    yield case(SERVICEACCOUNTS, "other rights in a cloud", TENANT, TENANT, old=role, new=other_role, refusal=annotation)
    yield case(SERVICEACCOUNTS, "rights in a cloud removed", TENANT, TENANT, old=role, new={}, refusal=annotation)
