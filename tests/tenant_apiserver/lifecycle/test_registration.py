"""An APIService that has moved to our Service and back is what it was."""

from __future__ import annotations

import json
from copy import deepcopy
from typing import Any

import pytest

from tenant_apiserver.lifecycle.registration import (
    FORMER_ANNOTATION,
    NotSaved,
    OurServer,
    has_other_port,
    is_moved,
    is_returnable,
    last_mover,
    moved_back,
    moved_to_us,
    new_registration,
)
from tenant_apiserver.lifecycle.serving import leads_to_us
from tests.tenant_apiserver.lifecycle.live_cozystack import HELM, INJECTED, PEER, api_service, local
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


def test_a_priority_that_the_peers_chart_has_changed_meanwhile_is_kept() -> None:
    moved = moved_to_us(api_service("apps.cozystack.io"), CA)
    moved["spec"]["groupPriorityMinimum"] = 1100
    assert moved_back(moved)["spec"]["groupPriorityMinimum"] == 1100


def test_a_port_that_the_peers_chart_has_changed_meanwhile_is_that_of_the_peer() -> None:
    """A merged upgrade writes it into the APIService that leads to us, where nobody answers at this port."""
    before = api_service("apps.cozystack.io")
    moved = moved_to_us(before, CA)
    assert not has_other_port(moved)
    moved["spec"]["service"]["port"] = 9443
    assert has_other_port(moved)
    assert moved_back(moved)["spec"]["service"] == {**PEER, "port": 9443}
    again = moved_to_us(moved_back(moved), CA)
    assert again["spec"]["service"]["port"] == CA.port
    assert moved_back(again)["spec"] == {**before["spec"], "service": {**PEER, "port": 9443}}


def test_a_registration_that_an_earlier_version_has_moved_has_no_other_port() -> None:
    """Its annotation does not say which port was ours."""
    before = api_service("apps.cozystack.io")
    moved = moved_to_us(before, CA)
    annotations = moved["metadata"]["annotations"]
    former = json.loads(annotations[FORMER_ANNOTATION])
    del former["port"]
    annotations[FORMER_ANNOTATION] = json.dumps(former)
    assert not has_other_port(moved)
    assert moved_back(moved) == before


def test_a_service_that_the_peers_chart_has_renamed_meanwhile_gets_its_port_and_its_ca_by_a_second_move() -> None:
    """A merged upgrade writes the name alone, and neither cert-manager's annotation nor the port."""
    before = api_service("apps.cozystack.io")
    before["spec"]["service"]["port"] = 6443
    renamed = moved_to_us(before, CA)
    renamed["spec"]["service"]["name"] = "cozystack-api-v2"
    back = moved_back(moved_to_us(renamed, CA))
    renamed_before = {**before["spec"], "service": {**PEER, "name": "cozystack-api-v2", "port": 6443}}
    assert back["spec"] == renamed_before
    assert back["metadata"]["annotations"] == before["metadata"]["annotations"]


def test_the_last_mover_is_the_manager_that_has_written_the_service_last() -> None:
    service: dict[str, Any] = {"f:spec": {"f:service": {"f:name": {}}}}
    managers = [
        {"manager": "helm", "time": "2026-01-02T00:00:00Z", "fieldsV1": service},
        {"manager": "tenant-apiserver-operator", "time": "2026-01-01T00:00:00Z", "fieldsV1": service},
        {"manager": "cainjector", "time": "2026-01-03T00:00:00Z", "fieldsV1": {"f:spec": {"f:caBundle": {}}}},
    ]
    assert last_mover(api_service("apps.cozystack.io", managedFields=managers)) == "helm"
    assert last_mover(api_service("apps.cozystack.io")) == "somebody"
