"""The hierarchy of tenants as lines. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence, Set
from typing import Any

from apiserver.meta.resource import Object
from tenant_apiserver.kubectl_tenant.quotas import Quotas
from tenant_apiserver.kubectl_tenant.tables import coloured, table


def render_tree(
    tenants: Sequence[Object],
    quotas: Quotas,
    *,
    name: str = "",
    namespace: str = "",
    wide: bool = False,
    colour: bool = False,
) -> str:
    """Each tenant below its parent, as far as that is visible; with a `name`, this tenant and what is below it; with a
    `namespace`, what is in it and below. Empty if there is none."""
    lines = list(_lines(tenants, name, namespace))
    if not lines:
        return ""
    columns = ["TENANT", "READY", "HOST", "GATEWAY", "QUOTA", *(("NAMESPACE", "REASON") if wide else ())]
    rows = []
    for prefix, tenant in lines:
        status, ready = tenant.get("status") or {}, ready_condition(tenant)
        cells = [
            f"{prefix}{tenant['metadata']['name']}",
            str(ready.get("status", "Unknown")),
            str((status.get("host") or {}).get("value") or ""),
            str((status.get("gateway") or {}).get("namespace") or ""),
            quotas.summary(tenant),
        ]
        rows.append([*cells, *((str(status.get("namespace") or ""), str(ready.get("reason") or "")) if wide else ())])
    text = table(columns, rows)
    return _with_colours(text, rows) if colour else text


def ready_condition(tenant: Object) -> Mapping[str, Any]:
    conditions = (tenant.get("status") or {}).get("conditions") or ()
    return next((each for each in conditions if each.get("type") == "Ready"), {})


def tree_document(tenants: Sequence[Object], *, name: str = "", namespace: str = "") -> Object:
    """The visible tenants as a list for `-o json`, parents before children, each with its depth."""
    items = [{"depth": len(prefix) // 3, "tenant": tenant} for prefix, tenant in _lines(tenants, name, namespace)]
    return {"items": items}


def in_tree_order(tenants: Sequence[Object]) -> Sequence[Object]:
    """The tenants as the tree has them, and behind them those that it has no place for."""
    placed = [tenant for _, tenant in _lines(tenants, "", "")]
    known = {id(each) for each in placed}
    return [*placed, *(each for each in tenants if id(each) not in known)]


def _lines(tenants: Sequence[Object], name: str, namespace: str) -> Iterator[tuple[str, Object]]:
    """Each tenant with what its name is indented by: tops first by namespace and name, each with what is below it."""
    ordered = sorted(tenants, key=lambda each: (each["metadata"]["namespace"], each["metadata"]["name"]))
    children: dict[str, list[Object]] = {}
    for each in ordered:
        # the root lies in its own namespace
        if not _is_root(each):
            children.setdefault(each["metadata"]["namespace"], []).append(each)
    own, roots = {_workload_namespace(each) for each in ordered}, _roots(ordered)
    for each in ordered:
        place = each["metadata"]["namespace"]
        if name:
            is_top = each["metadata"]["name"] == name and namespace in ("", place)
        elif namespace:
            # the root is above its siblings
            is_top = place == namespace and (_is_root(each) or namespace not in roots)
        else:
            is_top = _is_root(each) or place not in own
        if is_top:
            yield from _below(each, "", "", children)


def _below(
    tenant: Object, prefix: str, rest: str, children: Mapping[str, Sequence[Object]]
) -> Iterator[tuple[str, Object]]:
    yield prefix, tenant
    own = children.get(_workload_namespace(tenant), ())
    for at, child in enumerate(own):
        branch, gap = ("└─ ", "   ") if at == len(own) - 1 else ("├─ ", "│  ")
        yield from _below(child, rest + branch, rest + gap, children)


def _workload_namespace(tenant: Object) -> str:
    return str((tenant.get("status") or {}).get("namespace") or "")


def _is_root(tenant: Object) -> bool:
    return bool(_workload_namespace(tenant) == tenant["metadata"]["namespace"])


def _roots(tenants: Sequence[Object]) -> Set[str]:
    return {each["metadata"]["namespace"] for each in tenants if _is_root(each)}


def _with_colours(text: str, rows: Sequence[Sequence[str]]) -> str:
    """The cells of READY in the colour of their status."""
    lines = text.splitlines(keepends=True)
    at = lines[0].index("READY")
    painted = [
        f"{line[:at]}{coloured(row[1], row[1], colour=True)}{line[at + len(row[1]) :]}"
        for line, row in zip(lines[1:], rows, strict=True)
    ]
    return "".join([lines[0], *painted])
