"""Server-side apply by kubectl after a client-side apply."""

from __future__ import annotations

import json

import pytest

from apiserver.fieldmanager.last_applied import LAST_APPLIED
from apiserver.meta.errors import ApplyConflict
from tests.apiserver.fieldmanager.endpoint import TYPE, Endpoint, named


def endpoint_after_client_side_apply() -> Endpoint:
    endpoint = Endpoint()
    last = {**TYPE, "metadata": {"name": "x", "annotations": {}}, "spec": {"host": "a", "etcd": True}}
    metadata = {"name": "x", "annotations": {LAST_APPLIED: json.dumps(last) + "\n"}}
    endpoint.create({"metadata": metadata, "spec": {"host": "a", "etcd": True, "gateway": True}}, "client-side")
    return endpoint


def test_kubectl_takes_over_fields_of_its_client_side_apply() -> None:
    endpoint = endpoint_after_client_side_apply()
    endpoint.apply(named(spec={"host": "b", "etcd": True}), "kubectl")
    assert endpoint.live["spec"]["host"] == "b"
    assert endpoint.live["metadata"]["annotations"][LAST_APPLIED] == (
        '{"apiVersion":"apps.cozystack.io/v1alpha1","kind":"Tenant","metadata":{"name":"x"},'
        '"spec":{"etcd":true,"host":"b"}}\n'
    )


def test_kubectl_does_not_take_over_fields_it_never_applied() -> None:
    endpoint = endpoint_after_client_side_apply()
    with pytest.raises(ApplyConflict) as raised:
        endpoint.apply(named(spec={"host": "b", "gateway": False}), "kubectl")
    assert [cause["field"] for cause in raised.value.causes] == [".spec.gateway"]


def test_other_managers_take_over_nothing_from_client_side_apply() -> None:
    endpoint = endpoint_after_client_side_apply()
    with pytest.raises(ApplyConflict) as raised:
        endpoint.apply(named(spec={"host": "b"}), "flux")
    assert [cause["field"] for cause in raised.value.causes] == [".spec.host"]
