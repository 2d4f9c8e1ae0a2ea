"""Translates errors about a HelmRelease into errors about the Tenant that it stores. Pure."""

from __future__ import annotations

from typing import Any

from apiserver.meta import errors
from apiserver.meta.errors import StatusError
from apiserver.meta.resource import GroupKind, GroupResource, Key
from registry.cluster.interface import HELMRELEASES
from registry.names import GROUP, KIND, release_name

TENANTS = GroupResource(GROUP, "tenants")
TENANT_KIND = GroupKind(GROUP, KIND)
_RELEASES = GroupResource(HELMRELEASES.group, HELMRELEASES.plural)
_RELEASE_KIND = GroupKind(HELMRELEASES.group, HELMRELEASES.kind)
# Parts of the message of a code 500 with which kube-apiserver reports an object that exceeds a limit of etcd or gRPC.
_TOO_LARGE = ("etcdserver: request is too large", "trying to send message larger than max")


def to_tenant_error(error: StatusError, key: Key) -> StatusError:
    """The same error for the Tenant, with the same code. Errors about other objects are returned unchanged."""
    if error.reason == "ServerTimeout":
        return _translate_timeout(error)
    if error.code == 500 and any(part in error.message for part in _TOO_LARGE):
        return errors.RequestEntityTooLarge(f'{TENANTS} "{key.name}" is larger than the cluster can store')
    if not _is_about(error, key):
        return error
    match error.reason:
        case "NotFound":
            return errors.NotFound(TENANTS, key.name)
        case "AlreadyExists":
            deleting = error.message.startswith("object is being deleted")
            return errors.AlreadyExists(TENANTS, key.name, deleting=deleting)
        case "Conflict":
            why = error.message.partition(f'"{release_name(key.name)}": ')[2] or errors.Conflict.MODIFIED
            by_kind = (error.details or {}).get("kind") == HELMRELEASES.kind
            return errors.Conflict(TENANT_KIND if by_kind else TENANTS, key.name, why)
        case _:
            details = _translate_details(error.details or {}, key)
            return StatusError(error.code, error.reason, _translate_message(error.message, key), details=details)


def _translate_timeout(error: StatusError) -> StatusError:
    """Translates a ServerTimeout, which names a resource but no object (WIRE-D14)."""
    details = error.details or {}
    if (details.get("group"), details.get("kind")) != (_RELEASES.group, _RELEASES.resource):
        return error
    text = error.message.replace(str(_RELEASES), str(TENANTS))
    return StatusError(
        error.code, error.reason, text, details=details | {"group": TENANTS.group, "kind": TENANTS.resource}
    )


def _is_about(error: StatusError, key: Key) -> bool:
    details = error.details or {}
    named = details.get("kind") in (HELMRELEASES.plural, HELMRELEASES.kind) and details.get("group") == _RELEASES.group
    return named and details.get("name") == release_name(key.name)


def _translate_details(details: dict[str, Any], key: Key) -> dict[str, Any]:
    kind = TENANTS.resource if details.get("kind") == HELMRELEASES.plural else KIND
    translated = details | {"group": GROUP, "kind": kind, "name": key.name}
    if causes := details.get("causes"):
        translated["causes"] = [
            {
                field: _translate_message(value, key) if isinstance(value, str) else value
                for field, value in cause.items()
            }
            for cause in causes
        ]
    return translated


def _translate_message(text: str, key: Key) -> str:
    release = release_name(key.name)
    for tenants, releases in ((TENANTS, _RELEASES), (TENANT_KIND, _RELEASE_KIND)):
        text = text.replace(f'{releases} "{release}"', f'{tenants} "{key.name}"')
    return text.replace("spec.values", "spec")
