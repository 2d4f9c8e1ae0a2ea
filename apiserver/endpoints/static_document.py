"""Documents that do not change while the process runs, such as discovery, OpenAPI and /version.

They are encoded once and served with an ETag. The bytes depend only on the content, so that all replicas return the
same ones (WIRE-C38).
"""

from __future__ import annotations

import gzip
import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field

import yaml
from aiohttp import web

from apiserver.encoding.accept_header import accept_clauses
from apiserver.encoding.negotiation import JSON
from apiserver.meta import errors
from apiserver.request.context import RequestContext

# below this size a compressed copy costs more memory than it saves traffic
_COMPRESSED_FROM = 16 * 1024
_Dumper = getattr(yaml, "CSafeDumper", yaml.SafeDumper)


def dump_yaml(document: object) -> bytes:
    text: str = yaml.dump(document, Dumper=_Dumper, allow_unicode=True, sort_keys=True)
    return text.encode()


@dataclass(frozen=True, slots=True)
class StaticDocument:
    """One representation of a document: its bytes, the digest for the ETag, and the gzipped bytes if it is large."""

    body: bytes
    content_type: str = JSON
    digest: str = field(init=False)
    """Upper-case hex SHA-512 of the body."""
    compressed: bytes = field(init=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "digest", hashlib.sha512(self.body).hexdigest().upper())
        # without a timestamp, so that all replicas compress to the same bytes
        compressed = gzip.compress(self.body, mtime=0) if len(self.body) >= _COMPRESSED_FROM else b""
        object.__setattr__(self, "compressed", compressed)

    @property
    def etag(self) -> str:
        return f'"{self.digest}"'

    def respond(self, context: RequestContext, headers: Mapping[str, str]) -> web.Response:
        """200 with the body, or 304 if the client's copy is current. `headers` are added to ETag and Vary."""
        sent = {"Etag": self.etag, "Vary": "Accept, Accept-Encoding" if self.compressed else "Accept", **headers}
        if _etag_matches(context.http.headers.get("If-None-Match", ""), self.etag):
            return web.Response(status=304, headers=sent)
        sent["Content-Type"] = self.content_type
        if self.compressed and "gzip" in context.http.headers.get("Accept-Encoding", ""):
            return web.Response(body=self.compressed, headers={**sent, "Content-Encoding": "gzip"})
        return web.Response(body=self.body, headers=sent)


def _etag_matches(if_none_match: str, etag: str) -> bool:
    candidates = [candidate.strip().removeprefix("W/") for candidate in if_none_match.split(",")]
    return etag in candidates or candidates == ["*"]


def require_get(context: RequestContext) -> None:
    """Raises MethodNotAllowed for anything but GET, HEAD included (WIRE-C32)."""
    if context.info.method != "GET":
        raise errors.MethodNotAllowed


def require_json(context: RequestContext) -> None:
    """Raises NotAcceptable if the client does not accept JSON; the parameters of clauses are ignored (WIRE-C35)."""
    clauses = accept_clauses(context.http.headers.get("Accept", ""))
    if not any(clause.matches(JSON) for clause in clauses):
        raise errors.NotAcceptable(f"only the following media types are accepted: {JSON}")
