from __future__ import annotations

import pytest

from registry.tenant.inheritance import Services, effective_scheduling_class, effective_services
from registry.tenant.summary import TenantSummary
from tests.tenant_objects import root_summary, tenant_summary, tree_of

# seed 001: foo with etcd and monitoring, bar in foo with etcd
FOO = tenant_summary("foo", spec={"etcd": True, "monitoring": True})
BAR = tenant_summary("bar", "tenant-foo", spec={"etcd": True})
BAZ = tenant_summary("baz", "tenant-foo-bar", spec={"seaweedfs": True})
ALONE = tenant_summary("alone")
LOST = tenant_summary("lost", "default", spec={"ingress": True})


@pytest.mark.parametrize(
    ("tenant", "expected"),
    [
        pytest.param(
            root_summary(),
            Services(etcd="tenant-root", ingress="tenant-root", monitoring="tenant-root", seaweedfs="tenant-root"),
            id="R-065 the root provides all without flags",
        ),
        pytest.param(
            ALONE,
            Services(etcd="tenant-root", ingress="tenant-root", monitoring="tenant-root", seaweedfs="tenant-root"),
            id="R-063 no service of its own",
        ),
        pytest.param(
            FOO,
            Services(etcd="tenant-foo", ingress="tenant-root", monitoring="tenant-foo", seaweedfs="tenant-root"),
            id="R-064 R-067 its own, named by its namespace",
        ),
        pytest.param(
            BAR,
            Services(etcd="tenant-foo-bar", ingress="tenant-root", monitoring="tenant-foo", seaweedfs="tenant-root"),
            id="R-063 R-075 the nearest ancestor's",
        ),
        pytest.param(
            BAZ,
            Services(
                etcd="tenant-foo-bar", ingress="tenant-root", monitoring="tenant-foo", seaweedfs="tenant-foo-bar-baz"
            ),
            id="a different provider for each",
        ),
        pytest.param(LOST, Services(ingress="default-lost"), id="outside of the tree, only its own"),
    ],
)
def test_services_come_from_the_nearest_ancestor(tenant: TenantSummary, expected: Services) -> None:
    tree = tree_of(FOO, BAR, BAZ, ALONE, LOST)

    assert effective_services(tenant, tree.ancestors(tenant)) == expected


@pytest.mark.parametrize(
    ("own", "parents", "roots", "expected"),
    [
        pytest.param("", "", "", "", id="none"),
        pytest.param("mine", "", "", "mine", id="its own, if no ancestor has one"),
        pytest.param("", "theirs", "", "theirs", id="inherited"),
        pytest.param("mine", "theirs", "", "theirs", id="a parent's class wins over the child's"),
        pytest.param("mine", "theirs", "roots", "roots", id="the class of the farthest ancestor wins"),
    ],
)
def test_the_scheduling_class_of_an_ancestor_wins(own: str, parents: str, roots: str, expected: str) -> None:
    parent = tenant_summary("foo", spec={"schedulingClass": parents})
    child = tenant_summary("bar", "tenant-foo", spec={"schedulingClass": own})
    tree = tree_of(root_summary(schedulingClass=roots), parent, child)

    assert effective_scheduling_class(child, tree.ancestors(child)) == expected
