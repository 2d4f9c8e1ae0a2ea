"""The subresource `token` of ServiceAccounts: a token is issued, not stored (`kubectl create token`)."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from apiserver import rest
from apiserver.meta import errors
from apiserver.meta.errors import FieldError
from apiserver.meta.resource import GroupKind, GroupResource, Key, Object, Resource
from apiserver.request.context import RequestContext
from apiserver.schema.pruning_and_defaulting import schema_errors
from registry.embedded.auth.bound_tokens import AUDIENCE, BoundObject, BoundTokens
from registry.embedded.kinds.reviews import TOKEN_REQUEST

_ACCOUNTS = GroupResource("", "serviceaccounts")
_SECRETS = GroupResource("", "secrets")
_DEFAULT_SECONDS = 3600
_MIN_SECONDS = 600
_MAX_SECONDS = 1 << 32
# Kubernetes can also bind tokens to these kinds, which the embedded cluster does not serve
_UNSERVED_KINDS = {"Pod": "pods", "Node": "nodes"}


class TokenRequestStorage(rest.Creater):
    def __init__(self, tokens: BoundTokens) -> None:
        self._tokens = tokens

    @property
    def resource(self) -> Resource:
        return TOKEN_REQUEST

    async def create(
        self, context: RequestContext, obj: Object, validate: rest.ValidateFunc, *, dry_run: bool
    ) -> Object:
        key = Key(context.info.namespace, context.info.name)
        account = await self._tokens.accounts.read(key, live=True)
        if account is None:
            raise errors.NotFound(_ACCOUNTS, key.name)
        metadata = obj["metadata"]
        if metadata.get("name", key.name) != key.name:
            why = "must match the service account name if specified"
            problem = errors.invalid("metadata.name", metadata["name"], why)
            raise errors.Invalid(TOKEN_REQUEST.group_kind, key.name, [problem])
        spec = obj.get("spec") or {}
        if problems := _spec_errors(spec):
            raise errors.Invalid(TOKEN_REQUEST.group_kind, "", problems)
        defaulted = {
            **spec,
            "audiences": spec.get("audiences") or [AUDIENCE],
            "expirationSeconds": spec.get("expirationSeconds", _DEFAULT_SECONDS),
            "boundObjectRef": spec.get("boundObjectRef"),
        }
        bound = await self._find_bound_object(key.namespace, defaulted["boundObjectRef"])
        identity = {name: account["metadata"][name] for name in ("name", "namespace", "uid")}
        request = {**obj, "metadata": {**metadata, **identity, "creationTimestamp": _format_time(self._tokens.clock())}}
        request["spec"] = defaulted
        async with validate(request, None):
            token, end = self._tokens.issue(
                key,
                account["metadata"]["uid"],
                audiences=defaulted["audiences"],
                seconds=defaulted["expirationSeconds"],
                bound=bound,
            )
        return {**request, "status": {"token": token, "expirationTimestamp": _format_time(end)}}

    async def _find_bound_object(self, namespace: str, reference: dict[str, Any] | None) -> BoundObject | None:
        """Returns the Secret that the reference names. Raises BadRequest, NotFound, Conflict."""
        if reference is None:
            return None
        kind, name, uid = (reference.get(field, "") for field in ("kind", "name", "uid"))
        if kind != "Secret" and kind not in _UNSERVED_KINDS:
            raise errors.BadRequest(f"cannot bind token to object of type {_type_of(reference)}")
        if not name:
            raise errors.BadRequest("Name parameter required.")
        if kind != "Secret":
            raise errors.NotFound(GroupResource("", _UNSERVED_KINDS[kind]), name)
        secret = await self._tokens.secrets.read(Key(namespace, name), live=True)
        if secret is None:
            raise errors.NotFound(_SECRETS, name)
        stored_uid: str = secret["metadata"]["uid"]
        if uid and uid != stored_uid:
            why = (
                f"the UID in the bound object reference ({uid}) does not match the UID in record. "
                "The object might have been deleted and then recreated"
            )
            raise errors.Conflict(GroupKind("", kind), name, why)
        return BoundObject(name, stored_uid)


def _spec_errors(spec: Object) -> list[FieldError]:
    if problems := schema_errors(TOKEN_REQUEST.properties["spec"], spec, "spec"):
        return problems
    seconds = spec.get("expirationSeconds", _DEFAULT_SECONDS)
    path = "spec.expirationSeconds"
    if seconds < _MIN_SECONDS:
        return [errors.invalid(path, seconds, "may not specify a duration less than 10 minutes")]
    if seconds > _MAX_SECONDS:
        return [errors.invalid(path, seconds, "may not specify a duration larger than 2^32 seconds")]
    return []


def _type_of(reference: dict[str, Any]) -> str:
    group, _, version = str(reference.get("apiVersion", "")).rpartition("/")
    return f"{group}/{version}, Kind={reference.get('kind', '')}"


def _format_time(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
