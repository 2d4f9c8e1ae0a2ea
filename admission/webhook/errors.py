"""Failures of webhook calls, with the messages of Kubernetes and Go (WIRE-H46)."""

from __future__ import annotations

import ssl

from aiohttp import (
    ClientConnectorCertificateError,
    ClientConnectorDNSError,
    ClientConnectorError,
    ClientConnectorSSLError,
    ClientError,
    ServerDisconnectedError,
)

from apiserver.meta.errors import InternalError

# OpenSSL's X509_V_ERR_* codes
_EXPIRED = frozenset((9, 10))
_UNKNOWN_AUTHORITY = frozenset((2, 18, 19, 20, 21))
_OTHER_NAME = frozenset((62, 64))
_GENERIC = {
    400: "the server rejected our request for an unknown reason",
    401: "the server has asked for the client to provide credentials",
    404: "the server could not find the requested resource",
    405: "the server does not allow this method on the requested resource",
    409: "the server reported a conflict",
    422: "the server rejected our request due to an error in our request",
    429: "the server has received too many requests and has asked us to try again later",
    503: "the server is currently unable to handle the request",
    504: "the server was unable to return a response in the time allotted, but may still be processing the request",
}
_BODY_AS_MESSAGE = frozenset((403, 406, 415))
_NOT_ACCEPTABLE = "the server was unable to respond with a content type that the client supports"


class CallFailed(Exception):
    """The call returned no usable response, so failurePolicy applies. `code` is for metrics."""

    def __init__(self, reason: str, *, code: int = 503) -> None:
        super().__init__(reason)
        self.code = code


class Unroutable(OSError):
    """A Service has no address for the port. The text is that of Kubernetes."""


def failed_call_error(name: str, failure: CallFailed) -> InternalError:
    """The error for the client if failurePolicy is Fail."""
    return InternalError(f'failed calling webhook "{name}": {failure}')


def transport_error_message(error: Exception, url: str) -> str:
    """The message of Go's HTTP client for a transport error."""
    return f'Post "{url}": {_cause(error)}'


def _cause(error: Exception) -> str:
    if isinstance(error, TimeoutError):
        return "context deadline exceeded"
    if isinstance(error, ClientConnectorCertificateError):
        return f"tls: failed to verify certificate: x509: {_verification(error.certificate_error, error.host)}"
    if isinstance(error, ClientConnectorDNSError):
        cause = error.os_error
        return str(cause) if isinstance(cause, Unroutable) else f"dial tcp: lookup {error.host}: no such host"
    if isinstance(error, ClientConnectorSSLError):
        return f"tls: {_handshake(error.os_error)}"
    if isinstance(error, ClientConnectorError):
        return f"dial tcp {_address(error)}: connect: {_os_error_message(error.os_error)}"
    if isinstance(error, ServerDisconnectedError):
        return "EOF"
    if isinstance(error, OSError):
        return _os_error_message(error)
    assert isinstance(error, ClientError)
    return f"net/http: HTTP/1.x transport connection broken: {error}"


def _verification(error: Exception, host: str) -> str:
    code = getattr(error, "verify_code", 0)
    if code in _UNKNOWN_AUTHORITY:
        return "certificate signed by unknown authority"
    if code in _EXPIRED:
        return "certificate has expired or is not yet valid"
    if code in _OTHER_NAME:
        return f"certificate is not valid for {host}"
    return str(getattr(error, "verify_message", "")) or "certificate is not valid"


def _handshake(error: OSError) -> str:
    reason = (error.reason or "") if isinstance(error, ssl.SSLError) else ""
    if reason in ("WRONG_VERSION_NUMBER", "HTTP_REQUEST", "RECORD_LAYER_FAILURE"):
        return "first record does not look like a TLS handshake"
    return reason.lower().replace("_", " ") or "handshake failure"


def _address(error: ClientConnectorError) -> str:
    host = f"[{error.host}]" if ":" in error.host else error.host
    return f"{host}:{error.port}"


def _os_error_message(error: OSError) -> str:
    """The C library's error message, in lower case as Go writes it."""
    if isinstance(error, ConnectionRefusedError):
        return "connection refused"
    if isinstance(error, ConnectionResetError):
        return "connection reset by peer"
    return (error.strerror or "no connection").lower()


def status_code_message(code: int, text: str) -> str:
    """The message of client-go for an error response without a Status; `text` is its body, or `unknown` if not text."""
    if code in _BODY_AS_MESSAGE:
        return _NOT_ACCEPTABLE if code == 406 and text == "unknown" else text
    if code in _GENERIC:
        return _GENERIC[code]
    if code >= 500:
        return f"an error on the server ({_quoted(text)}) has prevented the request from succeeding"
    return f"the server responded with the status code {code} but did not return more information"


def _quoted(text: str) -> str:
    escapes = {"\\": "\\\\", '"': '\\"', "\n": "\\n", "\r": "\\r", "\t": "\\t"}
    return '"' + "".join(escapes.get(each, each) for each in text) + '"'
