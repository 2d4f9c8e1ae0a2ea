"""The filters of authentication, impersonation and authorization."""

from __future__ import annotations

import contextlib

import pytest

from apiserver.authentication.authenticator import UnionAuthenticator
from apiserver.authentication.request_header import RequestHeaderConfig
from apiserver.authorization.authorizer import (
    AccessDenied,
)
from apiserver.endpoints.filters.authentication import Authentication, RequestAuthenticator
from apiserver.endpoints.filters.authorization import Authorization
from apiserver.endpoints.filters.impersonation import Impersonation, RejectImpersonation
from apiserver.endpoints.filters.read_only import ReadOnly, WriteToReadOnlyServer
from apiserver.meta.errors import BadRequest, ServiceUnavailable, StatusError, Unauthorized
from apiserver.request.context import RequestContext, User
from tests.apiserver.endpoints.filter_fakes import ADMIN, FakeAuthorizer, FixedAuthenticator, raising
from tests.apiserver.endpoints.request_contexts import ALICE, make_context, ok


class FailingAuthenticator:
    def __init__(self, error: StatusError) -> None:
        self._error = error

    async def authenticate(self, context: RequestContext) -> User:
        raise self._error


@pytest.mark.parametrize(
    "connection",
    ["X-Remote-User, close", "Authorization", "close,IMPERSONATE-USER", "x-remote-extra-scopes", "X-Custom-User"],
)
async def test_connection_must_not_name_identity_headers(connection: str) -> None:
    config = RequestHeaderConfig(username_headers=("X-Custom-User",))
    with pytest.raises(BadRequest):
        await Authentication(FixedAuthenticator(), config=lambda: config)(
            make_context(headers={"Connection": connection}), ok
        )


async def test_a_long_connection_header_is_a_bad_request() -> None:
    """ATTACK-19: looking for identity headers in it would take long, before anyone is authenticated."""
    fields = [("Connection", "a," * 100)] * 6
    with pytest.raises(BadRequest, match="at most 1024 characters"):
        await Authentication(FixedAuthenticator(), config=RequestHeaderConfig)(make_context(headers=fields), ok)


async def test_connection_may_name_other_headers() -> None:
    context = make_context(headers={"Connection": "keep-alive, Upgrade"})
    await Authentication(FixedAuthenticator(), config=RequestHeaderConfig)(context, ok)
    assert context.user == ALICE


@pytest.mark.parametrize(
    ("authenticator", "result"),
    [
        pytest.param(FixedAuthenticator(), "success", id="a user"),
        pytest.param(UnionAuthenticator([]), "success", id="anonymous"),
        pytest.param(FailingAuthenticator(Unauthorized()), "failure", id="a rejected token"),
        pytest.param(FailingAuthenticator(ServiceUnavailable("no cluster")), "error", id="an unreachable cluster"),
    ],
)
async def test_authentication_attempts_are_counted_by_result(authenticator: RequestAuthenticator, result: str) -> None:
    results: list[str] = []
    filter = Authentication(authenticator, config=RequestHeaderConfig, observe=results.append)
    with contextlib.suppress(StatusError):
        await filter(make_context(), ok)
    assert results == [result]


async def test_impersonation_is_rejected_behind_an_aggregator() -> None:
    with pytest.raises(StatusError) as raised:
        await RejectImpersonation()(make_context(headers={"Impersonate-Uid": "1"}, user=ADMIN), ok)
    assert raised.value.code == 403


async def test_a_request_without_impersonation_needs_no_permission() -> None:
    authorizer = FakeAuthorizer([])
    context = make_context(user=ALICE)
    await Impersonation(authorizer)(context, ok)
    assert authorizer.questions == []
    assert (context.user, context.impersonator) == (ALICE, None)


async def test_impersonation_requires_permission_for_every_part_of_the_identity() -> None:
    authorizer = FakeAuthorizer()
    context = make_context(
        headers=[
            ("Impersonate-User", "bob"),
            ("Impersonate-Group", "devs"),
            ("Impersonate-Group", "ops"),
            ("Impersonate-Uid", "7"),
            ("Impersonate-Extra-Acme%2fScope", "one"),
        ],
        user=ALICE,
    )
    await Impersonation(authorizer)(context, ok)
    assert authorizer.questions == [
        "impersonate users bob",
        "impersonate groups devs",
        "impersonate groups ops",
        "impersonate uids 7",
        "impersonate userextras/acme/scope one",
    ]
    assert context.impersonator == ALICE
    assert context.user == User("bob", "7", ("devs", "ops", "system:authenticated"), {"acme/scope": ("one",)})


@pytest.mark.parametrize(
    ("name", "groups"),
    [
        pytest.param("bob", ("system:authenticated",), id="a user"),
        pytest.param(
            "system:serviceaccount:ns:robot",
            ("system:serviceaccounts", "system:serviceaccounts:ns", "system:authenticated"),
            id="a service account",
        ),
        pytest.param("system:anonymous", ("system:unauthenticated",), id="anonymous"),
    ],
)
async def test_an_impersonated_user_has_the_groups_that_come_with_it(name: str, groups: tuple[str, ...]) -> None:
    context = make_context(headers={"Impersonate-User": name}, user=ADMIN)
    await Impersonation(FakeAuthorizer())(context, ok)
    assert context.user.groups == groups


async def test_impersonating_a_service_account_requires_permission_in_its_namespace() -> None:
    authorizer = FakeAuthorizer(["impersonate serviceaccounts a/owner"])
    handler = Impersonation(authorizer)
    await handler(make_context(headers={"Impersonate-User": "system:serviceaccount:a:owner"}, user=ALICE), ok)
    with pytest.raises(AccessDenied):
        await handler(make_context(headers={"Impersonate-User": "system:serviceaccount:b:owner"}, user=ALICE), ok)


async def test_impersonating_a_forbidden_group_is_a_403_that_names_the_caller() -> None:
    context = make_context(headers={"Impersonate-User": "bob", "Impersonate-Group": "system:masters"}, user=ALICE)
    with pytest.raises(AccessDenied) as raised:
        await Impersonation(FakeAuthorizer(["impersonate users bob"]))(context, ok)
    assert raised.value.message == (
        'groups "system:masters" is forbidden: User "alice" cannot impersonate resource "groups" in API group "" '
        "at the cluster scope: by the fake"
    )
    assert context.user == ALICE


@pytest.mark.parametrize("header", ["Impersonate-Group", "Impersonate-Uid", "Impersonate-Extra-x", "Impersonate-Other"])
async def test_impersonation_headers_without_a_user_are_rejected(header: str) -> None:
    with pytest.raises(BadRequest, match=r"^requested .* without impersonating a user name$"):
        await Impersonation(FakeAuthorizer())(make_context(headers={header: "x"}, user=ADMIN), ok)


async def test_the_authorization_decision_is_an_audit_annotation() -> None:
    context = make_context(user=ALICE)
    await Authorization(FakeAuthorizer())(context, ok)
    assert context.annotations == {
        "authorization.k8s.io/decision": "allow",
        "authorization.k8s.io/reason": "by the fake",
    }


async def test_a_denied_request_never_reaches_its_handler() -> None:
    context = make_context(user=ALICE)
    with pytest.raises(AccessDenied):
        await Authorization(FakeAuthorizer([]))(context, raising(AssertionError("reached")))
    assert context.annotations["authorization.k8s.io/decision"] == "forbid"


@pytest.mark.parametrize("method", ["POST", "PUT", "PATCH", "DELETE"])
async def test_a_server_that_only_reads_refuses_writes_and_says_why(method: str) -> None:
    with pytest.raises(WriteToReadOnlyServer, match="this server only reads") as raised:
        await ReadOnly()(make_context(method, user=ADMIN), raising(AssertionError("reached")))
    assert raised.value.code == 405


async def test_a_server_that_only_reads_answers_reads() -> None:
    assert (await ReadOnly()(make_context(user=ADMIN), ok)).status == 200
