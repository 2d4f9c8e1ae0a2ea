"""Builders of the values that the TenantGateway controller works with."""

from __future__ import annotations

import copy
import os
from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import yaml

from apiserver.meta.resource import Key, Object, Schema
from apiserver.schema.pruning_and_defaulting import unknown_fields
from apiserver.schema.validation import schema_errors
from controller.runtime.apply import drop_nulls
from controller.runtime.conditions import find_condition
from controller.tenantgateway.model import (
    InheritingNamespace,
    ParentRef,
    Plan,
    Route,
    RouteId,
    RouteKind,
    TenantGateway,
)
from controller.tenantgateway.plan import plan
from controller.tenantgateway.render.gateway import render_gateway
from controller.tenantgateway.status import ReconcileResult, render_tenantgateway_status

NOW = "2026-11-21T12:00:00Z"
LATER = "2026-11-21T13:00:00Z"
_REPOSITORY = Path(__file__).parents[3]


def gateway(namespace: str = "tenant-foo", name: str = "cozystack", **fields: Any) -> TenantGateway:
    """A TenantGateway with the apex foo.example.com and no passthrough services, unless `fields` change that."""
    values = {"uid": "uid-of-it", "generation": 3, "apex": "foo.example.com", **fields}
    return TenantGateway(key=Key(namespace, name), **values)


WILDCARD_MODES = [
    pytest.param(gateway(cert_mode="dns01"), id="dns01"),
    pytest.param(gateway(cert_mode="existingSecret", wildcard_secret="ours"), id="existingSecret"),
]
EVERY_MODE = [pytest.param(gateway(), id="http01"), *WILDCARD_MODES]


def with_services(tenantgateway: TenantGateway, *services: str) -> TenantGateway:
    return replace(tenantgateway, passthrough=services)


def route(
    namespace: str,
    name: str,
    *hostnames: str,
    kind: RouteKind = "HTTPRoute",
    parents: tuple[ParentRef, ...] = (ParentRef(section="https"),),
) -> Route:
    return Route(id=RouteId(namespace, name, kind), hostnames=hostnames, parents=parents)


def inheriting(*hosts: str) -> tuple[InheritingNamespace, ...]:
    return tuple(InheritingNamespace(f"tenant-{host.partition('.')[0]}", host) for host in hosts)


def planned(
    tenantgateway: TenantGateway,
    *routes: Route,
    inheriting: tuple[InheritingNamespace, ...] = (),
    current: Object | None = None,
    **options: Any,
) -> Plan:
    return plan(tenantgateway, inheriting, routes, current=current, **options)


def existing_gateway(tenantgateway: TenantGateway, plan: Plan) -> Object:
    """The Gateway in the cluster after it was created from the plan."""
    return dict(drop_nulls(render_gateway(tenantgateway, plan)))


def hostnames(plan: Plan, protocol: str = "HTTPS") -> list[str]:
    return [each.hostname for each in plan.listeners if each.protocol == protocol]


def omitted(plan: Plan) -> dict[str, str]:
    """Reasons by hostname."""
    return {each.hostname: each.reason for each in plan.omitted}


def assert_admitted(file: str, rendered: Object, *, api_version: str, kind: str) -> None:
    """Asserts that the schema of the CustomResourceDefinition accepts the object and prunes nothing."""
    obj = {"apiVersion": api_version, "kind": kind, **drop_nulls(rendered)}
    schema = _schema(file, api_version.rpartition("/")[2])
    assert schema_errors(schema, obj, "") == []
    assert not list(unknown_fields(schema, obj))


@cache
def _schema(file: str, version: str) -> Schema:
    folder = Path(os.environ.get("TEST_CRD_DIR") or _REPOSITORY.parent / "shared" / "crds")
    path = _REPOSITORY / file if file.startswith("manifests/") else folder / file
    if not path.is_file():
        pytest.skip(f"no {path}: set TEST_CRD_DIR to a folder with the CRDs of Gateway API and cert-manager")
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    versions = yaml.load(path.read_text(), Loader=loader)["spec"]["versions"]
    schema: dict[str, Any] = next(each for each in versions if each["name"] == version)["schema"]["openAPIV3Schema"]
    schema["properties"]["metadata"] = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    return schema


HARBOR = "harbor.foo.example.com"
TAKEOVER = "gateway tenant-foo/cozystack exists but is not owned by TenantGateway tenant-foo/cozystack"
HTTP01 = gateway(passthrough=("api",))
DNS01 = gateway(cert_mode="dns01")
EXISTING = gateway(cert_mode="existingSecret", wildcard_secret="ours")


def reported(type_: str, status: str = "True", reason: str = "X", generation: int = 2) -> Object:
    return {"type": type_, "status": status, "reason": reason, "message": "reported", "observedGeneration": generation}


def programmed(tenantgateway: TenantGateway, plan: Plan, **listeners: list[Object]) -> Object:
    """A programmed Gateway; `listeners` override the conditions of listeners by name, with `_` for a dash."""
    obj = existing_gateway(tenantgateway, plan)
    obj["metadata"]["generation"] = 2
    fine = [reported("Accepted"), reported("ResolvedRefs"), reported("Programmed")]
    obj["status"] = {
        "conditions": [reported("Accepted"), reported("Programmed")],
        "listeners": [
            {"name": each.name, "conditions": listeners.get(each.name.replace("-", "_"), fine)}
            for each in plan.listeners
        ],
    }
    return obj


def certificates(plan: Plan, status: str = "True") -> dict[str, Object]:
    ready = {"metadata": {"generation": 2}, "status": {"conditions": [reported("Ready", status, "Issued")]}}
    return {each.name: copy.deepcopy(ready) for each in plan.certificates}


def all_well(tenantgateway: TenantGateway) -> ReconcileResult:
    plan = planned(
        tenantgateway,
        route("tenant-foo", "harbor", HARBOR),
        inheriting=(InheritingNamespace("tenant-a", "a.foo.example.com"),),
    )
    return ReconcileResult(
        gateway=tenantgateway, plan=plan, current=programmed(tenantgateway, plan), certificates=certificates(plan)
    )


def ready_of(found: ReconcileResult) -> Mapping[str, Any]:
    ready = find_condition(render_tenantgateway_status(found, now=NOW)["conditions"], "Ready")
    assert ready is not None
    return ready


def shown(found: ReconcileResult, name: str) -> Mapping[str, Any]:
    listeners: list[Mapping[str, Any]] = list(render_tenantgateway_status(found, now=NOW)["listeners"])
    return next(each for each in listeners if each["name"] == name)
