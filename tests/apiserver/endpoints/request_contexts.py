"""Request contexts for tests of filters and handlers, without a network."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any
from unittest.mock import Mock

from aiohttp import web
from aiohttp.test_utils import make_mocked_request
from multidict import CIMultiDict
from OpenSSL import crypto

from apiserver.request import request_info
from apiserver.request.context import RequestContext, User
from apiserver.request.request_info import Query
from apiserver.tls.certificates import KeyPair, parse_bundle

ALICE = User(name="alice", groups=("system:authenticated",))


class Tls:
    """A fake OpenSSL connection: the peer's certificate and the intermediates that it sent."""

    def __init__(self, pair: KeyPair, intermediates: Sequence[KeyPair] = ()) -> None:
        first, *others = (
            crypto.X509.from_cryptography(parse_bundle(each.certificate)[0]) for each in (pair, *intermediates)
        )
        self.get_peer_certificate = lambda: first
        self.get_peer_cert_chain = lambda: others


def make_context(
    method: str = "GET",
    target: str = "/apis/example.org/v1/namespaces/ns/widgets/w",
    headers: Mapping[str, str] | Sequence[tuple[str, str]] = (),
    *,
    tls: Tls | None = None,
    user: User | None = None,
) -> RequestContext:
    transport = Mock()
    extra_info: dict[str, Any] = {"ssl_object": tls, "peername": ("192.0.2.1", 4711)}
    transport.get_extra_info = extra_info.get
    http = make_mocked_request(
        method, target, headers=CIMultiDict(headers), transport=transport, writer=Mock(output_size=0)
    )
    path, _, raw_query = target.partition("?")
    query = Query(raw_query)
    context = RequestContext(
        http=http, info=request_info.parse_request_info(method, path, query), query=query, audit_id="audit-1"
    )
    if user is not None:
        context.user = user
    return context


class FakeConnection:
    """A connection whose requests have heads of this size; it records who it belongs to."""

    def __init__(self, head: int = 0) -> None:
        self.head = head
        self.owners: list[str] = []

    def __call__(self, _: web.BaseRequest) -> FakeConnection:
        return self

    def identify(self, user: User) -> None:
        self.owners.append(user.name)

    def claim_head(self) -> int:
        return self.head


async def ok(context: RequestContext) -> web.StreamResponse:
    """A handler that answers 200."""
    return web.Response(body=b"ok")
