"""API errors. Handlers raise StatusError; any other exception becomes a logged 500.

Texts, reasons and details are those of k8s.io/apimachinery/pkg/api/errors, because clients match on them.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

from apiserver.meta.go_quote import go_quote
from apiserver.meta.name_validation import path_segment_errors
from apiserver.meta.resource import GroupKind, GroupResource

# field.ErrorType (the reason of the cause) -> text
_FIELD_ERRORS = {
    "FieldValueRequired": "Required value",
    "FieldValueInvalid": "Invalid value",
    "FieldValueTypeInvalid": "Invalid value",
    "FieldValueNotSupported": "Unsupported value",
    "FieldValueForbidden": "Forbidden",
    "FieldValueDuplicate": "Duplicate value",
    "FieldValueNotFound": "Not found",
    "FieldValueTooLong": "Too long",
    "FieldValueTooMany": "Too many",
    "InternalError": "Internal error",
}
# Limits the text of an Invalid: every part of a value may cause an error that quotes the whole value (ATTACK-13).
_MAX_CAUSES_TEXT = 256 * 1024
_MAX_CHOICES_TEXT = 8 * 1024
_MAX_TEXTS = 100
_MAX_TEXT = 256 * 1024
_WITHOUT_VALUE = {"FieldValueRequired", "FieldValueForbidden", "FieldValueTooLong", "InternalError"}
OMITTED = object()
"""The value of an error whose message does not quote one (field.OmitValueType)."""
NO_FIELD = "<nil>"
"""The field of an error about the whole object, as Go prints a nil path."""


@dataclass(frozen=True, slots=True)
class FieldError:
    """An error in one field; `message` is the message of the cause, without the path of the field."""

    reason: str
    field: str
    value: object = None
    detail: str = ""

    @property
    def message(self) -> str:
        text = _FIELD_ERRORS[self.reason]
        if self.reason not in _WITHOUT_VALUE and self.value is not OMITTED:
            text += f": {quoted(self.value)}"
        return f"{text}: {self.detail}" if self.detail else text

    def __str__(self) -> str:
        return f"{self.field}: {self.message}"


def quoted(value: object) -> str:
    """Returns a value as Go's messages quote it."""
    if value is None:
        return "null"
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"), default=str)


def required(field: str, detail: str = "") -> FieldError:
    return FieldError("FieldValueRequired", field, "", detail)


def invalid(field: str, value: object, detail: str = "") -> FieldError:
    return FieldError("FieldValueInvalid", field, value, detail)


def type_invalid(field: str, value: object, detail: str = "") -> FieldError:
    return FieldError("FieldValueTypeInvalid", field, value, detail)


def forbidden(field: str, detail: str) -> FieldError:
    return FieldError("FieldValueForbidden", field, "", detail)


def not_supported(field: str, value: object, supported: Sequence[str]) -> FieldError:
    return FieldError("FieldValueNotSupported", field, value, supported_values(supported))


def supported_values(choices: Iterable[str]) -> str:
    """The detail of an error about a value that is none of the choices. Choices beyond 8 KiB of text are counted."""
    named: list[str] = []
    size = omitted = 0
    for each in choices:
        if size > _MAX_CHOICES_TEXT:
            omitted += 1
            continue
        named.append(quoted(each))
        size += len(named[-1])
    text = f"supported values: {', '.join(named)}"
    return f"{text}, and {omitted} more" if omitted else text


def first_texts(texts: Iterable[str]) -> Iterator[str]:
    """The first of `texts`: at most 100, and none after 256 KiB of text (ATTACK-19)."""
    size = 0
    for each in islice(texts, _MAX_TEXTS):
        if size > _MAX_TEXT:
            break
        yield each
        size += len(each)


def too_long(field: str, limit: int) -> FieldError:
    if limit < 0:
        return FieldError("FieldValueTooLong", field, "", "value is too long")
    return FieldError("FieldValueTooLong", field, "", f"may not be more than {limit} byte{'' if limit == 1 else 's'}")


class StatusError(Exception):
    """A failure response: code, reason, message and details of a v1 Status."""

    def __init__(
        self,
        code: int,
        reason: str,
        message: str,
        *,
        details: Mapping[str, Any] | None = None,
        metadata: Mapping[str, Any] | None = None,
        retry_after: int = 0,
    ) -> None:
        super().__init__(message)
        self.code = code
        self.reason = reason
        self.message = message
        self.details: dict[str, Any] | None = dict(details) if details is not None else None
        self.metadata: dict[str, Any] = dict(metadata or {})
        if retry_after:
            self.details = {**(self.details or {}), "retryAfterSeconds": retry_after}

    @property
    def retry_after(self) -> int:
        """Seconds for the Retry-After header, 0 for none (WIRE-D11)."""
        seconds = (self.details or {}).get("retryAfterSeconds", 0)
        return seconds if isinstance(seconds, int) else 0

    @property
    def causes(self) -> list[dict[str, Any]]:
        causes: list[dict[str, Any]] = (self.details or {}).get("causes", [])
        return causes

    def status(self) -> dict[str, Any]:
        """Returns the v1 Status of this error."""
        document: dict[str, Any] = {
            "kind": "Status",
            "apiVersion": "v1",
            "metadata": self.metadata,
            "status": "Failure",
            "message": self.message,
        }
        if self.reason:
            document["reason"] = self.reason
        if self.details is not None:
            document["details"] = self.details
        document["code"] = self.code
        return document


def from_status(document: Mapping[str, Any], code: int) -> StatusError:
    """Converts the Status of another server. `code` is the HTTP status, used if the document has no code."""
    details = document.get("details")
    metadata = document.get("metadata")
    return StatusError(
        int(document.get("code") or code),
        str(document.get("reason") or ""),
        str(document.get("message") or f"the server answered {code}"),
        details=details if isinstance(details, dict) else None,
        metadata=metadata if isinstance(metadata, dict) else None,
    )


def require_path_segment(name: str) -> None:
    """Raises BadRequest for a name that no object can have, as kube-apiserver's storage does before it reads."""
    if problems := path_segment_errors(name):
        raise BadRequest(f"Name parameter invalid: {go_quote(name)}: {problems[0]}")


class NotFound(StatusError):
    def __init__(self, resource: GroupResource, name: str) -> None:
        super().__init__(
            404,
            "NotFound",
            f"{resource} {go_quote(name)} not found",
            details=_details(resource.group, resource.resource, name),
        )


class AlreadyExists(StatusError):
    def __init__(self, resource: GroupResource, name: str, *, deleting: bool = False) -> None:
        prefix = "object is being deleted: " if deleting else ""
        super().__init__(
            409,
            "AlreadyExists",
            f"{prefix}{resource} {go_quote(name)} already exists",
            details=_details(resource.group, resource.resource, name),
        )


class GenerateNameExhausted(StatusError):
    def __init__(self, resource: GroupResource, name: str) -> None:
        super().__init__(
            409,
            "AlreadyExists",
            f"{resource} {go_quote(name)} already exists, "
            "the server was not able to generate a unique name for the object",
            details=_details(resource.group, resource.resource, name),
            retry_after=1,
        )


class Conflict(StatusError):
    MODIFIED = "the object has been modified; please apply your changes to the latest version and try again"

    def __init__(self, resource: GroupResource | GroupKind, name: str, why: str = MODIFIED) -> None:
        kind = resource.resource if isinstance(resource, GroupResource) else resource.kind
        super().__init__(
            409,
            "Conflict",
            f"Operation cannot be fulfilled on {resource} {go_quote(name)}: {why}",
            details=_details(resource.group, kind, name),
        )


class ApplyConflict(StatusError):
    """The 409 of an apply; `causes` has one FieldManagerConflict per field (WIRE-G21, WIRE-G22)."""

    def __init__(self, message: str, causes: Iterable[Mapping[str, str]]) -> None:
        super().__init__(409, "Conflict", message, details={"causes": [dict(cause) for cause in causes]})


class Invalid(StatusError):
    """A 422 that reports all field errors of an object together (WIRE-D5). The message contains each text once
    (WIRE-D6), and only the number of the errors beyond the first 256 KiB of text."""

    def __init__(self, kind: GroupKind, name: str, errors: Sequence[FieldError]) -> None:
        causes = _causes(errors)
        texts = list(dict.fromkeys(f"{cause['field']}: {cause['message']}" for cause in causes))
        if omitted := len(errors) - len(causes):
            texts.append(f"and {omitted} more errors")
        summary = texts[0] if len(texts) == 1 else f"[{', '.join(texts)}]"
        details = _details(kind.group, kind.kind, name)
        details["causes"] = causes
        super().__init__(422, "Invalid", f"{kind} {go_quote(name)} is invalid: {summary}", details=details)
        self.errors = tuple(errors)


class BadRequest(StatusError):
    def __init__(self, message: str) -> None:
        super().__init__(400, "BadRequest", message)


class Unauthorized(StatusError):
    def __init__(self) -> None:
        super().__init__(401, "Unauthorized", "Unauthorized")


class Forbidden(StatusError):
    """The 403 of admission (WIRE-D9). Authorization has a 403 of its own, AccessDenied."""

    def __init__(
        self, resource: GroupResource, name: str, why: str, *, causes: Sequence[Mapping[str, str]] = ()
    ) -> None:
        details = _details(resource.group, resource.resource, name)
        if causes:
            details["causes"] = [dict(cause) for cause in causes]
        subject = f"{resource} {go_quote(name)}" if name else str(resource)
        super().__init__(403, "Forbidden", f"{subject} is forbidden: {why}", details=details)


class Expired(StatusError):
    """A 410. With `continue_token` the client can continue the list inconsistently (WIRE-D60)."""

    def __init__(self, message: str, *, continue_token: str = "") -> None:
        super().__init__(410, "Expired", message, metadata={"continue": continue_token} if continue_token else None)


class TooManyRequests(StatusError):
    def __init__(self, message: str, *, retry_after: int = 1) -> None:
        super().__init__(429, "TooManyRequests", message, retry_after=retry_after)


class RequestEntityTooLarge(StatusError):
    def __init__(self, message: str) -> None:
        super().__init__(413, "RequestEntityTooLarge", f"Request entity too large: {message}")


class Timeout(StatusError):
    def __init__(self, message: str, *, retry_after: int = 0, causes: Sequence[Mapping[str, str]] = ()) -> None:
        details = {"causes": [dict(cause) for cause in causes]} if causes else {}
        super().__init__(504, "Timeout", f"Timeout: {message}", details=details, retry_after=retry_after)


class TooLargeResourceVersion(Timeout):
    """The 504 for a resourceVersion that the cache has not reached yet. Reflectors check its cause (WIRE-D63)."""

    def __init__(self, requested: int, current: int) -> None:
        super().__init__(
            f"Too large resource version: {requested}, current: {current}",
            retry_after=1,
            causes=[{"reason": "ResourceVersionTooLarge", "message": "Too large resource version"}],
        )


class ServiceUnavailable(StatusError):
    def __init__(self, message: str, *, retry_after: int = 0) -> None:
        super().__init__(503, "ServiceUnavailable", message, retry_after=retry_after)


class ResourceMethodNotAllowed(StatusError):
    """The resource exists, but does not support the verb (WIRE-D16)."""

    def __init__(self, resource: GroupResource, verb: str) -> None:
        super().__init__(
            405,
            "MethodNotAllowed",
            f'{verb} is not supported on resources of kind "{resource}"',
            details={"group": resource.group, "kind": resource.resource},
        )


class MethodNotAllowed(StatusError):
    """The path exists, but does not support the HTTP method (WIRE-C32)."""

    def __init__(self) -> None:
        super().__init__(
            405, "MethodNotAllowed", "the server does not allow this method on the requested resource", details={}
        )


class UnknownPath(StatusError):
    """The 404 of a path that is not served (WIRE-C31)."""

    def __init__(self) -> None:
        super().__init__(404, "NotFound", "the server could not find the requested resource", details={})


class NotAcceptable(StatusError):
    def __init__(self, message: str) -> None:
        super().__init__(406, "NotAcceptable", message)


class UnsupportedMediaType(StatusError):
    def __init__(self, message: str) -> None:
        super().__init__(415, "UnsupportedMediaType", message)


class InternalError(StatusError):
    def __init__(self, message: str) -> None:
        super().__init__(
            500,
            "InternalError",
            f"Internal error occurred: {message}",
            details={"causes": [{"message": message}]},
        )


def _causes(errors: Sequence[FieldError]) -> list[dict[str, str]]:
    causes: list[dict[str, str]] = []
    text = 0
    for error in errors:
        if text > _MAX_CAUSES_TEXT:
            break
        causes.append({"reason": error.reason, "message": error.message, "field": error.field})
        text += len(causes[-1]["message"]) + len(error.field)
    return causes


def _details(group: str, kind: str, name: str) -> dict[str, Any]:
    details: dict[str, Any] = {}
    if name:
        details["name"] = name
    if group:
        details["group"] = group
    details["kind"] = kind
    return details
