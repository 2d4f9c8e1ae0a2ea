"""Translates errors about a HelmRelease into errors about the application that it stores. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from apiserver.meta import errors
from apiserver.meta.errors import StatusError
from apiserver.meta.resource import GroupKind, GroupResource, Key
from registry.cluster.interface import HELMRELEASES

_RELEASES = GroupResource(HELMRELEASES.group, HELMRELEASES.plural)
_RELEASE_KIND = GroupKind(HELMRELEASES.group, HELMRELEASES.kind)
# Parts of the message of a code 500 with which kube-apiserver reports an object that exceeds a limit of etcd or gRPC.
_TOO_LARGE = ("etcdserver: request is too large", "trying to send message larger than max")


@dataclass(frozen=True, slots=True)
class ApplicationNames:
    """How a kind is called, and how its HelmReleases are."""

    resource: GroupResource
    kind: GroupKind
    prefix: str

    def release_name(self, name: str) -> str:
        return self.prefix + name

    def release_key(self, key: Key) -> Key:
        """The key of the HelmRelease that stores an application."""
        return Key(key.namespace, self.prefix + key.name)

    def name_of(self, release_name: str) -> str | None:
        """The name of the application that a HelmRelease of this name stores, None if it cannot store one."""
        return release_name[len(self.prefix) :] or None if release_name.startswith(self.prefix) else None

    def translate(self, error: StatusError, key: Key) -> StatusError:
        """The same error for the application, with the same code. Errors about other objects are returned unchanged."""
        if error.reason == "ServerTimeout":
            return self._translate_timeout(error)
        if error.code == 500 and any(part in error.message for part in _TOO_LARGE):
            return errors.RequestEntityTooLarge(f'{self.resource} "{key.name}" is larger than the cluster can store')
        if not self._is_about(error, key):
            return error
        match error.reason:
            case "NotFound":
                return errors.NotFound(self.resource, key.name)
            case "AlreadyExists":
                deleting = error.message.startswith("object is being deleted")
                return errors.AlreadyExists(self.resource, key.name, deleting=deleting)
            case "Conflict":
                quoted = f'"{self.release_name(key.name)}": '
                why = error.message.partition(quoted)[2] or errors.Conflict.MODIFIED
                by_kind = (error.details or {}).get("kind") == HELMRELEASES.kind
                return errors.Conflict(self.kind if by_kind else self.resource, key.name, why)
            case _:
                details = self._translate_details(error.details or {}, key)
                return StatusError(
                    error.code, error.reason, self._translate_message(error.message, key), details=details
                )

    def _translate_timeout(self, error: StatusError) -> StatusError:
        """Translates a ServerTimeout, which names a resource but no object (WIRE-D14)."""
        details = error.details or {}
        if (details.get("group"), details.get("kind")) != (_RELEASES.group, _RELEASES.resource):
            return error
        text = error.message.replace(str(_RELEASES), str(self.resource))
        named = {"group": self.resource.group, "kind": self.resource.resource}
        return StatusError(error.code, error.reason, text, details=details | named)

    def _is_about(self, error: StatusError, key: Key) -> bool:
        details = error.details or {}
        is_release = details.get("kind") in (HELMRELEASES.plural, HELMRELEASES.kind)
        named = is_release and details.get("group") == _RELEASES.group
        return named and details.get("name") == self.release_name(key.name)

    def _translate_details(self, details: dict[str, Any], key: Key) -> dict[str, Any]:
        kind = self.resource.resource if details.get("kind") == HELMRELEASES.plural else self.kind.kind
        translated = details | {"group": self.resource.group, "kind": kind, "name": key.name}
        if causes := details.get("causes"):
            translated["causes"] = [
                {
                    field: self._translate_message(value, key) if isinstance(value, str) else value
                    for field, value in cause.items()
                }
                for cause in causes
            ]
        return translated

    def _translate_message(self, text: str, key: Key) -> str:
        release = self.release_name(key.name)
        for ours, theirs in ((self.resource, _RELEASES), (self.kind, _RELEASE_KIND)):
            text = text.replace(f'{theirs} "{release}"', f'{ours} "{key.name}"')
        return text.replace("spec.values", "spec")
