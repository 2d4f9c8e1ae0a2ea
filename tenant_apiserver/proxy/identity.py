"""The caller's identity on its way through the proxy: who is refused, and the Impersonate headers of the others."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import lru_cache
from typing import Final

from aiohttp import web
from multidict import CIMultiDict

from apiserver.authentication.request_header import is_valid_utf8
from apiserver.authorization.authorizer import MASTERS
from apiserver.meta.errors import ServiceUnavailable, StatusError
from apiserver.request.context import Handler, RequestContext, User

NODES = "system:nodes"
_IDENTITIES: Final = 1024
PRIVILEGED_GROUPS: Final = (MASTERS, NODES)
_UNFORWARDABLE: Final = "the identity has characters that cannot be forwarded"
_CONTROL: Final = re.compile(r"[\x00-\x1f\x7f]")
_ESCAPED_IN_KEYS: Final = re.compile(r"[^a-z0-9!#$&'*+\-.^_`|~]")


class RefusePrivileged:
    """Refuses callers whose rights the proxy should not lend to whoever takes hold of it: cluster administrators and
    kubelets, unless `allow_groups`, and always its own account. They have the kube-apiserver itself.

    It runs before impersonation and after it. `own_account` returns the proxy's own user name, empty until it is known.
    """

    def __init__(self, own_account: Callable[[], str], *, allow_groups: bool) -> None:
        self._own_account = own_account
        self._refused = frozenset(() if allow_groups else PRIVILEGED_GROUPS)

    async def __call__(self, context: RequestContext, next: Handler) -> web.StreamResponse:
        """Raises a 403, or ServiceUnavailable until the own account is known."""
        own = self._own_account()
        if not own:
            raise ServiceUnavailable("the proxy does not know its own account yet", retry_after=1)
        if context.user.name == own:
            raise _refusal("the proxy serves its own account nothing")
        if not self._refused.isdisjoint(context.user.groups):
            group = _first_of(self._refused, context.user.groups)
            raise _refusal(f'the proxy serves no members of the group "{group}": use the kube-apiserver itself')
        return await next(context)


def _first_of(wanted: frozenset[str], groups: tuple[str, ...]) -> str:
    return next(group for group in groups if group in wanted)


def impersonation_headers(user: User) -> CIMultiDict[str]:
    """The headers by which a kube-apiserver serves a request as `user`. Raises a 403 for an identity that headers
    cannot carry unchanged: servers trim the spaces around a value, so that `admin ` would become `admin`."""
    extra = tuple((key, tuple(values)) for key, values in user.extra.items())
    return CIMultiDict(_impersonation(user.name, user.uid, tuple(user.groups), extra))


@lru_cache(maxsize=_IDENTITIES)
def _impersonation(
    name: str, uid: str, groups: tuple[str, ...], extra: tuple[tuple[str, tuple[str, ...]], ...]
) -> tuple[tuple[str, str], ...]:
    """Clients send many requests as the same user."""
    if not is_valid_utf8(User(name=name, uid=uid, groups=groups, extra=dict(extra))):
        raise _refusal(_UNFORWARDABLE)
    headers = [("Impersonate-User", name)]
    if uid:
        headers.append(("Impersonate-Uid", uid))
    headers += [("Impersonate-Group", group) for group in groups]
    headers += [(f"Impersonate-Extra-{_escaped_key(key)}", value) for key, values in extra for value in values]
    if not all(map(_is_kept, (*(value for _, value in headers), *(key for key, _ in extra)))):
        raise _refusal(_UNFORWARDABLE)
    return tuple(headers)


def _is_kept(value: str) -> bool:
    return bool(value) and value == value.strip() and _CONTROL.search(value) is None


def _escaped_key(key: str) -> str:
    """Header names have no case, so upper-case letters are escaped, too (client-go's `headerKeyEscape`)."""
    return _ESCAPED_IN_KEYS.sub(lambda found: "".join(f"%{byte:02X}" for byte in found[0].encode()), key)


def _refusal(why: str) -> StatusError:
    return StatusError(403, "Forbidden", f"forbidden: {why}", details={})
