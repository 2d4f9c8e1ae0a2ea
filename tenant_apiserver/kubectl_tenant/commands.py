"""The commands of `kubectl tenant`: what they ask, and what they print."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from datetime import UTC, datetime

from apiserver.meta.resource import Key, Object
from registry.tenant.quota_keys import EQUAL, AllocationRatios
from tenant_apiserver.closed_output import discard
from tenant_apiserver.kubectl_tenant.advice import no_differences, no_hosts, no_quotas, no_readers, no_tenants
from tenant_apiserver.kubectl_tenant.arguments import parse
from tenant_apiserver.kubectl_tenant.choice import (
    NoTenant,
    check_name,
    check_namespace,
    tenant_named,
    tenant_of_host,
    tenant_of_namespace,
)
from tenant_apiserver.kubectl_tenant.explanations import render_explanation, render_readers
from tenant_apiserver.kubectl_tenant.following import follow
from tenant_apiserver.kubectl_tenant.lists import (
    gateway_namespace,
    list_gateways,
    list_quotas,
    list_routes,
    list_tenants,
    workload_namespace,
)
from tenant_apiserver.kubectl_tenant.output import colour, degrade_characters, write
from tenant_apiserver.kubectl_tenant.quotas import (
    UNKNOWN_RATIOS,
    Quotas,
    namespaces_with_quota,
    needs_ratios,
    ratios_of,
    render_missing_right,
    render_quota,
)
from tenant_apiserver.kubectl_tenant.requests import Kubectl, RequestFailed, tenant_path
from tenant_apiserver.kubectl_tenant.tables import printable, printable_lines
from tenant_apiserver.kubectl_tenant.trees import in_tree_order, render_tree, tree_document


def run(words: Sequence[str]) -> int:
    """Returns the exit status; ends the process with 2 for wrong arguments. Raises BrokenPipeError."""
    degrade_characters()
    arguments = parse(words)
    least = 2 if arguments.command == "diff" else 1
    try:
        return _run(arguments)
    except RequestFailed as failure:
        # a webhook, or an object of somebody else, may have written it
        print(printable_lines(str(failure)), file=sys.stderr)
        return max(failure.status, least)
    except NoTenant as problem:
        print(f"error: {printable(str(problem))}", file=sys.stderr)
        return least
    except BrokenPipeError:
        raise
    except OSError as error:
        discard(sys.stdout)
        print(f"error: {error.strerror or error}", file=sys.stderr)
        return least


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
            write(arguments, answer, lambda: render_readers(answer), lambda: no_readers(kubectl, key))
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

    # to users without tenants, the page says so
    if arguments.namespace and (tenants := list_tenants(kubectl)):
        check_namespace(tenants, arguments.namespace)
    options = UiOptions(
        address=arguments.address,
        port=arguments.port,
        namespace=arguments.namespace,
        read_only=arguments.read_only,
        open_browser=arguments.open,
    )
    return ui(kubectl.command, options)


def _tree(kubectl: Kubectl, arguments: argparse.Namespace) -> None:
    name, namespace = arguments.name, arguments.namespace

    def text(tenants: Sequence[Object]) -> str:
        quotas = Quotas(
            tenants, list_quotas(kubectl, namespaces_with_quota(tenants)).found, _ratios(kubectl, tenants) or EQUAL
        )
        wide = arguments.output == "wide"
        return render_tree(tenants, quotas, name=name, namespace=namespace, wide=wide, colour=colour())

    def show(tenants: Sequence[Object], before: str = "") -> None:
        sys.stdout.write(before)
        write(
            arguments,
            tree_document(tenants, name=name, namespace=namespace),
            lambda: text(tenants),
            lambda: no_tenants(kubectl, tenants, namespace),
        )

    tenants = list_tenants(kubectl)
    _check(tenants, arguments)
    show(tenants)
    if arguments.watch:
        follow(kubectl, lambda: show(list_tenants(kubectl), before="\n"))


def _explain(kubectl: Kubectl, arguments: argparse.Namespace) -> None:
    tenants, subject, name = list_tenants(kubectl), arguments.subject, arguments.name
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
    answer = _ask(kubectl, key, about, arguments.group)
    wide = arguments.output == "wide"
    write(arguments, answer, lambda: render_explanation(answer, wide=wide, colour=colour()))


def _diff(kubectl: Kubectl, arguments: argparse.Namespace) -> int:
    """1 if something differs."""
    # imported late, because the other commands need no YAML
    from tenant_apiserver.kubectl_tenant.differences import has_differences, render_differences, render_notes
    from tenant_apiserver.kubectl_tenant.planned import planned_by_file

    if arguments.filename:
        key, answer = planned_by_file(kubectl, arguments.filename, arguments.name, arguments.namespace)
    else:
        key = _tenant_named(kubectl, arguments.name, arguments.namespace)
        answer = kubectl.get(tenant_path(key.namespace, key.name, "diff"))
    differs = has_differences(answer)
    write(
        arguments,
        answer,
        lambda: render_differences(answer, colour=colour()),
        lambda: "" if differs else no_differences(key),
    )
    sys.stderr.write(render_notes(answer))
    return 1 if differs else 0


def _quota(kubectl: Kubectl, arguments: argparse.Namespace) -> None:
    tenants = list_tenants(kubectl)
    _check(tenants, arguments)
    shown = [each for each in tenants if _is_chosen(each, arguments.name, arguments.namespace)]
    names = {f"{each['metadata']['namespace']}/{each['metadata']['name']}" for each in shown}
    used, ratios = list_quotas(kubectl, namespaces_with_quota(tenants)), _ratios(kubectl, tenants)
    rows = [row for row in Quotas(in_tree_order(tenants), used.found, ratios or EQUAL).rows() if row.tenant in names]

    def advice() -> str:
        return no_quotas(kubectl, shown) if shown else no_tenants(kubectl, tenants, arguments.namespace)

    write(arguments, {"items": [each.as_object() for each in rows]}, lambda: render_quota(rows), advice)
    sys.stderr.write(render_missing_right(used.denied, [workload_namespace(each) for each in shown]))
    if ratios is None:
        sys.stderr.write(UNKNOWN_RATIOS)


def _hosts(kubectl: Kubectl, arguments: argparse.Namespace) -> None:
    # imported late: the chains of facts take half a second to import, and the other commands do not need them
    from tenant_apiserver.kubectl_tenant.hosts import HostSources, host_rows, render_hidden_certificates, render_hosts

    tenants, place = list_tenants(kubectl), arguments.namespace
    # in a namespace there are the routes of its own tenant, and the tenants below it
    shown = [each for each in tenants if place in ("", each["metadata"]["namespace"], workload_namespace(each))]
    chosen = {workload_namespace(each) for each in shown} | ({place} if place else set())
    routes = list_routes(kubectl, sorted(chosen))
    if place:
        routes = [each for each in routes if each["metadata"]["namespace"] in chosen]
    if not routes:
        check_namespace(tenants, place)
    # the Gateway of an ancestor has the listener of a tenant that inherits it
    around = sorted({found(each) for each in tenants for found in (workload_namespace, gateway_namespace)})
    gateways = list_gateways(kubectl, around)
    rows = host_rows(HostSources(tenants=tenants, routes=routes, **gateways._asdict()), datetime.now(UTC))

    def advice() -> str:
        return no_hosts(kubectl, shown) if shown else no_tenants(kubectl, tenants, place)

    write(arguments, {"items": [each.as_object() for each in rows]}, lambda: render_hosts(rows), advice)
    sys.stderr.write(render_hidden_certificates(rows))


def _check(tenants: Sequence[Object], arguments: argparse.Namespace) -> None:
    """Raises NoTenant for a name or a namespace that there is none of."""
    check_name(tenants, arguments.name, arguments.namespace)
    check_namespace(tenants, arguments.namespace)


def _tenant_named(kubectl: Kubectl, name: str, namespace: str) -> Key:
    return tenant_named(list_tenants(kubectl), name, namespace, preferred=kubectl.namespace())


def _ask(kubectl: Kubectl, key: Key, about: str, groups: Sequence[str] = ()) -> Object:
    return kubectl.get(tenant_path(key.namespace, key.name, "explain"), {"about": about, "group": groups})


def _ratios(kubectl: Kubectl, tenants: Sequence[Object]) -> AllocationRatios | None:
    """The platform's ratios, of which any tenant tells; None if the user may not ask."""
    if not needs_ratios(tenants):
        return EQUAL
    metadata = tenants[0]["metadata"]
    try:
        return ratios_of(_ask(kubectl, Key(metadata["namespace"], metadata["name"]), "tenant"))
    except RequestFailed as failure:
        if failure.is_denied or failure.is_missing:
            return None
        raise


def _is_chosen(tenant: Object, name: str, namespace: str) -> bool:
    metadata = tenant["metadata"]
    return name in ("", metadata["name"]) and namespace in ("", metadata["namespace"])
