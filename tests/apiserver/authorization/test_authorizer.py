"""Attributes of requests, the order of authorizers, and the text of a 403 (WIRE-B1 to WIRE-B15)."""

from __future__ import annotations

import threading
from contextlib import suppress
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
from apiserver.meta.selectors import LabelSelector, Requirement, parse_label_selector
from apiserver.request.context import ANONYMOUS, User
from tests.apiserver.endpoints.request_contexts import ALICE, make_context

WIDGET = AccessAttributes(
    user=User("bob"), verb="get", group="example.org", version="v1", resource="widgets", namespace="ns", name="w"
)


class RecordingAuthorizer:
    def __init__(self, decision: Decision = NO_OPINION) -> None:
        self.decision = decision
        self.authorized: list[AccessAttributes] = []

    async def authorize(self, attributes: AccessAttributes) -> Decision:
        self.authorized.append(attributes)
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
            id="a collection at cluster scope, with a reason",
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
            id="a username with HTML",
        ),
    ],
)
def test_a_denial_has_the_message_of_kubernetes(changes: dict[str, Any], reason: str, message: str) -> None:
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
    ("target", "user", "allowed", "reviews"),
    [
        pytest.param("/healthz", ANONYMOUS, True, 0, id="a health path"),
        pytest.param("/readyz?verbose", ANONYMOUS, True, 0, id="a health path with a query"),
        pytest.param("/livez/ping", ANONYMOUS, False, 0, id="a single check"),
        pytest.param("/healthz/", ANONYMOUS, False, 0, id="a trailing slash"),
        pytest.param("/version", ANONYMOUS, False, 0, id="anonymous on any other path"),
        pytest.param("/apis/healthz/v1/readyz", ANONYMOUS, False, 0, id="a resource named like a health path"),
        pytest.param(
            "/apis/g/v1/widgets", User("x", groups=("system:unauthenticated",)), False, 0, id="unauthenticated by group"
        ),
        pytest.param("/apis/g/v1/widgets", User("x", groups=("system:masters",)), True, 0, id="masters"),
        pytest.param("/apis/g/v1/widgets", ALICE, False, 1, id="anybody else is reviewed"),
    ],
)
async def test_masters_and_health_paths_are_allowed_without_a_review(
    target: str, user: User, allowed: bool, reviews: int
) -> None:
    inner = RecordingAuthorizer()
    context = make_context(target=target, user=user)
    decision = await standard_authorizer(inner).authorize(request_attributes(user, context.info, context.query))
    assert decision.allowed is allowed
    assert len(inner.authorized) == reviews


def test_a_non_resource_request_is_authorized_by_path_and_verb() -> None:
    context = make_context("POST", "/version/", user=ALICE)
    attributes = request_attributes(ALICE, context.info, context.query)
    assert attributes == AccessAttributes(user=ALICE, verb="post", path="/version/")


def test_selectors_become_requirements_of_the_attributes() -> None:
    target = "/apis/g/v1/namespaces/ns/widgets?watch=1&fieldSelector=metadata.name%3Dx&labelSelector=a+in+(b),!c"
    context = make_context(target=target)
    attributes = request_attributes(ALICE, context.info, context.query)
    assert (attributes.verb, attributes.name) == ("watch", "x")
    assert attributes.field_requirements == (Requirement("metadata.name", "In", ("x",)),)
    assert attributes.label_requirements == (Requirement("a", "In", ("b",)), Requirement("c", "DoesNotExist"))


@pytest.mark.parametrize(
    "target",
    [
        pytest.param("/apis/g/v1/widgets?labelSelector=a=(", id="an invalid selector"),
        pytest.param("/apis/g/v1/namespaces/ns/widgets/w?labelSelector=a=b", id="a selector for one object"),
    ],
)
def test_invalid_and_irrelevant_selectors_are_omitted(target: str) -> None:
    context = make_context(target=target)
    assert request_attributes(ALICE, context.info, context.query).label_requirements == ()


def test_the_selectors_of_anonymous_users_are_not_parsed() -> None:
    """ATTACK-19"""
    context = make_context(target="/apis/g/v1/widgets?labelSelector=a&fieldSelector=a=b")
    attributes = request_attributes(ANONYMOUS, context.info, context.query)
    assert (attributes.label_requirements, attributes.field_requirements) == ((), ())


async def test_a_long_selector_is_parsed_in_a_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    """ATTACK-19"""
    threads: list[str] = []

    def parse(text: str) -> LabelSelector:
        threads.append(threading.current_thread().name)
        return parse_label_selector(text)

    monkeypatch.setattr("apiserver.request.options.parse_label_selector", parse)
    for text in ("a=b", f"a in ({','.join(f'b{number}' for number in range(300))})"):
        context = make_context(target=f"/apis/g/v1/widgets?labelSelector={text}", user=ALICE)
        recording = RecordingAuthorizer()
        with suppress(AccessDenied):
            await authorize_request(context, recording)
        [authorized] = recording.authorized
        assert [each.key for each in authorized.label_requirements] == ["a"]
    assert len(threads) == 2
    assert threads[0] == threading.current_thread().name != threads[1]


async def test_a_request_can_be_authorized_for_another_verb() -> None:
    authorizer = RecordingAuthorizer(Decision(allowed=True))
    context = make_context("PATCH", user=ALICE)
    await authorize_request(context, authorizer, verb="create")
    assert (authorizer.authorized[0].verb, authorizer.authorized[0].name) == ("create", "w")


async def test_a_decision_without_an_opinion_is_a_denial() -> None:
    with pytest.raises(AccessDenied) as raised:
        await authorize_request(make_context(user=ALICE), RecordingAuthorizer(Decision(reason="no rule")))
    assert raised.value.authorizer_reason == "no rule"


async def test_a_stale_decision_causes_a_warning() -> None:
    context = make_context(user=ALICE)
    await authorize_request(context, RecordingAuthorizer(Decision(allowed=True, stale=True)))
    assert context.warnings == [STALE_WARNING]
