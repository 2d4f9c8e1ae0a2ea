"""The labels of a HelmRelease say whom it concerns."""

from __future__ import annotations

import pytest

from tenant_apiserver.wiring.releases import concerned

GROUP, KIND = "apps.cozystack.io/application.group", "apps.cozystack.io/application.kind"
OURS, MODULE = {GROUP: "apps.cozystack.io"}, {"internal.cozystack.io/tenantmodule": "true"}


@pytest.mark.parametrize(
    ("labels", "names"),
    [
        pytest.param(None, [], id="no labels"),
        pytest.param({"team": "x"}, [], id="of others"),
        pytest.param({KIND: "Tenant"}, [], id="a kind of no group"),
        pytest.param({GROUP: "other.example", KIND: "Tenant"}, [], id="a kind of another group"),
        pytest.param(OURS, [], id="no kind"),
        pytest.param({**OURS, KIND: "Tenant"}, ["tenants"], id="a Tenant"),
        pytest.param({**OURS, KIND: "Redis"}, ["applications"], id="an application"),
        pytest.param({**OURS, KIND: "VMDisk"}, ["applications", "VMDisk"], id="a source of options"),
        pytest.param({**OURS, **MODULE, KIND: "Etcd"}, ["applications", "modules"], id="an application and a module"),
        pytest.param(MODULE, ["modules"], id="a module that is no application"),
    ],
)
def test_a_helmrelease_concerns_those_whom_its_labels_name(labels: dict[str, str] | None, names: list[str]) -> None:
    assert list(concerned({"metadata": {"name": "x", "labels": labels}})) == names
