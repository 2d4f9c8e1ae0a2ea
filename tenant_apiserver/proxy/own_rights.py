"""The rights that the account of the proxy needs: the cluster is asked for them at the start, and again and again.

A right that is missing is the administrator's matter: the log names it and the overlay that gives it, callers get 503.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Final

from apiserver.delegation.review_client import ReviewCall, ReviewRefused
from apiserver.meta.errors import StatusError
from apiserver.meta.go_quote import go_quote
from apiserver.meta.resource import Object
from registry.cluster.interface import ClusterClient, ClusterUnreachable, reason_for_log
from tenant_apiserver.certificates.delegated_authentication import NAME, NAMESPACE
from tenant_apiserver.proxy.own_account import MALFORMED, OwnAccount

_PATH: Final = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"
_IDENTITY, _ACCESS = "authentication.k8s.io", "authorization.k8s.io"
_SECONDS, _SECONDS_IF_MISSING, _PAUSE_SECONDS = 60.0, 5.0, 1.0
_FORBIDDEN: Final = 403
_OVERLAY: Final = "manifests/overlays/proxy gives it (ClusterRole tenant-apiserver:proxy)"
_logger = logging.getLogger("tenant_apiserver")

Access = Mapping[str, str]
"""The resourceAttributes of a review."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnRight:
    """A right that one of `accesses` is. Without one that `is_required` the proxy is not ready."""

    name: str
    accesses: Sequence[Access]
    without: str
    """The consequence for callers."""
    remedy: str = _OVERLAY
    is_required: bool = True

    def lack(self, account: str) -> str:
        return f"{_may_not(account)} {self.name}: {self.without}; {self.remedy}"


def _may_not(account: str) -> str:
    return f"the account {go_quote(account)} of the proxy may not"


def _impersonate(resource: str, mode: str, who: str, *, group: str = "", is_required: bool = False) -> OwnRight:
    """As Kubernetes has it, or by the verbs of constrained impersonation, which Kubernetes 1.36 asks for first. These
    need a right for each request besides, which shows when one is refused."""
    plain, _, subresource = resource.partition("/")
    constrained = {"verb": f"impersonate:{mode}", "group": _IDENTITY, "resource": plain, "subresource": subresource}
    return OwnRight(
        name=f"impersonate {plain}{f'.{group}' if group else ''}",
        accesses=({**constrained, "verb": "impersonate", "group": group}, constrained),
        without=f"{who} get 503",
        is_required=is_required,
    )


FORWARDING: Final = (
    _impersonate("users", "user-info", "all callers", is_required=True),
    _impersonate("groups", "user-info", "all callers", is_required=True),
    _impersonate("serviceaccounts", "serviceaccount", "service accounts"),
    _impersonate("uids", "user-info", "callers with a uid", group=_IDENTITY),
    _impersonate(
        "userextras/authentication.kubernetes.io/credential-id",
        "user-info",
        "callers with a client certificate and service accounts",
        group=_IDENTITY,
    ),
)
TOKEN_REVIEWS: Final = OwnRight(
    name=f"create tokenreviews.{_IDENTITY}",
    accesses=({"verb": "create", "group": _IDENTITY, "resource": "tokenreviews"},),
    without="callers with a token get 503",
)
ACCESS_REVIEWS: Final = OwnRight(
    name=f"create subjectaccessreviews.{_ACCESS}",
    accesses=({"verb": "create", "group": _ACCESS, "resource": "subjectaccessreviews"},),
    without="--as gets 503, and nobody reads /proxy/metrics",
)
CLIENT_CA: Final = OwnRight(
    name=f"list ConfigMap {NAMESPACE}/{NAME}",
    accesses=({"verb": "list", "resource": "configmaps", "namespace": NAMESPACE, "name": NAME},),
    without="it does not know the CA of clients, so that no client certificate is accepted",
    remedy=(
        "manifests/overlays/proxy gives it (RoleBinding tenant-apiserver-proxy-auth-reader), or set --client-ca-file"
    ),
    is_required=False,
)
"""The proxy is ready without it if it has read the CA before."""


@dataclass(slots=True)
class OwnRights:
    """`missing` are those that the cluster has refused when it was last asked; while it is gone, it stays as it was."""

    cluster: ClusterClient
    rights: Sequence[OwnRight]
    account: OwnAccount
    missing: Sequence[OwnRight] = ()
    _is_known: bool = False
    _due: asyncio.Event = field(default_factory=asyncio.Event)
    _refusal: str = ""
    _refusal_logged: bool = False

    def check(self) -> str:
        """A health check. It fails without a right that is required, and notes others that are missing."""
        if not self._is_known:
            raise RuntimeError("the cluster has not said yet which rights the proxy has")
        if names := [each.name for each in self.missing if each.is_required]:
            raise RuntimeError(f"{_may_not(self.account.name)} {', '.join(names)}; {_OVERLAY}")
        return "; ".join(each.lack(self.account.name) for each in self.missing)

    def refused(self, message: str) -> None:
        """The cluster has refused something to the account: the rights are asked for soon."""
        self._refusal = message
        self._due.set()

    async def follow(self) -> None:
        await self.account.known.wait()
        while True:
            await self._ask_for_all()
            self._log_refusal()
            with suppress(TimeoutError):
                async with asyncio.timeout(_SECONDS_IF_MISSING if self.missing or not self._is_known else _SECONDS):
                    await self._due.wait()
            self._due.clear()
            await asyncio.sleep(_PAUSE_SECONDS)

    def _log_refusal(self) -> None:
        """Logs one refusal that the missing rights do not tell: of another right, or of one caller."""
        if self._refusal and not self._refusal_logged and not any(each.is_required for each in self.missing):
            self._refusal_logged = True
            _logger.warning("the cluster has refused a right to the proxy: %s; %s", self._refusal, _OVERLAY)
        self._refusal = ""

    async def _ask_for_all(self) -> None:
        try:
            missing = [each for each in self.rights if not await self._has(each)]
        except ClusterUnreachable:
            # that is told by others
            return
        except (StatusError, *MALFORMED) as error:
            reason = reason_for_log(error) if isinstance(error, StatusError) else "its answer is no review"
            if not self._is_known:
                _logger.warning("cannot ask the cluster for the own rights: %s", reason)
            self._is_known = True
            return
        for each in missing:
            if each not in self.missing:
                _logger.warning("%s", each.lack(self.account.name))
        for each in self.missing:
            if each not in missing:
                _logger.info("the account of the proxy may %s now", each.name)
        self.missing, self._is_known = missing, True

    async def _has(self, right: OwnRight) -> bool:
        """Raises StatusError, and one of MALFORMED for an answer that is no review."""
        for each in right.accesses:
            attributes = {name: value for name, value in each.items() if value}
            review: Object = {
                "apiVersion": f"{_ACCESS}/v1",
                "kind": "SelfSubjectAccessReview",
                "spec": {"resourceAttributes": attributes},
            }
            answer = await self.cluster.review(_PATH, review)
            if answer["status"].get("allowed") is True:
                return True
        return False


def telling_refusal(post: ReviewCall, what: str, on_refusal: Callable[[str], None]) -> ReviewCall:
    """Wraps `post` so that a 403, which is about the account of the proxy and no caller, raises ReviewRefused. `what`
    is what the cluster does not let the proxy do."""

    async def call(body: Object) -> Object:
        try:
            return await post(body)
        except StatusError as error:
            if error.code != _FORBIDDEN:
                raise
            on_refusal(error.message)
            raise ReviewRefused(f"the cluster does not let the proxy {what}") from error

    return call
