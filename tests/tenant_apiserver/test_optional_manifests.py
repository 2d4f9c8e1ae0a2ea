"""Components add what they are about and nothing else; the right to read all Secrets is one of them."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
import yaml

from tenant_apiserver.least_privilege.rights import RIGHTS
from tests.tenant_apiserver.test_generate_manifests import COMPONENTS, OVERLAYS, ROOT, built


@pytest.mark.parametrize("component", COMPONENTS)
def test_a_component_changes_no_label_of_the_objects_that_it_is_added_to(component: str, tmp_path: Path) -> None:
    """Otherwise uninstalling the server would delete the roles of tenants' people."""
    above, added = (os.path.relpath(path, tmp_path.resolve()) for path in (ROOT, ROOT / component))
    (tmp_path / "kustomization.yaml").write_text(yaml.safe_dump({"resources": [above], "components": [added]}))
    with_it = {_identity(each): each["metadata"].get("labels") for each in built(str(tmp_path))}
    without = {_identity(each): each["metadata"].get("labels") for each in built(".")}
    assert {each: with_it[each] for each in without} == without
    assert len(with_it) > len(without)


def _identity(obj: dict[str, Any]) -> tuple[str, str, str]:
    return obj["kind"], obj["metadata"].get("namespace", ""), obj["metadata"]["name"]


SECRET_RIGHTS_OF_ALL_NAMESPACES: set[tuple[str, tuple[str, ...]]] = {
    ("create", ()),
    *((verb, ("cozystack-values",)) for verb in ("get", "list", "watch", "patch", "delete")),
}
"""RBAC authorizes a creation before the object has a name; a policy limits it."""


@pytest.mark.parametrize("directory", [".", "base", *OVERLAYS])
def test_an_installation_gives_no_right_to_the_secrets_of_others(directory: str) -> None:
    """Except with the component of TenantSecrets, the account reads Secrets of one name only."""
    objects = built(directory)
    bound = {each["roleRef"]["name"] for each in objects if each["kind"] == "ClusterRoleBinding"}
    found = _rights_to_secrets([each for each in objects if each["metadata"]["name"] in bound])
    assert found <= SECRET_RIGHTS_OF_ALL_NAMESPACES
    if "Deployment" in {each["kind"] for each in objects} and directory not in (
        "overlays/shadow",
        "overlays/proxy",
    ):
        assert found == SECRET_RIGHTS_OF_ALL_NAMESPACES


def test_only_the_component_gives_the_right_to_all_secrets() -> None:
    component = built("components/tenantsecrets")
    assert _rights_to_secrets(component) == {
        (verb, ()) for verb in ("get", "list", "watch", "create", "update", "delete")
    }
    assert {each["metadata"]["name"] for each in component} == {"tenant-apiserver:tenantsecrets"}
    unlimited = [each for each in RIGHTS if "secrets" in each.resources and not each.names]
    assert [each.role.component for each in unlimited] == ["tenantsecrets"]


def _rights_to_secrets(objects: list[dict[str, Any]]) -> set[tuple[str, tuple[str, ...]]]:
    """Verbs with names, of the ClusterRoles among the objects."""
    return {
        (verb, tuple(rule.get("resourceNames", ())))
        for each in objects
        if each["kind"] == "ClusterRole"
        for rule in each["rules"]
        if {"", "*"} & set(rule.get("apiGroups", ())) and {"secrets", "*"} & set(rule["resources"])
        for verb in rule["verbs"]
    }
