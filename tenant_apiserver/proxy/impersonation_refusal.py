"""The 403s by which the cluster refuses the impersonation of a caller: they are about the account of the proxy, which
callers do not know, and say nothing of their rights."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Final

from apiserver.json import deep as deepjson
from apiserver.meta.errors import BadRequest, ServiceUnavailable
from apiserver.meta.go_quote import go_quote
from apiserver.meta.protobuf_message import message as protobuf_message
from apiserver.request.request_info import RequestInfo
from apiserver.serializer import protobuf

_MARK: Final = b" cannot impersonate"
_STATUS: Final = protobuf_message("Status", {3: "message"})
_PLAIN: Final = re.compile(r"[A-Za-z0-9.-]*", re.ASCII)
# set by priority and fairness, which comes after impersonation
_CLASSIFIED: Final = "X-Kubernetes-Pf-Flowschema-Uid"
_ACCOUNTS: Final = 4
_REFUSED: Final = (
    "the cluster does not let the proxy impersonate its callers: the account of the proxy lacks a right, not yours"
)


class ImpersonationRefusals:
    """`account` is the user name of the proxy; `on_refusal` is called with the message of each refusal."""

    def __init__(self, account: Callable[[], str], on_refusal: Callable[[str], None]) -> None:
        self._account = account
        self._on_refusal = on_refusal

    def check(self, info: RequestInfo, message: str) -> None:
        """Raises ServiceUnavailable if the message of a 403 refuses the impersonation."""
        account = self._account()
        # the message has the kind unquoted; an application behind services/proxy says what it likes
        if not account or info.subresource == "proxy" or not _PLAIN.fullmatch(info.group + info.resource):
            return
        if is_refusal_of(account, message):
            self._on_refusal(message)
            raise ServiceUnavailable(_REFUSED)

    def check_answer(self, info: RequestInfo, headers: Mapping[str, str], body: bytes) -> None:
        """As `check`, for the headers and the body of a 403."""
        if _MARK in body and _CLASSIFIED not in headers:
            self.check(info, _message_of(body))


def is_refusal_of(account: str, message: str) -> bool:
    """True for a message about this account, from its beginning: those of policies and webhooks, which may have texts
    of users, begin otherwise, and so do those about other users."""
    return _refusal(account).match(message) is not None


@lru_cache(maxsize=_ACCOUNTS)
def _refusal(account: str) -> re.Pattern[str]:
    """Kubernetes since 1.36 names what the impersonated user asks for, with a verb of constrained impersonation."""
    quoted = go_quote(account)
    escaped = quoted.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    user = "|".join(map(re.escape, dict.fromkeys((quoted, escaped))))
    verb = r"impersonate(?::[a-z-]+|-on:[a-z-]+:[a-z]+)?"
    return re.compile(
        rf'(?:[^" ]+(?: "(?:[^"\\]|\\.)*")? is )?forbidden: User (?:{user}) cannot {verb} (?:resource|path) "'
    )


def _message_of(body: bytes) -> str:
    """The message of a Status in JSON or protobuf, empty for another body."""
    try:
        document = protobuf.decode(body, _STATUS) if body.startswith(b"k8s\0") else deepjson.loads(body)
    except (BadRequest, ValueError):
        return ""
    found = document.get("message") if isinstance(document, dict) else None
    return found if isinstance(found, str) else ""
