"""Kubernetes' named formats: the errors of `format.<name>().validate(text)` (pkg/cel/library/format.go)."""

from __future__ import annotations

import base64
import binascii
import datetime
import re
from collections.abc import Callable, Mapping
from functools import partial

from admission.cel.library.opaque_types import Functions, OpaqueValue, Type, expect, function, make, overload
from admission.cel.library.urls import request_uri_problem
from admission.cel.tokenizer import FORMAT_ERRORS, NAMED_FORMAT
from apiserver.meta.label_validation import label_value_errors, qualified_name_errors
from apiserver.meta.name_validation import dns1035_label_errors, dns1123_label_errors, dns1123_subdomain_errors

_FORMAT = "kubernetes.NamedFormat"
_UUID = re.compile(r"[0-9a-fA-F]{8}(?:-?[0-9a-fA-F]{4}){3}-?[0-9a-fA-F]{12}")
_DATE = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}", re.ASCII)
_DATETIME = re.compile(
    r"(?P<date>[0-9]{4}-[0-9]{2}-[0-9]{2})[Tt ](?P<hour>[0-9]{2}):(?P<minute>[0-9]{2})(?::(?P<second>[0-9]{2}))?"
    r"(?:\.[0-9]+)?(?P<zone>[zZ]|[+-][0-9]{2}:?[0-9]{2})?",
    re.ASCII,
)


def uri_errors(text: str) -> list[str]:
    problem = request_uri_problem(text)
    return [problem] if problem else []


def _is_uuid(text: str) -> bool:
    return _UUID.fullmatch(text) is not None


def _is_base64(text: str) -> bool:
    try:
        base64.b64decode(text.replace("\r", "").replace("\n", ""), validate=True)
    except (binascii.Error, ValueError):
        return False
    return True


def _is_date(text: str) -> bool:
    if not _DATE.fullmatch(text):
        return False
    try:
        datetime.date.fromisoformat(text)
    except ValueError:
        return text.startswith("0000-")
    return True


def _is_datetime(text: str) -> bool:
    found = _DATETIME.fullmatch(text)
    return (
        found is not None
        and _is_date(found["date"])
        and int(found["hour"]) < 24
        and int(found["minute"]) < 60
        and int(found["second"] or 0) < 60
    )


def _without_last_dash(errors: Callable[[str], list[str]], text: str) -> list[str]:
    """The errors of a name prefix. It may end with a dash, because a generated suffix follows."""
    return errors(f"{text[:-1]}a" if len(text) > 1 and text.endswith("-") else text)


def _error_unless(holds: Callable[[str], bool], error: str, text: str) -> list[str]:
    return [] if holds(text) else [error]


FORMATS: Mapping[str, Callable[[str], list[str]]] = {
    "dns1123Label": dns1123_label_errors,
    "dns1123Subdomain": dns1123_subdomain_errors,
    "dns1035Label": dns1035_label_errors,
    "qualifiedName": qualified_name_errors,
    "dns1123LabelPrefix": partial(_without_last_dash, dns1123_label_errors),
    "dns1123SubdomainPrefix": partial(_without_last_dash, dns1123_subdomain_errors),
    "dns1035LabelPrefix": partial(_without_last_dash, dns1035_label_errors),
    "labelValue": label_value_errors,
    "uri": uri_errors,
    "uuid": partial(_error_unless, _is_uuid, "does not match the UUID format"),
    "byte": partial(_error_unless, _is_base64, "invalid base64"),
    "date": partial(_error_unless, _is_date, "invalid date"),
    "datetime": partial(_error_unless, _is_datetime, "invalid datetime"),
}


def _named(name: str) -> OpaqueValue:
    return make(_FORMAT, name=name) if name in FORMATS else {}


def _errors(value: object, text: str) -> list[str]:
    return FORMATS[expect(value, _FORMAT)["name"]](text)


def functions() -> Functions:
    opaque = Type.Map(Type.STRING, Type.DYN)
    return (
        *(function(f"format.{name}", overload(opaque, impl=partial(_named, name))) for name in FORMATS),
        function(NAMED_FORMAT, overload(opaque, Type.STRING, impl=_named)),
        function(FORMAT_ERRORS, overload(Type.List(Type.STRING), Type.MAP, Type.STRING, impl=_errors, member=True)),
    )
