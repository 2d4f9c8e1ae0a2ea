"""The objects that stay when the server has been removed, and how to remove them if that is really meant. Pure."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Final

from registry.securitygroup.convert import GROUP_SELECTOR
from registry.tenant.cluster_roles import TENANT_LISTS, TENANT_ROLES, TENANT_ROUTES
from registry.tenantsecret.convert import SECRET_SELECTOR
from tenant_apiserver.least_privilege.proxy_rights import PROXY_ROLES
from tenant_apiserver.lifecycle.installed import NAMESPACE
from tenant_apiserver.lifecycle.kinds import TargetObject, target
from tenant_apiserver.lifecycle.wording import counted

GATEWAY_CRD = "tenantgateways.gateway.cozystack.io"
_PROXY_FOLDERS = tuple(each.file.rpartition("/")[0] for each in reversed(PROXY_ROLES))
_NO_FINALIZERS = '{"metadata":{"finalizers":null}}'
_GIVE_UP = f"      kubectl patch helmreleases -n <namespace> <name> --type=merge -p '{_NO_FINALIZERS}'"


_COUNTED = {
    "HelmRelease": (
        "of tenants and applications, with all stored values",
        "kubectl delete helmreleases -n tenant-root <name>: Flux uninstalls the chart",
    ),
    "Namespace": (
        "of tenants, with all contents",
        "kubectl delete namespace <name>: deletes everything in it, volumes too",
    ),
    "Gateway": (
        "made for tenants",
        "kubectl delete tenantgateways -A --all: takes all hostnames and certificates of tenants away",
    ),
    "CiliumNetworkPolicy": (
        "of SecurityGroups, whichever server was the writer",
        f"kubectl delete ciliumnetworkpolicies -n <namespace> -l {GROUP_SELECTOR}: no Pod has their rules",
    ),
    "Secret": (
        "shown as TenantSecrets, whoever was the writer",
        f"kubectl delete secrets -n <namespace> -l {SECRET_SELECTOR}: deletes passwords of applications, too",
    ),
}
"""The objects that are counted, by kind, and the command that removes them with its effect."""
_PLURALS = {"CiliumNetworkPolicy": "CiliumNetworkPolicies"}
_NAMESPACE = target("Namespace", NAMESPACE)
_CRD = target("CustomResourceDefinition", GATEWAY_CRD)
_ROLES = tuple(target("ClusterRole", name) for name in (*TENANT_ROLES, TENANT_ROUTES))
_WITHOUT_LABEL = {
    "components/deletion-guard": (
        "ValidatingAdmissionPolicy",
        "cozystack-helmrelease-deletion-policy",
        "which refuses to delete HelmReleases of tenants",
    ),
    "overlays/cozy-tenant-lists": (
        "ClusterRole",
        TENANT_LISTS,
        "by which cozystack-api shows the objects of all tenants to everybody",
    ),
}
"""Objects, each with a binding of its name, that only their folder of the manifests tells from those of others: kind,
name and effect."""
_WITH_BINDINGS = tuple(
    target(each, name) for kind, name, _ in _WITHOUT_LABEL.values() for each in (kind, f"{kind}Binding")
)
NAMED: Final = (_CRD, _NAMESPACE, *_ROLES, *_WITH_BINDINGS)
"""Objects that an installation brings and that others may use, so that `uninstall` leaves them."""


def remainder(
    counts: Mapping[str, int | None],
    held: Sequence[str],
    *,
    found: Collection[TargetObject],
    unreadable: Mapping[TargetObject, str],
) -> Sequence[str]:
    """Lines for the operator, about what is there. `counts` are of objects by kind, None if they may not be listed;
    `held` are HelmReleases `namespace/name` that are being deleted and that only our controllers would finish. `found`
    are those of NAMED that exist, and `unreadable` has the reason for those that cannot be read."""
    lines = []
    for kind, (what, command) in _COUNTED.items():
        if counts[kind] != 0:
            number = counted(counts[kind], kind, _PLURALS.get(kind, ""))
            lines += [f"  {number} {what}", f"      {command}"]
    shared = [str(each) for each in NAMED if each in found and each in (_CRD, _NAMESPACE)]
    if shared:
        lines.append(f"  {' and '.join(shared)}, which Cozystack has, too")
    if _CRD in found:
        lines.append(f"      kubectl delete crd {GATEWAY_CRD}: deletes every TenantGateway and its Gateway")
    if roles := [each.name for each in _ROLES if each in found]:
        lines.append(f"  ClusterRoles {', '.join(roles)}, to which people may be bound")
    for folder, (_, name, effect) in _WITHOUT_LABEL.items():
        if there := [each for each in _WITH_BINDINGS if each.name == name and each in found]:
            lines.append(f"  {' and '.join(map(str, there))}, {effect}")
            lines.append(f"      kubectl delete --ignore-not-found -k manifests/{folder}")
    lines += [f"  whether {each} exists is unknown: {why}" for each, why in unreadable.items()]
    title = "What stays, and how to remove it if that is really meant:"
    lines = [title, *lines] if lines else ["Nothing else stays that an installation of this server brings."]
    if held:
        lines += [
            f"Still being deleted: {counted(len(held), 'tenant')}. Nobody deletes what belongs to a tenant any more:",
            *(f"  {each}" for each in held),
            "      install the server again and wait, or give them up as they are, one by one:",
            _GIVE_UP,
        ]
    return lines


def remaining_proxy(found: Collection[TargetObject], unreadable: Mapping[TargetObject, str]) -> Sequence[str]:
    """Lines about the objects of the proxy, which serves users without this server, and stays."""
    if not found and not unreadable:
        return []
    return [
        f"The proxy stays, with {counted(len(found), 'object')}: kubeconfigs of users may point at it.",
        *(f"  {each}" for each in found),
        *(f"  {each}: unknown: {why}" for each, why in unreadable.items()),
        *(f"      kubectl delete --ignore-not-found -k manifests/{each}" for each in _PROXY_FOLDERS),
    ]
