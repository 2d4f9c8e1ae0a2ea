"""Creates the objects that a cluster has from its first start: system Namespaces, default RBAC roles and trusted CAs.

It runs at every start. Later runs only add rules that are missing from system roles, and update the CAs.
"""

from __future__ import annotations

from collections.abc import Mapping

from apiserver.meta.resource import Key, Object
from registry.embedded.auth import bootstrap_roles
from registry.embedded.auth.rbac_authorizer import CLUSTERROLEBINDINGS, CLUSTERROLES, ROLES
from registry.embedded.kinds.core import NAMESPACE
from registry.embedded.storage.strategies import KindStrategy
from registry.rbac.escalation import uncovered
from registry.rbac.role_index import parse_rules, to_policy_rule
from registry.sqlite.backend import NAMESPACES, SqliteBackend

SYSTEM_NAMESPACES = (
    "default",
    "kube-system",
    "kube-public",
    "cozy-system",
    "cozy-cert-manager",
    "cozy-fluxcd",
)
_CONFIGMAPS = "configmaps"


async def bootstrap(backends: Mapping[str, SqliteBackend], *, authentication: Mapping[str, str]) -> None:
    """`authentication` is the data of the ConfigMap extension-apiserver-authentication: the CAs of client certificates
    and of the front proxy."""
    for name in SYSTEM_NAMESPACES:
        await _get_or_create(backends[NAMESPACES], _namespace(name))
    for document in bootstrap_roles.cluster_roles():
        await _ensure_role(backends[CLUSTERROLES], document)
    for document in bootstrap_roles.roles():
        await _ensure_role(backends[ROLES], document)
    for document in bootstrap_roles.cluster_role_bindings():
        await _get_or_create(backends[CLUSTERROLEBINDINGS], document)
    await _ensure_authentication_configmap(backends[_CONFIGMAPS], authentication)


def _namespace(name: str) -> Object:
    document: Object = {"metadata": {"name": name}}
    KindStrategy(NAMESPACE, NAMESPACE.resources()[0]).prepare_for_create(document)
    return document


async def _get_or_create(backend: SqliteBackend, document: Object) -> Object | None:
    """Returns the existing object. Creates it and returns None if it does not exist."""
    key = Key(document["metadata"].get("namespace", ""), document["metadata"]["name"])
    existing = await backend.read(key, live=True)
    if existing is None:
        await backend.create(document, dry_run=False)
    return existing


async def _ensure_role(backend: SqliteBackend, document: Object) -> None:
    existing = await _get_or_create(backend, document)
    annotations = existing["metadata"].get("annotations") or {} if existing is not None else {}
    if existing is None or "aggregationRule" in document or annotations.get(bootstrap_roles.AUTOUPDATE) != "true":
        return
    missing = uncovered(parse_rules(existing.get("rules")), parse_rules(document["rules"]))
    if missing:
        rules = [*(existing.get("rules") or ()), *(to_policy_rule(rule) for rule in missing)]
        await backend.update(_key(existing), {**existing, "rules": rules}, existing, dry_run=False)


async def _ensure_authentication_configmap(backend: SqliteBackend, data: Mapping[str, str]) -> None:
    metadata = {"name": bootstrap_roles.AUTHENTICATION_CONFIGMAP, "namespace": "kube-system"}
    existing = await _get_or_create(backend, {"metadata": metadata, "data": dict(data)})
    if existing is not None and existing.get("data") != data:
        await backend.update(_key(existing), {**existing, "data": dict(data)}, existing, dry_run=False)


def _key(obj: Object) -> Key:
    return Key(obj["metadata"].get("namespace", ""), obj["metadata"]["name"])
