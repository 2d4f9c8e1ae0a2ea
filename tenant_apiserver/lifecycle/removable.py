"""The objects that `uninstall` deletes: versions of this server wrote them, nobody else owns them. Pure."""

from __future__ import annotations

from typing import Final

from admission.tenant.claims.claim_lease import NAME as CLAIM_LEASE
from apiserver.meta.resource import Object
from controller.runtime.apply import FIELD_MANAGER
from registry.application.kept_forms import KEY as KEPT_FORMS_KEY
from registry.application.kept_forms import NAME as KEPT_FORMS
from registry.application.kept_forms import read_sources
from registry.cluster.interface import APISERVICES, CONFIGMAPS, LEASES, NAMESPACES, SECRETS, ClusterResource
from registry.tenant.cluster_roles import TENANT_ROLES
from tenant_apiserver.certificates.cluster_secret import SECRET_NAME
from tenant_apiserver.lifecycle.installed import NAMESPACE, SERVER, OperatorStep, applied, tenantsecrets_readable
from tenant_apiserver.lifecycle.kinds import (
    CRDS,
    INSTALLED_KINDS,
    PART_OF,
    PART_OF_LABEL,
    TargetObject,
    foreign_owner,
    target,
)
from tenant_apiserver.wiring.applications.forms_keeper import LEASE as FORMS_LEASE
from tenant_apiserver.wiring.controllers import LEASE

_CERTIFICATES, _ISSUERS = (
    ClusterResource("cert-manager.io", "v1", plural, kind)
    for plural, kind in (("certificates", "Certificate"), ("issuers", "Issuer"))
)
_SERVICE_MONITORS, _PROMETHEUS_RULES = (
    ClusterResource("monitoring.coreos.com", "v1", plural, kind)
    for plural, kind in (("servicemonitors", "ServiceMonitor"), ("prometheusrules", "PrometheusRule"))
)
_NEVER_DELETED = (APISERVICES, CRDS, NAMESPACES)
DELETED_KINDS: Final = (
    *(each for each in INSTALLED_KINDS.values() if each not in _NEVER_DELETED),
    _CERTIFICATES,
    _ISSUERS,
    _SERVICE_MONITORS,
    _PROMETHEUS_RULES,
)
"""APIServices are moved by `back`."""
_INGRESS_POLICY = "cozystack-ingress-hostname-policy"
_SETTINGS, _DASHBOARD = f"{SERVER}-platform", f"{SERVER}-dashboard"
_INSTALLED: Final = frozenset(
    {
        *(
            each
            for step in (OperatorStep.REPLACE, OperatorStep.REGISTER)
            for each in applied(step)
            # people are bound to these
            if each.resource not in _NEVER_DELETED and each.name not in TENANT_ROLES
        ),
        *tenantsecrets_readable(),
        target("NetworkPolicy", SERVER, NAMESPACE),
        target("ValidatingAdmissionPolicy", _INGRESS_POLICY),
        target("ValidatingAdmissionPolicyBinding", _INGRESS_POLICY),
        *(target("ConfigMap", each, NAMESPACE) for each in (_SETTINGS, _DASHBOARD)),
        *(target(kind, f"{SERVER}:metrics") for kind in ("ClusterRole", "ClusterRoleBinding")),
        *(TargetObject(each, NAMESPACE, SERVER) for each in (_SERVICE_MONITORS, _PROMETHEUS_RULES)),
        *(TargetObject(_CERTIFICATES, NAMESPACE, f"{SERVER}-{each}") for each in ("ca", "serving")),
        *(TargetObject(_ISSUERS, NAMESPACE, f"{SERVER}-{each}") for each in ("ca", "selfsigned")),
    }
)
_LIMITS_PREFIX = f"{SERVER}-limits-"
"""The policies of earlier versions are about other kinds, and have names that begin so, too."""
_SECRET = TargetObject(SECRETS, NAMESPACE, SECRET_NAME)
_KEPT_FORMS = TargetObject(CONFIGMAPS, NAMESPACE, KEPT_FORMS)
STORED: Final = (
    _SECRET,
    _KEPT_FORMS,
    *(TargetObject(LEASES, NAMESPACE, each) for each in (LEASE, FORMS_LEASE, CLAIM_LEASE)),
)
"""Objects that the running server has created, which have no label."""
_WRITERS = frozenset({SERVER, FIELD_MANAGER})
_SECRET_KEYS = frozenset({"ca.crt", "ca.key", "tls.crt", "tls.key"})


def reason_to_keep(where: TargetObject, obj: Object) -> str:
    """The reason why an object stays; empty if it is to be deleted."""
    if owner := foreign_owner(obj):
        return f"owned by {owner}"
    if where in STORED:
        return _reason_of_stored(where, obj)
    if (obj["metadata"].get("labels") or {}).get(PART_OF_LABEL) != PART_OF:
        return f"it has no label {PART_OF_LABEL}={PART_OF}"
    is_limit = where.resource.kind.startswith("ValidatingAdmissionPolicy") and where.name.startswith(_LIMITS_PREFIX)
    return "" if where in _INSTALLED or is_limit else "no version of this server installs it"


def _reason_of_stored(where: TargetObject, obj: Object) -> str:
    managers = {each.get("manager") for each in obj["metadata"].get("managedFields") or ()}
    is_untracked = where == _KEPT_FORMS and not managers and _has_only_forms(obj)
    if _WRITERS.isdisjoint(managers) and not is_untracked:
        return "no server of ours has written it"
    others = (obj.get("data") or {}).keys() - _SECRET_KEYS if where == _SECRET else ()
    return f"it has other keys, too: {', '.join(sorted(others))}" if others else ""


def _has_only_forms(configmap: Object) -> bool:
    """True if each key is a form of ours, or there is none.

    Kubernetes forgets the field manager of a ConfigMap whose last key goes, and does not record that of later updates.
    """
    forms = {name for name, _ in read_sources(configmap)}
    return not configmap.get("data") and forms == (configmap.get(KEPT_FORMS_KEY) or {}).keys()
