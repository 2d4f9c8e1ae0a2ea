"""An APIService that has moved to our Service and back is what it was."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

import pytest

from tenant_apiserver.lifecycle.registration import (
    FORMER_ANNOTATION,
    NotSaved,
    OurServer,
    is_moved,
    is_returnable,
    last_mover,
    moved_back,
    moved_to_us,
    new_registration,
)
from tenant_apiserver.lifecycle.serving import leads_to_us
from tests.tenant_apiserver.lifecycle.live_cozystack import HELM, INJECTED, api_service, local
from tests.tenant_apiserver.test_generate_manifests import built, of_kind

CA = OurServer("b3Vycw==")
WITH_CERT_MANAGER = OurServer("b3Vycw==", "cozy-system/tenant-apiserver-serving")


@pytest.mark.parametrize("ca", [CA, WITH_CERT_MANAGER], ids=["own CA", "CA of cert-manager"])
@pytest.mark.parametrize(
    "changes",
    [
        pytest.param({}, id="of Helm and cert-manager"),
        pytest.param({"annotations": {}}, id="without annotations"),
        pytest.param({"labels": {"a": "b"}, "annotations": {"x": "y"}}, id="with others"),
    ],
)
def test_an_api_service_that_comes_back_is_what_it_was(changes: dict[str, Any], ca: OurServer) -> None:
    before = api_service("apps.cozystack.io", **changes)
    kept = deepcopy(before)
    moved = moved_to_us(before, ca)
    assert before == kept
    assert leads_to_us(moved)
    assert is_moved(moved)
    back = moved_back(moved)
    expected = deepcopy(before)
    if not before["metadata"]["annotations"]:
        del expected["metadata"]["annotations"]
    assert back == expected


def test_cert_manager_writes_no_ca_of_another_server() -> None:
    """Its cainjector follows the annotation: with the peer's, it would overwrite our CA."""
    moved = moved_to_us(api_service("apps.cozystack.io"), CA)
    assert moved["spec"]["caBundle"] == CA.bundle
    assert moved["metadata"]["annotations"].keys() == {*HELM, FORMER_ANNOTATION}
    moved = moved_to_us(api_service("apps.cozystack.io"), WITH_CERT_MANAGER)
    assert moved["metadata"]["annotations"]["cert-manager.io/inject-ca-from"] == WITH_CERT_MANAGER.certificate
    assert moved_back(moved)["metadata"]["annotations"] == {**HELM, **INJECTED}


def test_a_registration_without_a_ca_check_gets_one() -> None:
    before = api_service("apps.cozystack.io")
    before["spec"] |= {"insecureSkipTLSVerify": True}
    assert "insecureSkipTLSVerify" not in moved_to_us(before, CA)["spec"]
    assert moved_back(moved_to_us(before, CA))["spec"]["insecureSkipTLSVerify"] is True


def test_the_priorities_of_the_group_stay() -> None:
    before = api_service("apps.cozystack.io")
    before["spec"] |= {"groupPriorityMinimum": 7}
    assert moved_to_us(before, CA)["spec"]["groupPriorityMinimum"] == 7


def test_a_registration_of_kube_apiserver_itself_comes_back_without_a_service() -> None:
    before = local("apps.cozystack.io")
    back = moved_back(moved_to_us(before, CA))
    assert "service" not in back["spec"]
    assert back["spec"] == before["spec"]


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        pytest.param({}, True, id="as it is moved"),
        pytest.param({FORMER_ANNOTATION: "{}"}, False, id="not said"),
        pytest.param(
            {FORMER_ANNOTATION: '{"spec": {"group": "a", "version": "b"}, "annotations": {}}'}, False, id="other"
        ),
        pytest.param({"a": "b"}, False, id="another annotation"),
    ],
)
def test_only_what_can_return_exactly_is_moved(change: dict[str, str], expected: bool) -> None:
    before = api_service("apps.cozystack.io", annotations={FORMER_ANNOTATION: "of an earlier move", **HELM})
    moved = moved_to_us(before, CA)
    moved["metadata"]["annotations"] |= change
    assert is_returnable(moved, before) is expected


@pytest.mark.parametrize("saved", [None, "", "[]", "{}", '{"spec": {"service": 1}, "annotations": {}}'])
def test_nothing_is_guessed_where_the_former_form_is_not_known(saved: str | None) -> None:
    moved = moved_to_us(api_service("apps.cozystack.io"), CA)
    if saved is None:
        del moved["metadata"]["annotations"][FORMER_ANNOTATION]
    else:
        moved["metadata"]["annotations"][FORMER_ANNOTATION] = saved
    with pytest.raises(NotSaved):
        moved_back(moved)


@pytest.mark.parametrize(
    ("overlay", "ca"), [("overlays/register", CA), ("overlays/register-cert-manager", WITH_CERT_MANAGER)]
)
def test_a_group_that_nobody_has_is_registered_as_by_the_manifests(overlay: str, ca: OurServer) -> None:
    expected = of_kind(built(overlay), "APIService", "v1alpha1.core.cozystack.io")
    expected["spec"]["caBundle"] = ca.bundle
    assert new_registration("core.cozystack.io", ca) == expected


def put_back(moved: dict[str, Any], before: dict[str, Any]) -> dict[str, Any]:
    """As an upgrade of the peer's chart does, which names no CA and knows nothing of our annotation."""
    found = deepcopy(moved)
    found["spec"]["service"] = before["spec"]["service"]
    found["metadata"]["annotations"] |= before["metadata"]["annotations"]
    return found


def test_a_second_move_keeps_the_ca_that_the_former_server_had_before_the_first() -> None:
    before = api_service("apps.cozystack.io")
    again = moved_to_us(put_back(moved_to_us(before, CA), before), CA)
    assert again["spec"]["caBundle"] == CA.bundle
    assert moved_back(again)["spec"]["caBundle"] == before["spec"]["caBundle"]


def test_a_ca_that_somebody_else_has_written_since_is_kept() -> None:
    before = api_service("apps.cozystack.io")
    renewed = put_back(moved_to_us(before, CA), before)
    renewed["spec"]["caBundle"] = "cmVuZXdlZA=="
    assert moved_back(moved_to_us(renewed, CA))["spec"]["caBundle"] == "cmVuZXdlZA=="


def test_the_last_mover_is_the_manager_that_has_written_the_service_last() -> None:
    service: dict[str, Any] = {"f:spec": {"f:service": {"f:name": {}}}}
    managers = [
        {"manager": "helm", "time": "2026-01-02T00:00:00Z", "fieldsV1": service},
        {"manager": "tenant-apiserver-operator", "time": "2026-01-01T00:00:00Z", "fieldsV1": service},
        {"manager": "cainjector", "time": "2026-01-03T00:00:00Z", "fieldsV1": {"f:spec": {"f:caBundle": {}}}},
    ]
    assert last_mover(api_service("apps.cozystack.io", managedFields=managers)) == "helm"
    assert last_mover(api_service("apps.cozystack.io")) == "somebody"
