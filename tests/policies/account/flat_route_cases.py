"""Flat routes, which the root of a delegation owns."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from apiserver.meta.resource import Object
from controller.tenantgateway.names import VERTEX_LABEL
from tests.policies.account.case import GRPCROUTES, HTTPROUTES, TENANT, TLSROUTES, AccountCase, Kind, case

_ROOT = {"apiVersion": "gateway.networking.k8s.io/v1", "name": "www", "uid": "u"}
_LABELS = {VERTEX_LABEL: "0123456789abcdef"}
_SPEC = {"hostnames": ["a.example.org"], "rules": [{"backendRefs": [{"name": "web", "namespace": "a", "port": 80}]}]}
_NAME = "www-01234567"
_PLACE = "flat routes, which their root owns"


def _flat_route(owner: Object, labels: Object | None = None, **metadata: Object) -> Object:
    return {"metadata": {"ownerReferences": [owner], "labels": _LABELS if labels is None else labels, **metadata}}


def flat_routes() -> Iterator[AccountCase]:
    """All in the test process: the garbage collector would delete an object whose owner does not exist."""
    for kind in (HTTPROUTES, GRPCROUTES, TLSROUTES):
        yield from _of_kind(kind)


def _of_kind(kind: Kind) -> Iterator[AccountCase]:
    root, stays = {**_ROOT, "kind": kind.kind}, f"its owner of kind {kind.kind} and its labels must remain"
    flat = partial(_flat_route, root)

    def change(id: str, refusal: str = "", *, old: Object | None = None, new: Object | None = None) -> AccountCase:
        before = None if old is None else {"spec": _SPEC, **old}
        after = None if new is None else {"spec": _SPEC, **new}
        return case(kind, id, TENANT, _NAME, old=before, new=after, refusal=refusal, in_process=True)

    yield change("flat", new=flat())
    yield change("flat, changed", old=flat(), new=flat())
    yield change("flat, deleted", old=flat())
    yield change("a user's, deleted", _PLACE, old={"metadata": {}})
    yield change("a user's with the label, deleted", _PLACE, old={"metadata": {"labels": _LABELS}})
    for field, value in (("kind", "Gateway"), ("apiVersion", "example.org/v1")):
        other = _flat_route({**root, field: value})
        yield change(f"flat with another {field} of its owner", _PLACE, new=other)
        yield change(f"flat, handed to another {field}", stays, old=flat(), new=other)
    yield change("flat without its label", _PLACE, new=flat(labels={}))
    yield change("flat, loses its label", stays, old=flat(), new=flat(labels={}))
    yield change("a user's becomes flat", _PLACE, old={"metadata": {}}, new=flat())
    annotated = flat(annotations={"external-dns.alpha.kubernetes.io/target": "evil.example"})
    refusal = "annotations of Gateways and routes stay as they are"
    yield change("flat with an annotation", refusal, new=annotated)
    yield change("flat, gets an annotation", refusal, old=flat(), new=annotated)
    other = flat(annotations={"external-dns.alpha.kubernetes.io/target": "other.example"})
    yield change("flat, changes an annotation", refusal, old=annotated, new=other)
    yield change("flat, keeps an annotation", old=annotated, new=annotated)
