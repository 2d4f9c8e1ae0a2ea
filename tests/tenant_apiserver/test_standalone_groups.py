"""The order of a group's versions: the first one is preferred."""

from __future__ import annotations

from collections.abc import Mapping
from typing import cast

from apiserver import rest
from apiserver.endpoints.installer import ApiGroupVersion, Endpoint
from tenant_apiserver.standalone_groups import own_versions_first, same_paths


def group_version(name: str, *endpoints: str) -> ApiGroupVersion:
    group, _, version = name.partition("/")
    return ApiGroupVersion(group=group, version=version, endpoints={each: endpoint(name) for each in endpoints})


def endpoint(owner: str) -> Endpoint:
    return cast(Endpoint, owner)


def served(*own: ApiGroupVersion, others: list[ApiGroupVersion]) -> Mapping[str, Mapping[str, Endpoint]]:
    return {f"{each.group}/{each.version}": each.endpoints for each in own_versions_first(others, own)}


def test_our_version_comes_before_those_that_definitions_add_to_the_group() -> None:
    others = [group_version("apps.example.com/v1", "boxes"), group_version("rbac/v1", "roles")]
    found = served(group_version("apps.example.com/v1alpha1", "tenants"), others=others)
    assert list(found) == ["rbac/v1", "apps.example.com/v1alpha1", "apps.example.com/v1"]


def test_what_a_definition_adds_to_our_version_is_served_beside_it_but_for_our_kinds() -> None:
    added = group_version("apps.example.com/v1alpha1", "boxes", "tenants", "tenants/status")
    own = ApiGroupVersion(group="apps.example.com", version="v1alpha1", endpoints={"tenants": endpoint("ours")})
    assert served(own, others=[added]) == {
        "apps.example.com/v1alpha1": {"boxes": endpoint("apps.example.com/v1alpha1"), "tenants": endpoint("ours")}
    }


def test_several_parts_of_our_version_are_one() -> None:
    parts = [group_version("core.example.com/v1alpha1", each) for each in ("spaces", "secrets")]
    [(name, endpoints)] = served(*parts, others=[]).items()
    assert (name, set(endpoints)) == ("core.example.com/v1alpha1", {"spaces", "secrets"})


def test_endpoints_stay_where_neither_the_resource_nor_a_subresource_has_changed() -> None:
    one, other, status, new = (cast(rest.Storage, object()) for _ in range(4))
    before = {"boxes": one, "boxes/status": status, "crates": other, "crates/status": status, "tins": one}
    now = {"boxes": one, "boxes/status": status, "crates": other, "crates/scale": new, "bags": new}
    assert same_paths(before, now) == ["boxes", "boxes/status"]
