"""The subject of an explanation, from the parameter `about`. Pure."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

from apiserver.meta.errors import BadRequest
from apiserver.meta.go_quote import go_quote
from registry.names import asked_host_error, canonical_host

SubjectKind = Literal["tenant", "host", "route", "namespace", "user", "who-can-see"]
_MAX_NAME = 253
_MAX_USER = 1024
_MAX_GROUPS = 100
_SUBDOMAIN = re.compile(r"[a-z0-9]([-a-z0-9.]*[a-z0-9])?")
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f]")
_FORMS = "tenant, host/NAME, route/NAMESPACE/NAME, namespace/NAME, user/NAME or who-can-see"


@dataclass(frozen=True, slots=True)
class ExplainedSubject:
    """`namespace` is that of a route, and `groups` are those of a user; `name` is empty for the Tenant itself."""

    kind: SubjectKind
    name: str = ""
    namespace: str = ""
    groups: Sequence[str] = ()

    def __str__(self) -> str:
        return "/".join(part for part in (self.kind, self.namespace, self.name) if part)


def parse_subject(about: str, groups: Sequence[str] = ()) -> ExplainedSubject:
    """Raises BadRequest for another form, and for a name that no object can have. Without a value the subject is the
    Tenant. Hosts become canonical."""
    found = _subject(about)
    if not groups:
        return found
    if found.kind != "user":
        raise BadRequest("group is only for about=user/NAME")
    if len(groups) > _MAX_GROUPS or not all(_is_identity(each) for each in groups):
        raise BadRequest(f"group must be the name of a group, at most {_MAX_GROUPS} times")
    return replace(found, groups=tuple(dict.fromkeys(groups)))


def _subject(about: str) -> ExplainedSubject:
    kind, _, rest = about.partition("/")
    match kind:
        case "" | "tenant" if not rest:
            return ExplainedSubject("tenant")
        case "who-can-see" if not rest:
            return ExplainedSubject("who-can-see")
        case "host" if rest and "/" not in rest:
            return ExplainedSubject("host", _host(rest))
        case "user" if _is_identity(rest):
            return ExplainedSubject("user", rest)
        case "namespace" if rest and "/" not in rest:
            return ExplainedSubject("namespace", _name(rest))
        case "route":
            namespace, _, name = rest.partition("/")
            if namespace and name and "/" not in name:
                return ExplainedSubject("route", _name(name), _name(namespace))
    raise BadRequest(f"about must be {_FORMS}")


def _host(text: str) -> str:
    """In canonical form. Raises BadRequest."""
    if problem := asked_host_error(text):
        raise BadRequest(problem)
    return canonical_host(text)


def _name(text: str) -> str:
    """A DNS subdomain, which the names of Namespaces and routes are. Raises BadRequest."""
    if len(text) <= _MAX_NAME and _SUBDOMAIN.fullmatch(text):
        return text
    raise BadRequest(
        f"{go_quote(text)} is not a name: it has at most {_MAX_NAME} lower case letters, digits, '-' and '.', and "
        "starts and ends with a letter or digit"
    )


def _is_identity(text: str) -> bool:
    """True for what the name of a user or a group may be."""
    return 0 < len(text) <= _MAX_USER and not _CONTROL.search(text)
