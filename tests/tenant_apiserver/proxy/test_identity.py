"""The headers that carry an identity, as a kube-apiserver reads them."""

from __future__ import annotations

import pytest
from multidict import CIMultiDictProxy

from apiserver.endpoints.filters.impersonation import requested_user
from apiserver.meta.errors import StatusError
from apiserver.request.context import User
from tenant_apiserver.proxy.identity import impersonation_headers

USERS = [
    User("alice"),
    User("alice", uid="1-2", groups=("b", "a", "system:authenticated")),
    User("system:serviceaccount:a:b", extra={"authentication.kubernetes.io/pod-name": ("x", "y")}),
    User("Zo\u00eb (\u6771\u4eac)", groups=("d\u00e9v",), extra={"Scopes": ("A",), "ke%y/\u00fc:=@, ;": ("v",)}),
]


@pytest.mark.parametrize("user", USERS, ids=lambda user: user.name)
def test_the_identity_arrives_unchanged(user: User) -> None:
    assert requested_user(CIMultiDictProxy(impersonation_headers(user))) == user


@pytest.mark.parametrize(
    "user",
    [
        User(""),
        User("a\r\nImpersonate-Group: system:masters"),
        User("a", groups=("dev ",)),
        User("a", groups=("",)),
        User("a", extra={"k": ("\x00",)}),
        User("a", extra={" k": ("v",)}),
        User("a\udc80"),
        User("a", uid="\ta"),
    ],
    ids=repr,
)
def test_an_identity_that_headers_would_change_is_refused(user: User) -> None:
    with pytest.raises(StatusError, match="cannot be forwarded") as refused:
        impersonation_headers(user)
    assert refused.value.code == 403
