"""The entry points of the plugin: `kubectl-tenant`, and `kubectl_complete-tenant` for the completion of kubectl."""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import NamedTuple

from apiserver.encoding.list_formats import to_yaml
from apiserver.meta.resource import Key, Object
from registry.tenant.pool_quotas import POOL_NAME
from tenant_apiserver.kubectl_tenant.arguments import COMMANDS, SUBJECTS, parse
from tenant_apiserver.kubectl_tenant.choice import (
    NoTenant,
    check_name,
    check_namespace,
    tenant_named,
    tenant_of_host,
    tenant_of_namespace,
)
from tenant_apiserver.kubectl_tenant.differences import has_differences, render_differences, render_notes
from tenant_apiserver.kubectl_tenant.explanations import render_explanation, render_readers
from tenant_apiserver.kubectl_tenant.hosts import host_rows, render_hosts
from tenant_apiserver.kubectl_tenant.planned import planned_by_file
from tenant_apiserver.kubectl_tenant.quotas import quota_rows, render_missing_right, render_quota
from tenant_apiserver.kubectl_tenant.requests import Kubectl, RequestFailed, tenant_path
from tenant_apiserver.kubectl_tenant.trees import render_tree, tree_document

_GATEWAY_API, _OURS = "/apis/gateway.networking.k8s.io/v1", "/apis/gateway.cozystack.io/v1alpha1"
_CERTIFICATES = "/apis/cert-manager.io/v1"
_NO_FILES = 4
"""ShellCompDirectiveNoFileComp of cobra."""


def main() -> None:
    """Exits with kubectl's own status if kubectl fails, 2 for wrong arguments, 1 if there is no such tenant. `diff`
    exits as `kubectl diff` does: 1 if something differs, and more than 1 after an error."""
    arguments = parse(sys.argv[1:])
    least = 2 if arguments.command == "diff" else 1
    try:
        status = _run(arguments)
    except RequestFailed as failure:
        print(failure, file=sys.stderr)
        status = max(failure.status, least)
    except NoTenant as problem:
        print(f"error: {problem}", file=sys.stderr)
        status = least
    except (KeyboardInterrupt, BrokenPipeError):
        status = 130
    raise SystemExit(status)


def complete() -> None:
    """Prints the words that may follow, and cobra's directive."""
    words = sys.argv[1:]
    choices: Sequence[str] = ()
    if len(words) <= 1:
        choices = COMMANDS
    elif words[0] == "explain" and len(words) == 2:
        choices = SUBJECTS
    elif words[-2] in ("tree", "quota", "who-can-see", "diff", "tenant", "--tenant"):
        found = Kubectl().readable_items(tenant_path("")) or ()
        choices = sorted({each["metadata"]["name"] for each in found})
    last = words[-1] if words else ""
    print("\n".join([*(each for each in choices if each.startswith(last)), f":{_NO_FILES}"]))


def _run(arguments: argparse.Namespace) -> int:
    if arguments.command == "preflight":
        # imported late, because the other commands need no client of the server
        from tenant_apiserver.lifecycle.preflight import preflight
        from tenant_apiserver.options.command_line import parse_command_line
        from tenant_apiserver.options.lifecycle import PreflightOptions

        options = parse_command_line(["preflight", *arguments.rest], os.environ)
        assert isinstance(options, PreflightOptions)
        return preflight(options)
    kubectl = Kubectl(arguments.flags)
    if arguments.command == "ui":
        return _ui(kubectl, arguments)
    match arguments.command:
        case "tree":
            _tree(kubectl, arguments)
        case "explain":
            _explain(kubectl, arguments)
        case "who-can-see":
            key = _tenant_named(kubectl, arguments.name, arguments.namespace)
            answer = _ask(kubectl, key, "who-can-see")
            _write(arguments, answer, render_readers(answer))
        case "quota":
            _quota(kubectl, arguments)
        case "hosts":
            _hosts(kubectl, arguments)
        case "diff":
            return _diff(kubectl, arguments)
    return 0


def _ui(kubectl: Kubectl, arguments: argparse.Namespace) -> int:
    # imported late, because the other commands need no HTTP server
    from tenant_apiserver.ui.command import UiOptions, ui

    options = UiOptions(
        address=arguments.address,
        port=arguments.port,
        namespace=arguments.namespace,
        read_only=arguments.read_only,
        open_browser=arguments.open,
    )
    return ui(kubectl.command, options)


def _tree(kubectl: Kubectl, arguments: argparse.Namespace) -> None:
    def show(tenants: Sequence[Object]) -> None:
        text = render_tree(
            tenants,
            _quotas(kubectl, tenants).found,
            name=arguments.name,
            namespace=arguments.namespace,
            wide=arguments.output == "wide",
            colour=_colour(),
        )
        _write(arguments, tree_document(tenants, name=arguments.name, namespace=arguments.namespace), text)

    tenants = _tenants(kubectl)
    _check(tenants, arguments)
    show(tenants)
    if arguments.watch:
        # the changes only say when to read again: the tree needs parents and children as well
        for _ in kubectl.changes("get", "tenants", "-A", "--watch-only", "--no-headers"):
            print(flush=True)
            show(_tenants(kubectl))


def _explain(kubectl: Kubectl, arguments: argparse.Namespace) -> None:
    tenants, subject, name = _tenants(kubectl), arguments.subject, arguments.name
    namespace = arguments.namespace or kubectl.namespace()
    if arguments.tenant or (subject == "tenant" and name):
        wanted = arguments.tenant or name
        key = tenant_named(tenants, wanted, arguments.namespace, preferred=kubectl.namespace())
    elif subject == "host":
        key = tenant_of_host(tenants, name, namespace)
    elif subject in ("route", "namespace"):
        key = tenant_of_namespace(tenants, name.partition("/")[0])
    else:
        check_namespace(tenants, arguments.namespace)
        key = tenant_of_namespace(tenants, namespace)
    about = "tenant" if subject == "tenant" else f"{subject}/{name}"
    answer = _ask(kubectl, key, about)
    _write(arguments, answer, render_explanation(answer, wide=arguments.output == "wide", colour=_colour()))


def _diff(kubectl: Kubectl, arguments: argparse.Namespace) -> int:
    """1 if something differs."""
    if arguments.filename:
        answer = planned_by_file(kubectl, arguments.filename, arguments.name, arguments.namespace)
    else:
        key = _tenant_named(kubectl, arguments.name, arguments.namespace)
        answer = kubectl.get(tenant_path(key.namespace, key.name, "diff"))
    _write(arguments, answer, render_differences(answer, colour=_colour()))
    sys.stderr.write(render_notes(answer))
    return 1 if has_differences(answer) else 0


def _quota(kubectl: Kubectl, arguments: argparse.Namespace) -> None:
    tenants = _tenants(kubectl)
    _check(tenants, arguments)
    shown = [each for each in tenants if _is_chosen(each, arguments.name, arguments.namespace)]
    names = {f"{each['metadata']['namespace']}/{each['metadata']['name']}" for each in shown}
    used = _quotas(kubectl, tenants)
    rows = [row for row in quota_rows(tenants, used.found) if row.tenant in names]
    _write(arguments, {"items": [each.as_object() for each in rows]}, render_quota(rows))
    sys.stderr.write(render_missing_right(used.denied, [_workload_namespace(each) for each in shown]))


def _hosts(kubectl: Kubectl, arguments: argparse.Namespace) -> None:
    tenants, place = _tenants(kubectl), arguments.namespace
    chosen = {_workload_namespace(each) for each in tenants if _is_chosen(each, "", place)} | (
        {place} if place else set()
    )
    kinds = (f"{_GATEWAY_API}/httproutes", f"{_GATEWAY_API}/grpcroutes", f"{_GATEWAY_API}/tlsroutes")
    routes = [route for kind in kinds for route in _everywhere(kubectl, kind, sorted(chosen))[0]]
    if place:
        routes = [each for each in routes if each["metadata"]["namespace"] in chosen]
    if not routes:
        check_namespace(tenants, place)
    # the Gateway of an ancestor has the listener of a tenant that inherits it
    around = sorted({_workload_namespace(each) for each in tenants})
    gateways, _ = _everywhere(kubectl, f"{_OURS}/tenantgateways", around)
    certificates, _ = _everywhere(kubectl, f"{_CERTIFICATES}/certificates", around)
    rows = host_rows(tenants, routes, gateways, certificates, datetime.now(UTC))
    _write(arguments, {"items": [each.as_object() for each in rows]}, render_hosts(rows))


def _check(tenants: Sequence[Object], arguments: argparse.Namespace) -> None:
    """Raises NoTenant for a name or a namespace that there is none of."""
    check_name(tenants, arguments.name, arguments.namespace)
    check_namespace(tenants, arguments.namespace)


def _tenant_named(kubectl: Kubectl, name: str, namespace: str) -> Key:
    return tenant_named(_tenants(kubectl), name, namespace, preferred=kubectl.namespace())


def _tenants(kubectl: Kubectl) -> Sequence[Object]:
    """All Tenants that the user may see, or those of the context's namespace if only these may be listed."""
    found = kubectl.readable_items(tenant_path(""))
    return kubectl.items(tenant_path(kubectl.namespace())) if found is None else found


class _Quotas(NamedTuple):
    """The ResourceQuotas of pools by namespace, and the namespaces in which the user may not list them."""

    found: Mapping[str, Object]
    denied: Sequence[str]


def _quotas(kubectl: Kubectl, tenants: Sequence[Object]) -> _Quotas:
    namespaces = [_workload_namespace(each) for each in tenants if (each.get("spec") or {}).get("resourceQuotas")]
    if not namespaces:
        return _Quotas({}, ())
    selector = {"fieldSelector": f"metadata.name={POOL_NAME}"}
    found, denied = _everywhere(kubectl, "/api/v1/resourcequotas", namespaces, selector)
    return _Quotas({each["metadata"]["namespace"]: each for each in found}, denied)


def _workload_namespace(tenant: Object) -> str:
    return str((tenant.get("status") or {}).get("namespace") or "")


def _everywhere(
    kubectl: Kubectl, path: str, namespaces: Sequence[str], query: Mapping[str, str] | None = None
) -> tuple[Sequence[Object], Sequence[str]]:
    """The objects of all namespaces, or where that is not allowed, those of `namespaces` that the user may list; and
    the namespaces in which the user may not, or that do not have the kind."""
    found = kubectl.readable_items(path, query)
    if found is not None:
        return found, ()
    base, _, plural = path.rpartition("/")
    pages = {each: kubectl.readable_items(f"{base}/namespaces/{each}/{plural}", query) for each in namespaces if each}
    items = [item for page in pages.values() if page is not None for item in page]
    return items, [namespace for namespace, page in pages.items() if page is None]


def _ask(kubectl: Kubectl, key: Key, about: str) -> Object:
    return kubectl.get(tenant_path(key.namespace, key.name, "explain"), {"about": about})


def _is_chosen(tenant: Object, name: str, namespace: str) -> bool:
    metadata = tenant["metadata"]
    return name in ("", metadata["name"]) and namespace in ("", metadata["namespace"])


def _write(arguments: argparse.Namespace, document: Object, text: str) -> None:
    if arguments.output == "json":
        text = json.dumps(document, indent=4, ensure_ascii=False) + "\n"
    elif arguments.output == "yaml":
        text = to_yaml(json.dumps(document).encode()).decode()
    sys.stdout.write(text)
    sys.stdout.flush()


def _colour() -> bool:
    return sys.stdout.isatty() and not os.environ.get("NO_COLOR")
