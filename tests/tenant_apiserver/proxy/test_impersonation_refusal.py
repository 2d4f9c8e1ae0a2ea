"""403s of the cluster that are about the account of the proxy: callers get 503. Those about callers pass."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from aiohttp import web

from apiserver.meta.go_quote import go_quote
from apiserver.request.context import Handler, RequestContext
from tenant_apiserver.proxy.impersonation_refusal import is_refusal_of
from tests.tenant_apiserver.proxy.proxied_upstream import OWN_ACCOUNT, RunningProxy, proxied_upstream

LIST = f'namespaces is forbidden: User "{OWN_ACCOUNT}" cannot impersonate-on:user-info:list resource "namespaces" in'
USER = f'users "alice" is forbidden: User "{OWN_ACCOUNT}" cannot impersonate resource "users" in API group ""'
AUTHENTICATION = "authentication.k8s.io"
CLASSIFIED = "X-Kubernetes-PF-FlowSchema-UID: a015ec33"


def refusal(message: str, *headers: str) -> bytes:
    body = json.dumps({"kind": "Status", "code": 403, "message": message}).encode()
    head = ["HTTP/1.1 403 Forbidden", "Content-Type: application/json", f"Content-Length: {len(body)}", *headers]
    return "\r\n".join([*head, "", ""]).encode() + body


def in_protobuf(message: str) -> bytes:
    text = message.encode()
    status = b"\x12\x07Failure\x1a" + bytes([len(text) & 0x7F | 0x80, len(text) >> 7]) + text + b"0\x93\x03"
    raw = b"\x12" + bytes([len(status) & 0x7F | 0x80, len(status) >> 7]) + status
    body = b"k8s\0\n\x0c\n\x02v1\x12\x06Status" + raw
    return b"HTTP/1.1 403 Forbidden\r\nContent-Length: %d\r\n\r\n%s" % (len(body), body)


@pytest.mark.parametrize(
    "message",
    [
        pytest.param(USER, id="of a user"),
        pytest.param(LIST, id="constrained"),
        pytest.param(f'forbidden: User "{OWN_ACCOUNT}" cannot impersonate-on:user-info:get path "/version"', id="path"),
        pytest.param(
            f'users.{AUTHENTICATION} "a" is forbidden: User "{OWN_ACCOUNT}" cannot impersonate:user-info resource "',
            id="constrained identity",
        ),
        pytest.param(USER.replace('"alice"', '"al\\"ice"'), id="quoted name"),
    ],
)
def test_a_refusal_of_the_own_account_is_recognized(message: str) -> None:
    assert is_refusal_of(OWN_ACCOUNT, message)


@pytest.mark.parametrize(
    "message",
    [
        pytest.param(
            'users "root" is forbidden: User "alice" cannot impersonate resource "users" in', id="of a caller"
        ),
        pytest.param(f'pods "a" is forbidden: User "{OWN_ACCOUNT}" cannot get resource "pods"', id="another verb"),
        pytest.param(f'pods {go_quote(USER)} is forbidden: User "alice" cannot get resource', id="name of an object"),
        pytest.param(f"pods is forbidden: User {go_quote(USER)} cannot get resource", id="name of a user"),
        pytest.param(f"pods \"a\" is forbidden: ValidatingAdmissionPolicy 'a' denied request: {USER}", id="policy"),
        pytest.param(f'admission webhook "a" denied the request: {USER}', id="webhook"),
        pytest.param(USER.replace(OWN_ACCOUNT, f"{OWN_ACCOUNT}-2"), id="a similar account"),
    ],
)
def test_the_refusal_of_a_caller_is_none_of_the_own_account(message: str) -> None:
    assert not is_refusal_of(OWN_ACCOUNT, message)


@pytest.mark.parametrize(
    "answer",
    [
        pytest.param(refusal(USER), id="json"),
        pytest.param(refusal(LIST), id="constrained"),
        pytest.param(in_protobuf(LIST), id="protobuf"),
    ],
)
@pytest.mark.parametrize("headers", [{}, {"Connection": "Upgrade", "Upgrade": "websocket"}], ids=["plain", "upgrade"])
async def test_callers_get_503_that_is_not_about_them(
    proxy: RunningProxy, answer: bytes, headers: dict[str, str]
) -> None:
    """kubectl does not retry it: it has no Retry-After."""
    proxy.upstream.answer = proxy.upstream.refusal = answer
    async with proxy.session() as session:
        response = await session.get("/api/v1/namespaces", headers=headers)
        assert response.status == 503
        message = (await response.json())["message"]
    assert message.startswith("the cluster does not let the proxy impersonate its callers")
    assert OWN_ACCOUNT not in message
    assert "Retry-After" not in response.headers
    [logged] = proxy.refused
    assert OWN_ACCOUNT in logged


@pytest.mark.parametrize(
    ("path", "answer"),
    [
        pytest.param("/api/v1/namespaces", refusal('namespaces is forbidden: User "alice" cannot list'), id="the list"),
        pytest.param("/api/v1/namespaces/a/services/b/proxy/", refusal(USER), id="an application of a tenant"),
        pytest.param("/apis/g/v1/x%20is%20forbidden:%20User", refusal(USER), id="a kind that is a message"),
        pytest.param("/api/v1/namespaces", refusal(USER, CLASSIFIED), id="after the impersonation"),
        pytest.param("/api/v1/namespaces", refusal(f"{USER}").replace(b'"message"', b'"massage"'), id="no message"),
    ],
)
async def test_the_callers_own_403_passes(proxy: RunningProxy, path: str, answer: bytes) -> None:
    proxy.upstream.answer = answer
    async with proxy.session() as session:
        response = await session.get(path)
        assert (response.status, await response.read()) == (403, answer.partition(b"\r\n\r\n")[2])
    assert proxy.refused == []


@pytest.mark.parametrize(
    ("message", "status"),
    [
        pytest.param('namespaces is forbidden: User "alice" cannot list resource "namespaces"', 200, id="the list"),
        pytest.param(USER, 503, id="the impersonation"),
        pytest.param(LIST, 503, id="the constrained impersonation"),
    ],
)
async def test_a_refused_impersonation_is_not_answered_instead_of_the_cluster(
    tmp_path: Path, message: str, status: int
) -> None:
    async def answer(context: RequestContext) -> web.StreamResponse:
        return web.Response(text="own")

    async def own_answer(context: RequestContext) -> Handler | None:
        return answer

    async with proxied_upstream(tmp_path, own_answer=own_answer) as proxy:
        proxy.upstream.answer = refusal(message)
        async with proxy.session() as session:
            assert (await session.get("/api/v1/namespaces")).status == status


def chunked(answer: bytes, padding: int = 0) -> bytes:
    """As a kube-apiserver sends more than 2 KiB. JSON may have spaces at its end."""
    head, _, body = answer.partition(b"\r\n\r\n")
    lines = [each for each in head.split(b"\r\n") if not each.startswith(b"Content-Length")]
    body += b" " * padding
    return b"\r\n".join([*lines, b"Transfer-Encoding: chunked", b"", b"%x" % len(body), body, b"0", b"", b""])


@pytest.mark.parametrize(
    ("path", "answer", "status"),
    [
        pytest.param("/api/v1/namespaces", chunked(refusal("no"), 3000), 200, id="small"),
        pytest.param("/api/v1/namespaces?watch=1", chunked(refusal("no"), 3000), 200, id="a watch"),
        pytest.param("/api/v1/namespaces", chunked(refusal(USER), 3000), 503, id="the impersonation"),
        pytest.param("/api/v1/namespaces", chunked(refusal("no"), 200_000), 403, id="long"),
        pytest.param("/api/v1/namespaces?watch=1", chunked(refusal("no"), 200_000), 403, id="a long one of a watch"),
        pytest.param("/api/v1/namespaces/a/services/b/proxy/", chunked(refusal("no")), 403, id="an application"),
    ],
)
async def test_a_403_of_unknown_length_is_judged(tmp_path: Path, path: str, answer: bytes, status: int) -> None:
    async def own(context: RequestContext) -> web.StreamResponse:
        return web.Response(text="own")

    async def own_answer(context: RequestContext) -> Handler | None:
        return own

    async with proxied_upstream(tmp_path, own_answer=own_answer) as proxy:
        proxy.upstream.answer = answer
        async with proxy.session() as session:
            response = await session.get(path)
            body = await response.read()
    assert response.status == status
    if status == 403:
        assert body == answer.split(b"\r\n\r\n", 1)[1].split(b"\r\n")[1]


async def test_a_403_of_unknown_length_that_stands_is_relayed(proxy: RunningProxy) -> None:
    proxy.upstream.answer = chunked(refusal("no"), 3000)
    async with proxy.session() as session:
        response = await session.get("/api/v1/namespaces")
        assert (response.status, len(await response.read())) == (403, len(refusal("no").split(b"\r\n\r\n")[1]) + 3000)
