"""The question that a request asks, the order of authorizers, and the words of a 403 (WIRE-B1 to WIRE-B15)."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from apiserver.authorization.authorizer import (
    NO_OPINION,
    STALE_WARNING,
    AccessAttributes,
    AccessDenied,
    Decision,
    authorize_request,
    request_attributes,
    standard_authorizer,
)
from apiserver.meta.selectors import Requirement
from apiserver.request.context import ANONYMOUS, User
from tests.apiserver.endpoints.request_contexts import ALICE, make_context

WIDGET = AccessAttributes(
    user=User("bob"), verb="get", group="example.org", version="v1", resource="widgets", namespace="ns", name="w"
)


class Recorded:
    def __init__(self, decision: Decision = NO_OPINION) -> None:
        self.decision = decision
        self.asked: list[AccessAttributes] = []

    async def authorize(self, attributes: AccessAttributes) -> Decision:
        self.asked.append(attributes)
        return self.decision


@pytest.mark.parametrize(
    ("changes", "reason", "message"),
    [
        pytest.param(
            {},
            "",
            'widgets.example.org "w" is forbidden: User "bob" cannot get resource "widgets" in API group '
            '"example.org" in the namespace "ns"',
            id="an object",
        ),
        pytest.param(
            {"name": "", "namespace": "", "verb": "list"},
            "RBAC: nothing",
            'widgets.example.org is forbidden: User "bob" cannot list resource "widgets" in API group '
            '"example.org" at the cluster scope: RBAC: nothing',
            id="a collection of the cluster, with a reason",
        ),
        pytest.param(
            {"group": "", "resource": "pods", "subresource": "log"},
            "",
            'pods "w" is forbidden: User "bob" cannot get resource "pods/log" in API group "" in the namespace "ns"',
            id="a subresource of the core group",
        ),
        pytest.param(
            {"user": User('<b>"&')},
            "",
            'widgets.example.org "w" is forbidden: User "&lt;b&gt;\\"&amp;" cannot get resource "widgets" in API '
            'group "example.org" in the namespace "ns"',
            id="a hostile name",
        ),
    ],
)
def test_a_denial_says_what_is_denied(changes: dict[str, Any], reason: str, message: str) -> None:
    assert AccessDenied(replace(WIDGET, **changes), reason).message == message


def test_a_denial_has_the_resource_as_details() -> None:
    status = AccessDenied(WIDGET).status()
    assert status["details"] == {"name": "w", "group": "example.org", "kind": "widgets"}
    assert (status["code"], status["reason"]) == (403, "Forbidden")


def test_a_denial_of_a_path_has_empty_details() -> None:
    status = AccessDenied(AccessAttributes(user=User("bob"), verb="get", path="/metrics"), "no").status()
    assert status["message"] == 'forbidden: User "bob" cannot get path "/metrics": no'
    assert status["details"] == {}


@pytest.mark.parametrize(
    ("target", "user", "allowed", "asked"),
    [
        pytest.param("/healthz", ANONYMOUS, True, 0, id="anybody's health"),
        pytest.param("/readyz?verbose", ANONYMOUS, True, 0, id="with a query"),
        pytest.param("/livez/ping", ANONYMOUS, False, 0, id="a single check"),
        pytest.param("/healthz/", ANONYMOUS, False, 0, id="a slash too many"),
        pytest.param("/version", ANONYMOUS, False, 0, id="anonymous gets nothing else"),
        pytest.param("/apis/healthz/v1/readyz", ANONYMOUS, False, 0, id="a resource that sounds like health"),
        pytest.param("/apis/g/v1/widgets", User("x", groups=("system:unauthenticated",)), False, 0, id="by its group"),
        pytest.param("/apis/g/v1/widgets", User("x", groups=("system:masters",)), True, 0, id="masters"),
        pytest.param("/apis/g/v1/widgets", ALICE, False, 1, id="others are asked for"),
    ],
)
async def test_who_gets_through_without_a_review(target: str, user: User, allowed: bool, asked: int) -> None:
    inner = Recorded()
    context = make_context(target=target, user=user)
    decision = await standard_authorizer(inner).authorize(request_attributes(user, context.info, context.query))
    assert decision.allowed is allowed
    assert len(inner.asked) == asked


def test_a_path_has_no_resource() -> None:
    context = make_context("POST", "/version/", user=ALICE)
    attributes = request_attributes(ALICE, context.info, context.query)
    assert attributes == AccessAttributes(user=ALICE, verb="post", path="/version/")


def test_selectors_are_part_of_the_question() -> None:
    target = "/apis/g/v1/namespaces/ns/widgets?watch=1&fieldSelector=metadata.name%3Dx&labelSelector=a+in+(b),!c"
    context = make_context(target=target)
    attributes = request_attributes(ALICE, context.info, context.query)
    assert (attributes.verb, attributes.name) == ("watch", "x")
    assert attributes.field_requirements == (Requirement("metadata.name", "In", ("x",)),)
    assert attributes.label_requirements == (Requirement("a", "In", ("b",)), Requirement("c", "DoesNotExist"))


@pytest.mark.parametrize(
    "target",
    [
        pytest.param("/apis/g/v1/widgets?labelSelector=a=(", id="one that does not parse"),
        pytest.param("/apis/g/v1/namespaces/ns/widgets/w?labelSelector=a=b", id="one on an object"),
    ],
)
def test_some_selectors_are_left_out(target: str) -> None:
    context = make_context(target=target)
    assert request_attributes(ALICE, context.info, context.query).label_requirements == ()


async def test_another_verb_can_be_required() -> None:
    authorizer = Recorded(Decision(allowed=True))
    context = make_context("PATCH", user=ALICE)
    await authorize_request(context, authorizer, verb="create")
    assert (authorizer.asked[0].verb, authorizer.asked[0].name) == ("create", "w")


async def test_no_opinion_is_a_denial() -> None:
    with pytest.raises(AccessDenied) as raised:
        await authorize_request(make_context(user=ALICE), Recorded(Decision(reason="no rule")))
    assert raised.value.authorizer_reason == "no rule"


async def test_a_stale_decision_is_warned_of() -> None:
    context = make_context(user=ALICE)
    await authorize_request(context, Recorded(Decision(allowed=True, stale=True)))
    assert context.warnings == [STALE_WARNING]
