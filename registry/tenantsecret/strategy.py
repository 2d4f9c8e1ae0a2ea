"""The Strategy of TenantSecrets: validation, and the Secrets that nobody may write through them.

Our account may write Secrets that the caller may not. Those that Kubernetes or Flux act upon with rights of their own
would lend the caller these rights, so they are refused.
"""

from __future__ import annotations

import base64
import binascii
import re

from apiserver.meta import errors
from apiserver.meta.errors import FieldError
from apiserver.meta.name_validation import dns1123_subdomain_errors
from apiserver.meta.resource import Object, Resource
from registry.tenantsecret.convert import default_secret, tenant_secret_resource

ACTED_UPON_TYPES = (
    # the token controller fills in a token of any ServiceAccount of the namespace
    "kubernetes.io/service-account-token",
    # kube-apiserver accepts the token in it
    "bootstrap.kubernetes.io/token",
    # Flux applies the manifest in it on a rollback
    "helm.sh/release.v1",
)
ACTED_UPON_PREFIX = "sh.helm.release."
VALUES_SECRET = "cozystack-values"
"""All charts of a tenant read their values from it."""

_KEY = re.compile(r"[-._a-zA-Z0-9]+")
_MAX_KEY = 253
_MAX_BYTES = 1024 * 1024


class TenantSecretStrategy:
    def __init__(self) -> None:
        self._resource = tenant_secret_resource()

    @property
    def resource(self) -> Resource:
        return self._resource

    def prepare_for_create(self, obj: Object) -> None:
        default_secret(obj)

    def prepare_for_update(self, new: Object, old: Object) -> None:
        default_secret(new)

    def name_errors(self, obj: Object) -> list[FieldError]:
        name = obj["metadata"]["name"]
        problems = [errors.invalid("metadata.name", name, why) for why in dns1123_subdomain_errors(name)]
        if name == VALUES_SECRET or name.startswith(ACTED_UPON_PREFIX):
            problems.append(errors.invalid("metadata.name", name, "Secrets of this name are the platform's"))
        return problems

    def validate(self, obj: Object) -> list[FieldError]:
        return [*type_errors(obj), *data_errors(obj.get("data") or {})]

    def validate_update(self, new: Object, old: Object) -> list[FieldError]:
        changed = []
        if new["type"] != old.get("type"):
            changed.append(errors.invalid("type", new["type"], "field is immutable"))
        # names of objects that exist already are judged, too: a label may have made one a TenantSecret
        return [*self.name_errors(new), *changed, *type_errors(old), *data_errors(new.get("data") or {})]

    def is_slow(self) -> bool:
        return False

    def warnings(self, obj: Object) -> list[str]:
        return []


def type_errors(obj: Object) -> list[FieldError]:
    if obj.get("type") not in ACTED_UPON_TYPES:
        return []
    why = "Secrets of this type are not written as TenantSecrets, because the cluster acts upon them"
    return [errors.invalid("type", obj["type"], why)]


def data_errors(data: dict[str, str]) -> list[FieldError]:
    """The errors in keys and values. No message has a value."""
    problems = []
    for key, value in data.items():
        path = f"data[{key}]"
        if not _KEY.fullmatch(key) or len(key) > _MAX_KEY or key in (".", ".."):
            problems.append(
                errors.invalid(path, key, "must be a valid key: at most 253 of the characters a-zA-Z0-9-._")
            )
        try:
            base64.b64decode(value, validate=True)
        except (binascii.Error, ValueError):
            problems.append(errors.invalid(path, "<value>", "must be base64-encoded"))
    if sum(len(value) * 3 // 4 for value in data.values()) > _MAX_BYTES:
        problems.append(errors.too_long("data", _MAX_BYTES))
    return problems
