"""The references that ReferenceGrants permit, and the routes that a change of one concerns."""

from __future__ import annotations

from typing import Any

import pytest

from apiserver.meta.resource import Object
from controller.tenantgateway.consent.foreign_references import ForeignReferences
from controller.tenantgateway.consent.reference_grants import Permission, ReferenceGrants, Referrer, permissions
from controller.tenantgateway.consent.references import Reference
from controller.tenantgateway.model import RouteId

GATEWAY_API = "gateway.networking.k8s.io"
GUESTS = {"group": GATEWAY_API, "kind": "HTTPRoute", "namespace": "guest"}
SERVICES = {"group": "", "kind": "Service"}
GUEST = Referrer("HTTPRoute", "guest")
WEB = Reference("", "Service", "shop", "web")


def grant(name: str = "grant", namespace: str = "shop", *, referrers: Any = (GUESTS,), to: Any = (SERVICES,)) -> Object:
    spec = {"from": list(referrers), "to": None if to is None else list(to)}
    return {"metadata": {"namespace": namespace, "name": name}, "spec": spec}


def permits(*grants: Object, referrer: Referrer = GUEST, reference: Reference = WEB) -> bool:
    index = ReferenceGrants(lambda namespace, permission: None)
    for each in grants:
        index.handler.apply("ADDED", each, 1)
    return index.permit(referrer, reference)


@pytest.mark.parametrize(
    ("grants", "permitted"),
    [
        pytest.param([], False, id="R-366: no grant"),
        pytest.param([grant()], True, id="R-371: every Service"),
        pytest.param([grant(to=[{**SERVICES, "name": "web"}])], True, id="this Service"),
        pytest.param([grant(to=[{**SERVICES, "name": "other"}])], False, id="another Service"),
        pytest.param([grant(to=[{**SERVICES, "kind": "Secret"}])], False, id="R-368: another kind of target"),
        pytest.param([grant(to=[{**SERVICES, "group": "x.example"}])], False, id="another group of target"),
        pytest.param([grant(namespace="guest")], False, id="R-374: a grant of the referrer"),
        pytest.param([grant(referrers=[{**GUESTS, "kind": "TLSRoute"}])], False, id="another kind of route"),
        pytest.param([grant(referrers=[{**GUESTS, "group": ""}])], False, id="another group of route"),
        pytest.param([grant(referrers=[{**GUESTS, "namespace": "x"}])], False, id="another namespace"),
        pytest.param([grant(referrers=[{**GUESTS, "namespace": ""}])], False, id="no wildcard for namespaces"),
        pytest.param([grant(referrers=[])], False, id="R-370: an empty from"),
        pytest.param([grant(to=[])], False, id="R-370: an empty to"),
        pytest.param([grant(to=None)], False, id="no to"),
        pytest.param([grant("a", to=[]), grant("b")], True, id="R-372: grants add up"),
    ],
)
def test_a_reference_needs_a_grant_of_the_target(grants: list[Object], permitted: bool) -> None:
    assert permits(*grants) == permitted


def test_a_reference_within_a_namespace_needs_no_grant() -> None:
    """R-367."""
    assert permits(reference=WEB._replace(namespace="guest"))


def test_each_entry_of_from_is_combined_with_each_of_to() -> None:
    """R-369."""
    referrers = [GUESTS, {**GUESTS, "namespace": "other"}]
    assert permissions(grant(referrers=referrers, to=[{**SERVICES, "name": "a"}, SERVICES])) == {
        Permission(Referrer("HTTPRoute", namespace), "", "Service", name)
        for namespace in ("guest", "other")
        for name in ("a", "")
    }


def test_a_grant_that_is_being_deleted_permits_nothing() -> None:
    obj = grant()
    obj["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    assert not permits(obj)


def test_a_permission_lasts_as_long_as_one_grant_gives_it() -> None:
    """R-372: and only those are reported that a grant gains or loses."""
    changes: list[tuple[str, Permission]] = []
    index = ReferenceGrants(lambda namespace, permission: changes.append((namespace, permission)))
    every = Permission(GUEST, "", "Service")
    for type_, obj, permitted, changed in (
        ("ADDED", grant("a"), True, [every]),
        ("ADDED", grant("b"), True, [every]),
        ("MODIFIED", {**grant("b"), "status": {}}, True, []),
        ("DELETED", grant("a"), True, [every]),
        ("MODIFIED", grant("b", to=[{**SERVICES, "name": "web"}]), True, [every, every._replace(name="web")]),
        ("DELETED", grant("b"), False, [every._replace(name="web")]),
    ):
        changes.clear()
        index.handler.apply(type_, obj, 1)
        assert index.permit(GUEST, WEB) == permitted
        assert sorted(changes) == [("shop", each) for each in sorted(changed)]


def test_a_permission_concerns_only_routes_with_such_a_reference() -> None:
    index = ForeignReferences()
    app, other, tls = (RouteId("guest", "app", "HTTPRoute"), RouteId("guest", "other", "HTTPRoute"),
                       RouteId("guest", "app", "TLSRoute"))  # fmt: skip
    index.update(app, {WEB})
    index.update(other, {WEB._replace(name="db"), WEB._replace(namespace="elsewhere")})
    index.update(tls, {WEB})
    every = Permission(GUEST, "", "Service")
    assert set(index.concerned_by("shop", every)) == {app, other}
    assert set(index.concerned_by("shop", every._replace(name="web"))) == {app}
    assert set(index.concerned_by("elsewhere", every)) == {other}
    assert set(index.concerned_by("shop", every._replace(kind="Secret"))) == set()
    index.update(app, set())
    assert set(index.concerned_by("shop", every)) == {other}
    index.update(other, set())
    index.update(tls, set())
    assert list(index) == []
