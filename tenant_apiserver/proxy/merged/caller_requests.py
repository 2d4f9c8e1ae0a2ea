"""GETs of the cluster as the caller of one request, whose answers are read here."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from functools import partial
from typing import Final, TypeVar

from aiohttp import ClientError, ClientResponse
from multidict import CIMultiDict

from apiserver.encoding.negotiation import JSON, MediaType, negotiate
from apiserver.encoding.offload import offload_if_large
from apiserver.meta.errors import ServiceUnavailable, TooManyRequests
from apiserver.meta.resource import Object
from apiserver.request.bytes_in_flight import BytesInFlight, Reservation
from apiserver.request.context import RequestContext
from registry.cluster.answer import decode_answer
from registry.cluster.interface import ClusterUnreachable
from registry.cluster.upstream import UpstreamClient
from registry.cluster.watch_decoder import WatchDecoder
from tenant_apiserver.proxy.identity import impersonation_headers
from tenant_apiserver.proxy.impersonation_refusal import ImpersonationRefusals
from tenant_apiserver.proxy.merged.packed_list import PackedList, unpack_answer

T = TypeVar("T")
_OK, _UNAUTHORIZED, _FORBIDDEN = 200, 401, 403
_AGENT: Final = "tenant-apiserver-proxy"
_TOO_LARGE: Final = (
    "the lists of this user that are being merged take more memory than the proxy may use for one user: "
    "read them in pages, with a limit, and fewer at a time"
)


class CallerRequests:
    """All requests have the identity of the caller's, and its form, in JSON: whole objects, Table or
    PartialObjectMetadata, of objects or lists. `media` is that of the caller."""

    def __init__(
        self,
        upstream: UpstreamClient,
        refusals: ImpersonationRefusals,
        context: RequestContext,
        waiting: BytesInFlight | None = None,
    ) -> None:
        """`waiting` bounds the bytes of events of watches. Raises NotAcceptable for a caller who accepts no JSON, nor
        YAML of a list, and a 403 for an identity that headers cannot carry."""
        self.media = negotiate(context.http.headers.get("Accept", ""), watch=context.info.is_watch)
        self._upstream = upstream
        self._refusals = refusals
        self._info = context.info
        self._headers = CIMultiDict(
            {
                "Accept": _accept(self.media),
                "Audit-ID": context.audit_id,
                "User-Agent": context.http.headers.get("User-Agent", _AGENT),
            }
        )
        self._headers.extend(impersonation_headers(context.user))
        self._reservation = context.reservation
        self._waiting, self._user = waiting, context.user.name

    async def get_one(self, target: str) -> Object:
        """The single object at a path: the form of a list has another name. Its JSON counts as memory of the user's
        request until the request ends. Raises as `list`."""
        accept = _accept(replace(self.media, transform=self.media.transform.removesuffix("List")))
        found, _ = await self._get(target, decode_answer, accept)
        return found

    async def list(self, target: str) -> PackedList:
        """The list at a path and query. It counts as memory of the user's request until the request ends. Raises the
        StatusError that the cluster answers, ServiceUnavailable, and TooManyRequests."""
        packed, size = await self._get(target, unpack_answer)
        try:
            self._reserve(max(packed.size - size, 0))
        except TooManyRequests:
            self._reservation.subtract(size)
            raise
        self._reservation.subtract(max(size - packed.size, 0))
        return packed

    def release(self, packed: PackedList) -> None:
        """Of a list that is no longer needed."""
        self._reservation.subtract(packed.size)

    @asynccontextmanager
    async def held(self, target: str) -> AsyncIterator[PackedList]:
        """As `list`, of a list that is in memory for the block only."""
        packed = await self.list(target)
        try:
            yield packed
        finally:
            self.release(packed)

    @asynccontextmanager
    async def events(self, target: str) -> AsyncIterator[AsyncIterator[bytes]]:
        """The lines of a watch, each a JSON document. Raises the StatusError of a watch that is refused,
        ServiceUnavailable if it breaks off, and TooManyRequests."""
        async with self._open(target) as response:
            if response.status != _OK:
                body = await response.read()
                self._check_refusal(response, body)
                decode_answer(response.status, response.reason or "", body)
            waiting = Reservation(self._waiting, self._user)
            try:
                yield _lines(response, waiting)
            finally:
                waiting.resize(0)

    async def _get(self, target: str, decode: Callable[[int, str, bytes], T], accept: str = "") -> tuple[T, int]:
        """Also returns the size of the JSON, which is reserved."""
        pieces, size = list[bytes](), 0
        try:
            async with self._open(target, accept) as response:
                async for piece in response.content.iter_any():
                    self._reserve(len(piece))
                    size += len(piece)
                    pieces.append(piece)
            body = b"".join(pieces)
            pieces.clear()
            self._check_refusal(response, body)
            decoding = partial(decode, response.status, response.reason or "", body)
            return await offload_if_large(decoding, size=size), size
        except BaseException:
            self._reservation.subtract(size)
            raise

    def _check_refusal(self, response: ClientResponse, body: bytes) -> None:
        """Raises ServiceUnavailable for a refusal that is none of the caller's rights."""
        if response.status == _FORBIDDEN:
            self._refusals.check_answer(self._info, response.headers, body)

    def _reserve(self, count: int) -> None:
        try:
            self._reservation.add(count)
        except TooManyRequests as error:
            raise TooManyRequests(_TOO_LARGE) from error

    @asynccontextmanager
    async def _open(self, target: str, accept: str = "") -> AsyncIterator[ClientResponse]:
        headers = CIMultiDict(self._headers)
        if accept:
            headers["Accept"] = accept
        try:
            async with self._upstream.forward("GET", target, headers, None) as response:
                if response.status == _UNAUTHORIZED:
                    await self._upstream.renew_credentials()
                    raise ServiceUnavailable("the cluster does not accept the credentials of the proxy", retry_after=1)
                yield response
        except ClusterUnreachable as error:
            raise ServiceUnavailable("the cluster is unavailable: it does not answer", retry_after=1) from error
        except (ClientError, TimeoutError) as error:
            raise ServiceUnavailable("the response of the cluster broke off", retry_after=1) from error


async def _lines(response: ClientResponse, waiting: Reservation) -> AsyncIterator[bytes]:
    """`waiting` is for an event that has not arrived as a whole."""
    decoder = WatchDecoder()
    async for chunk in response.content.iter_any():
        for line in decoder.feed(chunk):
            # it is of those who take it
            waiting.resize(0)
            yield line
        waiting.resize(decoder.buffered)


def _accept(media: MediaType) -> str:
    return f"{JSON};as={media.transform};g=meta.k8s.io;v={media.version}" if media.transform else JSON
