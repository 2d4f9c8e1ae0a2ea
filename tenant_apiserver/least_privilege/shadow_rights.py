"""The rights of a server that only reads: those of overlays/shadow."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from controller.tenant.values_secret_step import SECRET_NAME as VALUES_SECRET
from registry.names import GROUP
from tenant_apiserver.least_privilege.right import Right, Role
from tenant_apiserver.least_privilege.rights import CLUSTER_ROLE, KEPT_FORMS_ROLE, READ, RIGHTS

SHADOW_ROLE = Role("tenant-apiserver-shadow", file="clusterrole.yaml")
"""The role of a server that only reads, in overlays/shadow."""


def shadow_rights() -> Sequence[Right]:
    """The reads of the server's own roles, for a server that never writes. The Secrets that only controllers read
    are left out, and what only an account needs that writes Roles."""
    rows = [
        right
        for right in RIGHTS
        if right.role in (CLUSTER_ROLE, KEPT_FORMS_ROLE) and right.group != GROUP and VALUES_SECRET not in right.names
    ]
    return [replace(row, role=SHADOW_ROLE, verbs=[verb for verb in row.verbs if verb in READ]) for row in rows]
