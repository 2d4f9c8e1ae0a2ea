"""What the host says of a HelmRelease, said of the Tenant that it holds. Pure."""

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
# How a kube-apiserver passes on, as a 500 about nothing, what etcd or the way to it says of an object beyond its limit.
_TOO_LARGE = ("etcdserver: request is too large", "trying to send message larger than max")


def to_tenant_error(error: StatusError, key: Key) -> StatusError:
    """The same refusal with the same code, of our resource. What is not about the HelmRelease stays as it is."""
    if error.reason == "ServerTimeout":
        return _timeout(error)
    if error.code == 500 and any(words in error.message for words in _TOO_LARGE):
        return errors.RequestEntityTooLarge(f'{TENANTS} "{key.name}" is larger than what the host stores')
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
            details = _details(error.details or {}, key)
            return StatusError(error.code, error.reason, _text(error.message, key), details=details)


def _timeout(error: StatusError) -> StatusError:
    """Kubernetes names the resource in it, and no object (WIRE-D14)."""
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


def _details(details: dict[str, Any], key: Key) -> dict[str, Any]:
    kind = TENANTS.resource if details.get("kind") == HELMRELEASES.plural else KIND
    translated = details | {"group": GROUP, "kind": kind, "name": key.name}
    if causes := details.get("causes"):
        translated["causes"] = [
            {field: _text(value, key) if isinstance(value, str) else value for field, value in cause.items()}
            for cause in causes
        ]
    return translated


def _text(text: str, key: Key) -> str:
    release = release_name(key.name)
    for ours, theirs in ((TENANTS, _RELEASES), (TENANT_KIND, _RELEASE_KIND)):
        text = text.replace(f'{theirs} "{release}"', f'{ours} "{key.name}"')
    return text.replace("spec.values", "spec")
