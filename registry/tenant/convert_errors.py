"""Translates errors about a HelmRelease into errors about the Tenant that it stores. Pure."""

from __future__ import annotations

from apiserver.meta.errors import StatusError
from apiserver.meta.resource import GroupKind, GroupResource, Key
from registry.application.release_errors import ApplicationNames
from registry.names import GROUP, KIND, RELEASE_PREFIX

TENANTS = GroupResource(GROUP, "tenants")
TENANT_NAMES = ApplicationNames(TENANTS, GroupKind(GROUP, KIND), RELEASE_PREFIX)


def to_tenant_error(error: StatusError, key: Key) -> StatusError:
    """The same error for the Tenant, with the same code. Errors about other objects are returned unchanged."""
    return TENANT_NAMES.translate(error, key)
