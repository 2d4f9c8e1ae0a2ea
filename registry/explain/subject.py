"""The subject of an explanation, from the parameter `about`. Pure."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

from apiserver.meta.errors import BadRequest
from registry.names import MAX_HOST, canonical_host, host_errors

SubjectKind = Literal["tenant", "host", "route", "namespace", "user", "who-can-see"]
_MAX_NAME = 253
_MAX_USER = 1024
_SUBDOMAIN = re.compile(r"[a-z0-9]([-a-z0-9.]*[a-z0-9])?")
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f]")
_FORMS = "tenant, host/NAME, route/NAMESPACE/NAME, namespace/NAME, user/NAME or who-can-see"


@dataclass(frozen=True, slots=True)
class ExplainedSubject:
    """`namespace` is that of a route; `name` is empty for the Tenant itself."""

    kind: SubjectKind
    name: str = ""
    namespace: str = ""

    def __str__(self) -> str:
        return "/".join(part for part in (self.kind, self.namespace, self.name) if part)


def parse_subject(about: str) -> ExplainedSubject:
    """Raises BadRequest for another form. Without a value the subject is the Tenant. Hosts become canonical."""
    kind, _, rest = about.partition("/")
    match kind:
        case "" | "tenant" if not rest:
            return ExplainedSubject("tenant")
        case "who-can-see" if not rest:
            return ExplainedSubject("who-can-see")
        case "host" if 0 < len(rest) <= MAX_HOST + 2 and not host_errors(canonical_host(rest).removeprefix("*.")):
            return ExplainedSubject("host", canonical_host(rest))
        case "user" if 0 < len(rest) <= _MAX_USER and not _CONTROL.search(rest):
            return ExplainedSubject("user", rest)
        case "namespace" if _is_name(rest):
            return ExplainedSubject("namespace", rest)
        case "route":
            namespace, _, name = rest.partition("/")
            if _is_name(namespace) and _is_name(name):
                return ExplainedSubject("route", name, namespace)
    raise BadRequest(f"about must be {_FORMS}")


def _is_name(text: str) -> bool:
    """True for a DNS subdomain, which the names of Namespaces and routes are."""
    return len(text) <= _MAX_NAME and _SUBDOMAIN.fullmatch(text) is not None
