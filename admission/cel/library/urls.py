"""Kubernetes' CEL functions for URLs, with the rules and messages of Go's net/url (pkg/cel/library/urls.go)."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any
from urllib.parse import parse_qs, quote, unquote_to_bytes

from admission.cel.library.opaque_types import (
    FunctionError,
    Functions,
    OpaqueValue,
    Type,
    expect,
    function,
    make,
    method,
    overload,
)

_URL = "kubernetes.URL"
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*\Z")
_CONTROL = re.compile(r"[\x00-\x1f\x7f]")
_BAD_ESCAPE = re.compile(r"%(?![0-9A-Fa-f]{2}).{0,2}", re.DOTALL)
_STRANGE_IN_HOST = re.compile(r"[^A-Za-z0-9._~!$&'()*+,;=:\[\]<>\"%\x80-\U0010ffff-]")
_PORT = re.compile(r"(?::[0-9]*)?\Z")
# of a path whose escapes have been found to be valid
_VALID_PATH = re.compile(r"[A-Za-z0-9!$&'()*+,;=:@\[\]/._~%-]*+")
# characters that Go leaves unescaped in a path
_PATH_SAFE = "/:@&=+$,;!'()*~-._"


def parse(text: str) -> OpaqueValue:
    """Parses an absolute URL or path, as Go's ParseRequestURI does; a fragment is dropped. Raises FunctionError."""
    if problem := request_uri_problem(text):
        raise FunctionError(f"URL parse error during conversion from string: {problem}")
    bare, _, _ = text.partition("#")
    scheme, rest = _split_scheme(bare)
    rest, _, query = rest.partition("?")
    authority, path = _split_authority(rest, scheme)
    host = authority.rpartition("@")[2]
    return make(
        _URL,
        scheme=scheme.lower(),
        host=_unescape(host) if not host.startswith("[") else host,
        path=_escaped_path(path),
        query=query,
    )


def request_uri_problem(text: str) -> str:
    """Go's error message if the text is not a request URI; empty if it is one."""
    why = _problem(text)
    return f"parse {_quoted(text)}: {why}" if why else ""


def _problem(text: str) -> str:
    if not text.isprintable() and _CONTROL.search(text):
        return "net/url: invalid control character in URL"
    if not text:
        return "empty url"
    if text == "*":
        return ""
    if text.startswith(":"):
        return "missing protocol scheme"
    scheme, rest = _split_scheme(text)
    rest, _, _ = rest.partition("?")
    if not rest.startswith("/"):
        return "" if scheme else "invalid URI for request"
    authority, path = _split_authority(rest, scheme)
    user, _, host = authority.rpartition("@")
    if user and re.search(r"[^A-Za-z0-9._:~!$&'()*+,;=%@-]", user):
        return "net/url: invalid userinfo"
    bad = _BAD_ESCAPE.search(path) or _BAD_ESCAPE.search(host)
    return f"invalid URL escape {_quoted(bad[0][:3])}" if bad else _host_problem(host)


def _host_problem(host: str) -> str:
    if host.startswith("["):
        if "]" not in host:
            return "missing ']' in host"
        port = host.rpartition("]")[2]
    else:
        if strange := _STRANGE_IN_HOST.search(host):
            return f"invalid character {_quoted(strange[0])} in host name"
        port = host[host.rfind(":") :] if ":" in host else ""
    return "" if _PORT.match(port) else f"invalid port {_quoted(port)} after host"


def _split_scheme(text: str) -> tuple[str, str]:
    scheme, colon, rest = text.partition(":")
    return (scheme, rest) if colon and _SCHEME.match(scheme) else ("", text)


def _split_authority(rest: str, scheme: str) -> tuple[str, str]:
    if not rest.startswith("//") or (not scheme and rest.startswith("///")):
        return "", rest if rest.startswith("/") else ""
    authority, slash, path = rest[2:].partition("/")
    return authority, slash + path


def _escaped_path(path: str) -> str:
    """The path as written if its encoding is valid; otherwise it is encoded again."""
    return path if _VALID_PATH.fullmatch(path) else quote(unquote_to_bytes(path), safe=_PATH_SAFE)


def _unescape(text: str) -> str:
    return unquote_to_bytes(text).decode("utf-8", "replace")


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    if not escaped.isprintable():
        escaped = "".join(each if each.isprintable() else f"\\x{ord(each):02x}" for each in escaped)
    return f'"{escaped}"'


def hostname(url: Mapping[str, Any]) -> str:
    host = str(url["host"])
    if host.startswith("["):
        return host[1:].partition("]")[0]
    return host.rpartition(":")[0] if ":" in host else host


def port(url: Mapping[str, Any]) -> str:
    host = str(url["host"]).rpartition("]")[2]
    return host.rpartition(":")[2] if ":" in host else ""


def query(url: Mapping[str, Any]) -> dict[str, list[str]]:
    """The query parameters. Like Go, it drops those with a semicolon or an invalid escape."""
    settings = [each for each in url["query"].split("&") if ";" not in each and not _BAD_ESCAPE.search(each)]
    return parse_qs("&".join(settings), keep_blank_values=True)


def functions() -> Functions:
    def of(value: object) -> Mapping[str, Any]:
        return expect(value, _URL)

    text = Type.STRING
    return (
        function("url", overload(Type.MAP, text, impl=parse)),
        function("isURL", overload(Type.BOOL, text, impl=lambda value: not request_uri_problem(value))),
        method("getScheme", text, impl=lambda value: of(value)["scheme"]),
        method("getHost", text, impl=lambda value: of(value)["host"]),
        method("getHostname", text, impl=lambda value: hostname(of(value))),
        method("getPort", text, impl=lambda value: port(of(value))),
        method("getEscapedPath", text, impl=lambda value: of(value)["path"]),
        method("getQuery", Type.Map(text, Type.List(text)), impl=lambda value: query(of(value))),
    )
