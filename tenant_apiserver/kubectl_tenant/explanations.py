"""An answer of `tenants/explain` for a terminal. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from apiserver.meta.resource import Object
from registry.explain.quoting import quoted_name
from tenant_apiserver.kubectl_tenant.tables import coloured, printable, table

_MARKS = {"True": "✓", "False": "✗", "Unknown": "?"}
_HIDDEN = "an object that you may not see"


def render_explanation(answer: Object, *, wide: bool = False, colour: bool = False) -> str:
    """The verdict, and below it the chain. Rules of facts that are as they should be are only shown if `wide`,
    and so are messages, except that of a condition that is not True and does not count. A fact without a value has its
    message or its rule instead."""
    verdict = str(answer["verdict"])
    lines = [f"{_mark(verdict, colour)} {printable(str(answer['summary']))}", ""]
    for fact in answer.get("facts") or ():
        lines += _fact_lines(fact, wide=wide, colour=colour)
    return "".join(f"{line}\n" for line in lines)


def _fact_lines(fact: dict[str, Any], *, wide: bool, colour: bool) -> Iterator[str]:
    status, rule = str(fact["status"]), printable(str(fact["rule"]))
    value, message = printable(str(fact.get("value") or "")), printable(str(fact.get("message") or ""))
    link = printable(str(fact["link"]))
    text = value or (message or rule if status == "True" else "")
    yield f"{_mark(status, colour)} {printable(_place(fact['object']))}{f': {text}' if text else ''}"
    if message and message != text and (wide or status != "True" or value in ("False", "Unknown")):
        reason = f"{printable(str(fact['reason']))}: " if fact.get("reason") else ""
        yield f"    {reason}{message}"
    if wide or status != "True":
        yield f"    {rule} (docs/{link})" if rule != text else f"    (docs/{link})"
    if fact.get("remedy"):
        yield f"    → {printable(str(fact['remedy']))}"


def render_readers(answer: Object) -> str:
    """One row for each binding whose subjects may get the tenant; empty if there is none."""
    bindings = [each for each in answer.get("facts") or () if each["object"].get("field") == "subjects"]
    if not bindings:
        return ""
    rows = []
    for each in bindings:
        binding = each["object"]
        for reader in _readers(each):
            rows.append((reader, binding["kind"], binding.get("namespace") or "", binding["name"]))
    notes = [
        f"{printable(str(each['value']))}: {printable(str(each['rule']))}\n"
        for each in answer.get("facts") or ()
        if each["object"].get("field") != "subjects" and each.get("value")
    ]
    return table(("SUBJECT", "BY", "NAMESPACE", "BINDING"), sorted(rows)) + "".join(notes)


def _readers(fact: dict[str, Any]) -> list[str]:
    """The subjects of a binding. A server without the field `subjects` joins names that may contain its separator, so
    its text stays one cell."""
    subjects = fact.get("subjects")
    if subjects is None:
        return [str(fact.get("value") or "")]
    return [f"{each['kind']} {quoted_name(str(each['name']))}" for each in subjects]


def _mark(status: str, colour: bool) -> str:
    return coloured(_MARKS.get(status, "?"), status, colour=colour)


def _place(subject: dict[str, Any]) -> str:
    if subject.get("hidden"):
        return _HIDDEN
    name = "/".join(part for part in (subject.get("namespace"), subject.get("name")) if part)
    field = f" {subject['field']}" if subject.get("field") else ""
    return f"{subject.get('kind')} {name}{field}"
