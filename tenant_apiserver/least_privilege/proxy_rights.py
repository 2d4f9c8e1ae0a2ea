"""The rights of the account of `tenant-apiserver proxy`: those of overlays/proxy, and for settings that need them those
of overlays/proxy-cluster-kinds and overlays/proxy-persistent-volumes.

No policy limits the account: it may create reviews, which store nothing, and write nothing else as itself.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from tenant_apiserver.least_privilege.right import Right, Role

PROXY_ROLE: Final = Role("tenant-apiserver:proxy", file="overlays/proxy/clusterrole.yaml")
PROXY_KINDS_ROLE: Final = Role(
    "tenant-apiserver:proxy-cluster-kinds", file="overlays/proxy-cluster-kinds/clusterrole.yaml"
)
PROXY_VOLUMES_ROLE: Final = Role(
    "tenant-apiserver:proxy-persistent-volumes", file="overlays/proxy-persistent-volumes/clusterrole.yaml"
)
PROXY_ROLES: Final = (PROXY_ROLE, PROXY_KINDS_ROLE, PROXY_VOLUMES_ROLE)
_SELECTED: Final = (
    ("", "nodes"),
    ("storage.k8s.io", "storageclasses"),
    ("networking.k8s.io", "ingressclasses"),
    ("gateway.networking.k8s.io", "gatewayclasses"),
    ("scheduling.k8s.io", "priorityclasses"),
    ("node.k8s.io", "runtimeclasses"),
)
_EVERYTHING: Final = "Act as any user: this is worth cluster-admin."
_READ: Final = ("get", "list", "watch")


def proxy_rights() -> Sequence[Right]:
    """The rows of all roles."""
    return (*_forwarding(), *_reviews(), *_index(), *map(_selected, _SELECTED), _volumes())


def _forwarding() -> Sequence[Right]:
    return (
        Right(
            role=PROXY_ROLE,
            group="",
            resources=["users", "groups", "serviceaccounts"],
            verbs=["impersonate"],
            why="Forwarding. Resource names cannot exclude system:masters: the proxy itself refuses its members.",
            remains=_EVERYTHING,
        ),
        Right(
            role=PROXY_ROLE,
            group="authentication.k8s.io",
            resources=["*"],
            verbs=["impersonate"],
            why="The uids, and the userextras of every key, for which RBAC has no pattern.",
            remains=_EVERYTHING,
        ),
    )


def _reviews() -> Sequence[Right]:
    return (
        Right(
            role=PROXY_ROLE,
            group="authentication.k8s.io",
            resources=["tokenreviews"],
            verbs=["create"],
            why="Tokens name the sender of a request.",
            remains="Test tokens.",
        ),
        Right(
            role=PROXY_ROLE,
            group="authorization.k8s.io",
            resources=["subjectaccessreviews"],
            verbs=["create"],
            why="A sender may impersonate others if he has the right to.",
            remains="Learn the rights of everybody.",
        ),
    )


def _index() -> Sequence[Right]:
    return (
        Right(
            role=PROXY_ROLE,
            group="",
            resources=["namespaces"],
            verbs=_READ,
            why="The namespaces that a caller may see.",
            remains="Read all Namespaces.",
        ),
        Right(
            role=PROXY_ROLE,
            group="rbac.authorization.k8s.io",
            resources=["roles", "rolebindings", "clusterroles", "clusterrolebindings"],
            verbs=_READ,
            why="The namespaces in which a caller may list a kind, and the names that he may get.",
            remains="Read all RBAC objects.",
        ),
    )


def _selected(kind: tuple[str, str]) -> Right:
    group, plural = kind
    return Right(
        role=PROXY_KINDS_ROLE,
        group=group,
        resources=[plural],
        verbs=["list", "watch"],
        why=f"Lists of {plural} by a selector of the settings.",
        remains=f"Read all {plural}.",
    )


def _volumes() -> Right:
    return Right(
        role=PROXY_VOLUMES_ROLE,
        group="",
        resources=["persistentvolumes"],
        verbs=["list", "watch"],
        why="Lists of PersistentVolumes by the namespaces of their claims.",
        remains="Read all PersistentVolumes.",
    )
