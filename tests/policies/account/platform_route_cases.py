"""The routes of the platform's services. All in the test process: their namespaces are those of a platform."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from apiserver.meta.resource import Object
from controller.publishing.services import SERVICES, PlatformService
from tests.policies.account.case import HTTPROUTES, TLSROUTES, AccountCase, Kind, case

_LABELS = {"apps.cozystack.io/platform-route": "x"}


def _kind(service: PlatformService) -> Kind:
    return HTTPROUTES if service.kind == "HTTPRoute" else TLSROUTES


def _route(service: PlatformService, *, labels: Any = _LABELS, annotations: Any = None, **rule: Any) -> Object:
    rules = [{"backendRefs": [{"name": service.backend, "port": service.port}], **rule}]
    metadata = {"labels": labels} | ({"annotations": annotations} if annotations else {})
    return {"metadata": metadata, "spec": {"hostnames": [service.hostname("example.org")], "rules": rules}}


def platform_routes() -> Iterator[AccountCase]:
    for service in SERVICES.values():
        yield _case(service, f"{service.name} created", new=_route(service))
        yield _case(service, f"{service.name} deleted", old=_route(service))
    for service in (SERVICES["dashboard"], SERVICES["api"]):
        yield from _refused(service)
        yield from _limited(service)


def _refused(service: PlatformService) -> Iterator[AccountCase]:
    place, ours = f"{service.namespace}/{service.route}", _route(service)
    yield _case(service, "platform route elsewhere", namespace="cozy-keycloak", new=ours, refusal=place)
    yield _case(service, "platform route of another name", name="other", new=ours, refusal=place)
    unmarked = _route(service, labels={})
    yield _case(service, "platform route without a mark", new=unmarked, refusal=place)
    yield _case(service, "platform route taken over", old=unmarked, new=ours, refusal=place)
    yield _case(service, "platform route of others deleted", old=unmarked, refusal=place)
    yield _case(service, "platform route without labels", new={"spec": ours["spec"]}, refusal=place)


def _limited(service: PlatformService) -> Iterator[AccountCase]:
    ours = _route(service)
    for key in ("apps.cozystack.io/unneeded-since", "meta.helm.sh/release-name"):
        yield _case(service, f"platform route gets {key}", old=ours, new=_route(service, annotations={key: "x"}))
    refusal = "of the annotations of platform routes, only ours and Helm's change"
    target = {"external-dns.alpha.kubernetes.io/target": "evil.example"}
    evil = _route(service, annotations=target)
    yield _case(service, "platform route created with a target", new=evil, refusal=refusal)
    yield _case(service, "platform route gets a target", old=ours, new=evil, refusal=refusal)
    yield _case(service, "platform route loses a target", old=evil, new=ours, refusal=refusal)
    other = _route(service, annotations={next(iter(target)): "other.example"})
    yield _case(service, "platform route changes a target", old=evil, new=other, refusal=refusal)
    yield _case(service, "platform route keeps a target", old=evil, new=evil)
    refusal = "platform routes lead to Services of the platform in their own namespace"
    for id, rule in {
        "to another Service": {"backendRefs": [{"name": "evil"}]},
        "to another namespace": {"backendRefs": [{"name": service.backend, "namespace": "evil"}]},
        "with a filter": {"filters": [{"type": "RequestMirror"}]},
    }.items():
        yield _case(service, f"platform route {id}", new=_route(service, **rule), refusal=refusal)
    yield _case(service, "platform route without backends", new=_route(service, backendRefs=[]))


def _case(service: PlatformService, id: str, *, namespace: str = "", name: str = "", **fields: Any) -> AccountCase:
    kind = _kind(service)
    return case(kind, id, namespace or service.namespace, name or service.route, in_process=True, **fields)
