"""`uninstall` deletes only what a version of this server installs or stores, and nobody else owns."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from apiserver.meta.resource import Object
from registry.application.kept_forms import NAME as KEPT_FORMS
from registry.application.kept_forms import to_data
from registry.cluster.interface import (
    CLUSTERROLES,
    CONFIGMAPS,
    LEASES,
    SECRETS,
    SERVICES,
    VALIDATINGADMISSIONPOLICIES,
    ClusterResource,
)
from tenant_apiserver.lifecycle.command import StepRefused
from tenant_apiserver.lifecycle.kinds import DEPLOYMENTS
from tests.registry.application.applications import definition
from tests.tenant_apiserver.lifecycle.live_cozystack import deployment
from tests.tenant_apiserver.lifecycle.test_uninstall import (
    HOME,
    KEYS,
    PART_OF,
    RELEASE,
    SECRET_NAME,
    WRITTEN,
    installed,
    run,
)

Foreign = tuple[ClusterResource, Object, str]
"""An object of somebody, its kind, and the reason why it stays."""


def _helms_role() -> Foreign:
    metadata = {"name": "tenant-apiserver", "labels": PART_OF, "annotations": RELEASE}
    return CLUSTERROLES, {"metadata": metadata}, "owned by Helm release ns/umbrella"


def _fluxes_role() -> Foreign:
    flux = {"kustomize.toolkit.fluxcd.io/name": "platform", "kustomize.toolkit.fluxcd.io/namespace": "flux-system"}
    metadata = {"name": "tenant-apiserver", "labels": {**PART_OF, **flux}}
    return CLUSTERROLES, {"metadata": metadata}, "owned by Flux's Kustomization flux-system/platform"


def _role_of_another_name() -> Foreign:
    return (
        CLUSTERROLES,
        {"metadata": {"name": "dashboards", "labels": PART_OF}},
        "no version of this server installs it",
    )


def _role_elsewhere() -> Foreign:
    metadata = {"name": "tenant-apiserver", "namespace": "elsewhere", "labels": PART_OF}
    return SERVICES, {"metadata": metadata}, "no version of this server installs it"


def _secret_of_somebody() -> Foreign:
    return SECRETS, {"metadata": {"name": SECRET_NAME, **HOME}, "data": KEYS}, "no server of ours has written it"


def _secret_with_more() -> Foreign:
    metadata = {"name": SECRET_NAME, **HOME, **WRITTEN}
    return SECRETS, {"metadata": metadata, "data": {**KEYS, "password": "x"}}, "it has other keys, too: password"


def _secret_of_helm() -> Foreign:
    metadata = {"name": SECRET_NAME, **HOME, **WRITTEN, "annotations": RELEASE}
    return SECRETS, {"metadata": metadata, "data": KEYS}, "owned by Helm release ns/umbrella"


def _config_map_of_somebody() -> Foreign:
    metadata = {"name": KEPT_FORMS, **HOME, "managedFields": [{"manager": "kubectl-create"}]}
    return CONFIGMAPS, {"metadata": metadata, **_forms()}, "no server of ours has written it"


def _config_map_with_more() -> Foreign:
    forms = {**_forms()["binaryData"], "theirs": "eA=="}
    return CONFIGMAPS, {"metadata": {"name": KEPT_FORMS, **HOME}, "binaryData": forms}, "no server of ours"


def _config_map_with_text() -> Foreign:
    return CONFIGMAPS, {"metadata": {"name": KEPT_FORMS, **HOME}, "data": {"note": "x"}}, "no server of ours"


def _forms() -> dict[str, Any]:
    form = definition()
    return {"binaryData": dict(to_data({form.name: form}).data)}


def _lease_of_somebody() -> Foreign:
    return LEASES, {"metadata": {"name": "tenant-apiserver-claims", **HOME}}, "no server of ours has written it"


@pytest.mark.parametrize(
    "foreign",
    [
        pytest.param(_helms_role, id="a role of Helm"),
        pytest.param(_fluxes_role, id="a role of Flux"),
        pytest.param(_role_of_another_name, id="another name with our label"),
        pytest.param(_role_elsewhere, id="in another namespace"),
        pytest.param(_secret_of_somebody, id="a Secret that we have not written"),
        pytest.param(_secret_with_more, id="a Secret with other keys"),
        pytest.param(_secret_of_helm, id="a Secret of Helm"),
        pytest.param(_config_map_of_somebody, id="a ConfigMap that we have not written"),
        pytest.param(_config_map_with_more, id="a ConfigMap with other keys"),
        pytest.param(_config_map_with_text, id="a ConfigMap with a text"),
        pytest.param(_lease_of_somebody, id="a Lease that we have not written"),
    ],
)
async def test_objects_of_others_are_kept_and_named(foreign: Callable[[], Foreign]) -> None:
    cluster = installed()
    res, obj, why = foreign()
    cluster.add(res, obj)
    metadata = obj["metadata"]
    before = cluster.peek(res, metadata.get("namespace", ""), metadata["name"])
    for dry_run in (True, False):
        _, said = await run(cluster, dry_run=dry_run)
        [line] = [
            each for each in said.splitlines() if each.startswith(f"  {res.kind} {metadata['name']}") and why in each
        ]
        assert line
        assert "stay" in said
    assert cluster.peek(res, metadata.get("namespace", ""), metadata["name"]) == before
    # the rest of the installation goes
    assert cluster.peek(DEPLOYMENTS, "cozy-system", "tenant-apiserver") is None


@pytest.mark.parametrize(
    "content",
    [
        pytest.param({}, id="every kind has gone"),
        pytest.param(_forms(), id="a kind has been added since"),
    ],
)
async def test_forms_of_ours_go_although_kubernetes_has_forgotten_who_wrote_them(content: dict[str, Any]) -> None:
    """A ConfigMap that has had no key has no managedFields from then on."""
    cluster = installed()
    cluster.add(CONFIGMAPS, {"metadata": {"name": KEPT_FORMS, **HOME}, **content})
    await run(cluster)
    assert cluster.peek(CONFIGMAPS, "cozy-system", KEPT_FORMS) is None


async def test_a_deployment_of_another_owner_is_not_scaled() -> None:
    cluster = installed()
    cluster.add(DEPLOYMENTS, deployment("tenant-apiserver", labels=PART_OF, annotations=RELEASE))
    with pytest.raises(StepRefused, match="owned by Helm release ns/umbrella; first let its owner scale it to 0"):
        await run(cluster)
    assert cluster.writes == []


async def test_policies_of_earlier_versions_go_too() -> None:
    cluster = installed()
    former = {"metadata": {"name": "tenant-apiserver-limits-gateways-httproutes", "labels": PART_OF}}
    cluster.add(VALIDATINGADMISSIONPOLICIES, former)
    await run(cluster)
    assert cluster.peek_all(VALIDATINGADMISSIONPOLICIES) == []
