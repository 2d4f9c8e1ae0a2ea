"""Paginated lists with limit and continue (WIRE-J10 to WIRE-J12)."""

from __future__ import annotations

from typing import Any

import pytest

from tests.e2e.support.clusters.cluster import ROOT, E2eCluster, tenants_path
from tests.e2e.support.tenants import Tenants

COUNT = 25


@pytest.fixture(scope="module")
def label(module_tenants: Tenants, module_unique: str) -> str:
    """Creates COUNT Tenants and returns a selector that matches them."""
    for _ in range(COUNT):
        module_tenants.create(labels={"e2e": module_unique, "snapshot": module_unique})
    return f"e2e={module_unique}"


@pytest.fixture(scope="module")
def snapshot_label(label: str) -> str:
    """Another selector that matches the same Tenants, for a test that adds one."""
    return label.replace("e2e", "snapshot")


def list_pages(cluster: E2eCluster, selector: str, limit: int) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    token = ""
    while not found or token:
        query = {"labelSelector": selector, "limit": limit, **({"continue": token} if token else {})}
        page = cluster.client().get(tenants_path(ROOT), query=query).expect(200)
        found.append(page)
        token = page["metadata"].get("continue", "")
    return found


@pytest.mark.parametrize("limit", [1, 7, 25, 26])
def test_pages_add_up_to_the_whole_list(cluster: E2eCluster, label: str, limit: int) -> None:
    pages = list_pages(cluster, label, limit)
    names = [item["metadata"]["name"] for page in pages for item in page["items"]]
    assert len(names) == COUNT
    assert names == sorted(names)
    assert {page["metadata"]["resourceVersion"] for page in pages} == {pages[0]["metadata"]["resourceVersion"]}
    assert [len(page["items"]) for page in pages[:-1]] == [limit] * (len(pages) - 1)


def test_a_page_of_a_selective_list_has_no_remaining_item_count(cluster: E2eCluster, label: str) -> None:
    first = list_pages(cluster, label, 10)[0]["metadata"]
    assert first["continue"]
    assert "remainingItemCount" not in first


def test_remaining_item_count_is_exact(cluster: E2eCluster, tenants: Tenants) -> None:
    workload = tenants.create_with_namespace()
    for _ in range(5):
        tenants.create(workload)
    query: dict[str, object] = {"limit": 2}
    remaining = []
    while True:
        page = cluster.client().get(tenants_path(workload), query=query).expect(200)["metadata"]
        remaining.append(page.get("remainingItemCount"))
        if not page.get("continue"):
            break
        query["continue"] = page["continue"]
    assert remaining == [3, 1, None]


def test_all_pages_show_the_same_snapshot(cluster: E2eCluster, tenants: Tenants, snapshot_label: str) -> None:
    query: dict[str, object] = {"labelSelector": snapshot_label, "limit": 10}
    first = cluster.client().get(tenants_path(ROOT), query=query).expect(200)
    later = tenants.create(labels=dict([snapshot_label.split("=")]))["metadata"]["name"]
    second = (
        cluster.client()
        .get(tenants_path(ROOT), query={**query, "limit": 100, "continue": first["metadata"]["continue"]})
        .expect(200)
    )
    names = [item["metadata"]["name"] for page in (first, second) for item in page["items"]]
    assert len(names) == COUNT
    assert later not in names


@pytest.mark.parametrize("token", ["garbage", "eyJ2IjoibWV0YS5rOHMuaW8vdjEifQ"])
def test_a_foreign_continue_token_is_a_bad_request(cluster: E2eCluster, token: str) -> None:
    answer = cluster.client().get(tenants_path(ROOT), query={"limit": 1, "continue": token})
    assert answer.expect(400)["reason"] == "BadRequest"


def test_kubectl_lists_in_chunks(cluster: E2eCluster, label: str) -> None:
    done = cluster.kubectl("get", "tenants", f"-n={ROOT}", "-l", label, "--chunk-size=4", "-o", "name")
    assert len(done.stdout.splitlines()) == COUNT
