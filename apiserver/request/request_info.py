"""Parses the method and the raw path of a request into RequestInfo (WIRE-B3 to WIRE-B6)."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, TypeVar, cast
from urllib.parse import unquote, unquote_plus

from apiserver.meta.errors import StatusError
from apiserver.meta.selectors import MAX_SELECTOR_LENGTH

MAX_PARAMETERS: Final = 100
"""The parameters of one query. Kubernetes has fewer than 20."""

T = TypeVar("T")

# "resourceVersionMatch" with every character escaped
_MAX_KEY = 60
# The longest path of a resource: apis, group, version, watch, namespaces, namespace, resource, name, subresource.
_MAX_PARTS = 10
_NAME_TERM = re.compile(r"(?:^|,)metadata\.name==?(?P<name>[^,]*)")
_VERBS = {"POST": "create", "PUT": "update", "PATCH": "patch", "DELETE": "delete", "GET": "get", "HEAD": "get"}
_COLLECTION_VERBS = {"get": "list", "delete": "deletecollection"}
_FALSE = ("0", "false")
# none of the resources that this project serves itself has them
_STREAMS = frozenset({"attach", "exec", "log", "portforward", "proxy"})
_INVALID_ESCAPE = re.compile(r"%(?![0-9A-Fa-f]{2})")


class Query:
    """Query parameters, parsed as in Go: the first value of a repeated scalar wins, and one with an invalid escape is
    dropped (WIRE-D54).

    Values are decoded when they are used: until the request is authenticated, that is only what its verb depends on.
    """

    __slots__ = ("_parsed", "_raw", "has_too_many")

    def __init__(self, raw: str = "") -> None:
        self._raw: dict[str, list[str]] = {}
        self._parsed: dict[str, object] = {}
        pairs = raw.split("&", MAX_PARAMETERS) if raw else ()
        self.has_too_many = len(pairs) > MAX_PARAMETERS
        """True if parameters beyond the first MAX_PARAMETERS are missing."""
        for pair in pairs[:MAX_PARAMETERS]:
            if pair and ";" not in pair and not _INVALID_ESCAPE.search(pair):
                key, _, value = pair.partition("=")
                if len(key) <= _MAX_KEY:
                    self._raw.setdefault(unquote_plus(key), []).append(value)

    def __contains__(self, key: str) -> bool:
        return key in self._raw

    def get(self, key: str, default: str = "") -> str:
        values = self._raw.get(key)
        return unquote_plus(values[0]) if values else default

    def all(self, key: str) -> list[str]:
        values = self._raw.get(key)
        return [unquote_plus(value) for value in values] if values else []

    def flag(self, key: str) -> bool | None:
        """Returns None if the parameter is absent, False for 0 and false, True for any other value, even an empty
        one."""
        if key not in self._raw:
            return None
        return self.get(key).lower() not in _FALSE

    def size(self, key: str) -> int:
        """The length of the first value before it is decoded."""
        values = self._raw.get(key)
        return len(values[0]) if values else 0

    def parsed(self, key: str, parse: Callable[[str], T]) -> T:
        """The first value, parsed once for all callers, which must pass the same function. Raises its errors."""
        outcome = self._parsed.get(key)
        if outcome is None:
            try:
                outcome = parse(self.get(key))
            except StatusError as error:
                outcome = error
            self._parsed[key] = outcome
        if isinstance(outcome, StatusError):
            raise outcome
        return cast(T, outcome)


@dataclass(frozen=True, slots=True)
class RequestInfo:
    """The resource and verb of a request. Non-resource requests have only `path` and the lower-case method as `verb`.

    `collection_path` is set if the path names no object. `name` may still be set, from
    `fieldSelector=metadata.name=x`, for authorization (WIRE-B5).
    """

    method: str
    path: str
    verb: str
    is_resource: bool = False
    group: str = ""
    version: str = ""
    namespace: str = ""
    resource: str = ""
    subresource: str = ""
    name: str = ""
    collection_path: bool = False
    extra_parts: tuple[str, ...] = ()
    """Path segments after the subresource. No resource has any."""
    malformed: bool = False
    """The path has an invalid escape, so the resource is unknown."""

    @property
    def api_version(self) -> str:
        return f"{self.group}/{self.version}" if self.group else self.version

    @property
    def is_watch(self) -> bool:
        return self.verb == "watch"

    @property
    def is_long_running(self) -> bool:
        """True for watches and streams, which kube-apiserver neither counts among other requests nor ends after a
        minute (its `longRunningRE`)."""
        return self.is_watch or self.subresource in _STREAMS


def parse_request_info(method: str, raw_path: str, query: Query) -> RequestInfo:
    """Parses a method and an escaped path without its query. Raises ValueError for an invalid escape.

    As in Go, the path is split after it has been decoded: `x%2Fstatus` is the status of x.
    """
    path = raw_path if raw_path.isascii() and "%" not in raw_path else _decoded(raw_path)
    parts = path.strip("/").split("/", _MAX_PARTS)
    non_resource = RequestInfo(method=method, path=path, verb=method.lower())
    if parts[0] == "apis" and len(parts) >= 4:
        group, version, rest = parts[1], parts[2], parts[3:]
    elif parts[0] == "api" and len(parts) >= 3:
        group, version, rest = "", parts[1], parts[2:]
    else:
        return non_resource
    prefix_watch = rest[0] == "watch" and len(rest) > 1
    if prefix_watch:
        rest = rest[1:]
    namespace = ""
    if rest[0] == "namespaces" and len(rest) > 1:
        namespace = rest[1]
        # /namespaces/x/things addresses things; /namespaces/x and its subresources address the namespace
        if len(rest) > 2 and rest[2] not in ("status", "finalize"):
            rest = rest[2:]
    resource, name = rest[0], rest[1] if len(rest) > 1 else ""
    subresource = rest[2] if len(rest) > 2 else ""
    collection = not name
    verb = _verb(method, query, collection=collection, prefix_watch=prefix_watch)
    if collection and verb in ("list", "watch", "deletecollection"):
        name = _single_name(query)
    return RequestInfo(
        method=method,
        path=path,
        verb=verb,
        is_resource=True,
        group=group,
        version=version,
        namespace=namespace,
        resource=resource,
        subresource=subresource,
        name=name,
        collection_path=collection,
        extra_parts=tuple(rest[3:]),
    )


def _verb(method: str, query: Query, *, collection: bool, prefix_watch: bool) -> str:
    """As k8s.io/apiserver's requestinfo.go has it: the prefix is a verb of its own, whatever the method, and the
    parameter makes a watch only of a list. The GET of a named object stays one."""
    if prefix_watch:
        return "watch"
    verb = _VERBS.get(method, method.lower())
    if not collection:
        return verb
    return "watch" if verb == "get" and query.flag("watch") else _COLLECTION_VERBS.get(verb, verb)


def _decoded(raw_path: str) -> str:
    """The path without escapes. Bytes that are not UTF-8 become U+FFFD, as in the JSON that Go writes; no object has
    such a name. Raises ValueError."""
    if _INVALID_ESCAPE.search(raw_path):
        raise ValueError("invalid escape in a path")
    # the HTTP parser has decoded other bytes with surrogates
    return unquote(raw_path.encode("utf-8", "surrogateescape").decode("utf-8", "replace"), errors="replace")


def _single_name(query: Query) -> str:
    """Returns the x of a `metadata.name=x` term of the field selector if it is a valid path segment (WIRE-B5)."""
    # three characters for each that is escaped
    if not 0 < query.size("fieldSelector") <= 3 * MAX_SELECTOR_LENGTH:
        return ""
    for found in _NAME_TERM.finditer(query.get("fieldSelector")):
        value = found["name"]
        if value and value not in (".", "..") and "/" not in value and "%" not in value:
            return value
    return ""
