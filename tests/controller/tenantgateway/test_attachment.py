"""Assignment of listed namespaces to gateways, and the patch of their label."""

from __future__ import annotations

from collections.abc import Collection

import pytest

from apiserver.meta.resource import Key, Object
from controller.runtime.apply import create_merge_patch
from controller.tenantgateway.attachment import AttachmentRules, assign_attachments, namespace_patch
from controller.tenantgateway.model import Attachments, TenantGateway
from tests.controller.tenantgateway.gateway_builders import gateway

LABEL = "namespace.cozystack.io/gateway"
ANNOTATION = "cozystack.io/gateway-attached-by"
DEPTHS = {"tenant-root": 0, "tenant-bar": 1, "tenant-foo": 1, "tenant-a-b": 2}


def namespace(name: str, *, label: str | None = None, by: str | None = None) -> Object:
    metadata: Object = {"name": name, "labels": {"kept": "yes"}, "resourceVersion": "1"}
    if label is not None:
        metadata["labels"][LABEL] = label
    if by is not None:
        metadata["annotations"] = {ANNOTATION: by, "kept": "too"}
    return {"metadata": metadata}


def attached(
    gateways: list[TenantGateway], *namespaces: Object, platform: Collection[str] = (), has_publisher: bool = True
) -> Attachments:
    rules = AttachmentRules(
        publisher="tenant-root", platform=platform, depth=lambda name: DEPTHS[name], has_publisher=has_publisher
    )
    return assign_attachments(gateways, {each["metadata"]["name"]: each for each in namespaces}, rules)


def claimant(owner: str, *names: str, terminating: bool = False) -> TenantGateway:
    return gateway(owner, attached=names, terminating=terminating)


def test_every_listed_namespace_is_attached() -> None:
    """R-188, R-192, R-196: namespaces of tenants without a label and `default`, too."""
    names = ("cozy-harbor", "default", "tenant-zoe")
    found = attached([claimant("tenant-foo", *names)], *map(namespace, names))
    assert found == Attachments(owners=dict.fromkeys(names, "tenant-foo"))


def test_a_namespace_that_does_not_exist_is_no_error() -> None:
    """R-194."""
    assert attached([claimant("tenant-foo", "cozy-late")]) == Attachments()
    assert attached([claimant("tenant-foo", "cozy-late")], namespace("cozy-late")).owners == {"cozy-late": "tenant-foo"}


@pytest.mark.parametrize("reverse", [pytest.param(False, id="in order"), pytest.param(True, id="reversed")])
@pytest.mark.parametrize(
    ("owners", "winner"),
    [
        pytest.param(["tenant-bar", "tenant-root"], "tenant-root", id="nearest to the root wins"),
        pytest.param(["tenant-a-b", "tenant-foo"], "tenant-foo", id="depth is compared before the name"),
        pytest.param(["tenant-foo", "tenant-bar"], "tenant-bar", id="then the smallest namespace wins"),
    ],
)
def test_a_namespace_listed_twice_is_attached_to_one_gateway(owners: list[str], winner: str, reverse: bool) -> None:
    """GW-13: the other one reports it, whatever the order."""
    gateways = sorted((claimant(each, "cozy-x") for each in owners), key=lambda each: each.key, reverse=reverse)
    found = attached(gateways, namespace("cozy-x"))
    (loser,) = set(owners) - {winner}
    assert found == Attachments(
        owners={"cozy-x": winner}, attached_elsewhere={Key(loser, "cozystack"): {"cozy-x": winner}}
    )


@pytest.mark.parametrize(
    ("owners", "held_by", "owner"),
    [
        pytest.param(["tenant-bar", "tenant-foo"], "tenant-foo", "tenant-foo", id="a new tenant takes nothing"),
        pytest.param(["tenant-bar", "tenant-a-b"], "tenant-a-b", "tenant-a-b", id="not even nearer to the root"),
        pytest.param(["tenant-bar", "tenant-foo"], "tenant-gone", "tenant-bar", id="the holder is deleted"),
        pytest.param(["tenant-root", "tenant-foo"], "tenant-foo", "tenant-root", id="the publisher goes before it"),
    ],
)
def test_the_holder_keeps_a_namespace(owners: list[str], held_by: str, owner: str) -> None:
    """Except from the tenant that publishes the platform's services."""
    found = attached([claimant(each, "x") for each in owners], namespace("x", label=held_by, by=held_by))
    assert found.owners == {"x": owner}


@pytest.mark.parametrize("held_by", [None, "tenant-foo"])
def test_a_namespace_of_the_platform_is_attached_to_the_publisher_or_to_nobody(held_by: str | None) -> None:
    """platform-routes.md 6: its routes name no other Gateway."""
    harbor = namespace("cozy-harbor", label=held_by, by=held_by)
    publisher, other = claimant("tenant-root", "cozy-harbor"), claimant("tenant-foo", "cozy-harbor")
    waiting, elsewhere = ({other.key: {"cozy-harbor": each}} for each in ("", "tenant-root"))
    assert attached([other], harbor, platform=("cozy-harbor",)) == Attachments(attached_elsewhere=waiting)
    assert attached([other, publisher], harbor, platform=("cozy-harbor",)) == Attachments(
        owners={"cozy-harbor": "tenant-root"}, attached_elsewhere=elsewhere
    )


@pytest.mark.parametrize(
    ("held_by", "owners"),
    [
        pytest.param("tenant-foo", {"cozy-harbor": "tenant-foo"}, id="it stays where it is"),
        pytest.param(None, {}, id="it goes nowhere new"),
        pytest.param("tenant-gone", {}, id="the holder is deleted"),
    ],
)
def test_without_a_publishing_tenant_a_namespace_of_the_platform_stays(
    held_by: str | None, owners: dict[str, str]
) -> None:
    """The setting may have a typing error, and the platform's services are published nevertheless."""
    harbor = namespace("cozy-harbor", label=held_by, by=held_by)
    claimants = [claimant("tenant-foo", "cozy-harbor"), claimant("tenant-bar", "cozy-harbor")]
    assert attached(claimants, harbor, platform=("cozy-harbor",), has_publisher=False).owners == owners


def test_a_tenantgateway_that_is_being_deleted_attaches_nothing() -> None:
    """GW-14."""
    gateways = [claimant("tenant-root", "cozy-x", terminating=True), claimant("tenant-foo", "cozy-x")]
    assert attached(gateways, namespace("cozy-x")) == Attachments(owners={"cozy-x": "tenant-foo"})


def test_two_tenantgateways_of_one_namespace_do_not_conflict() -> None:
    other = gateway("tenant-foo", name="second", attached=("cozy-x",))
    found = attached([claimant("tenant-foo", "cozy-x"), other], namespace("cozy-x"))
    assert found == Attachments(owners={"cozy-x": "tenant-foo"})


@pytest.mark.parametrize(
    ("label", "elsewhere"),
    [
        pytest.param(
            "tenant-root", {Key("tenant-foo", "cozystack"): {"tenant-alice": "tenant-root"}}, id="of another gateway"
        ),
        pytest.param("tenant-foo", {}, id="of the gateway itself"),
    ],
)
def test_a_namespace_with_a_foreign_label_is_attached_to_nobody(label: str, elsewhere: object) -> None:
    """R-190, R-193, CHOICE-8, PEER-05."""
    found = attached([claimant("tenant-foo", "tenant-alice")], namespace("tenant-alice", label=label))
    assert found == Attachments(owners={}, attached_elsewhere=elsewhere)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("existing", "owner", "label", "annotation"),
    [
        pytest.param(namespace("x"), "tenant-foo", "tenant-foo", "tenant-foo", id="R-189: label missing"),
        pytest.param(namespace("x", label=""), "tenant-foo", "tenant-foo", "tenant-foo", id="label empty"),
        pytest.param(
            namespace("x", label="tenant-bar", by="tenant-bar"),
            "tenant-foo",
            "tenant-foo",
            "tenant-foo",
            id="attached to another gateway before",
        ),
        pytest.param(
            namespace("x", label="edited", by="tenant-foo"), "tenant-foo", "tenant-foo", "tenant-foo", id="label edited"
        ),
        pytest.param(namespace("x", by="tenant-foo"), "tenant-foo", "tenant-foo", "tenant-foo", id="label removed"),
        pytest.param(
            namespace("x", label="tenant-foo", by="tenant-foo"), None, None, None, id="R-191: no longer listed"
        ),
        pytest.param(namespace("x", by="tenant-foo"), None, None, None, id="annotation without a label"),
    ],
)
def test_the_label_is_set_for_an_owner_and_removed_without_one(
    existing: Object, owner: str | None, label: str | None, annotation: str | None
) -> None:
    """R-189, R-191, R-304: all other fields of the namespace are kept."""
    desired = namespace_patch(existing, owner)
    assert desired is not None
    changes = create_merge_patch(existing, desired)["metadata"]
    labels = {**existing["metadata"]["labels"], **changes.get("labels", {})}
    annotations = {**existing["metadata"].get("annotations", {}), **changes.get("annotations", {})}
    assert (labels.get(LABEL), annotations.get(ANNOTATION)) == (label, annotation)
    assert labels["kept"] == "yes"
    assert set(changes) <= {"labels", "annotations"}


@pytest.mark.parametrize(
    ("existing", "owner"),
    [
        pytest.param(namespace("x", label="tenant-foo", by="tenant-foo"), "tenant-foo", id="R-102: correct already"),
        pytest.param(namespace("x", label="tenant-root"), "tenant-foo", id="R-190: a label of the tenant's"),
        pytest.param(namespace("x", label="tenant-foo"), "tenant-foo", id="R-193: an equal label of the tenant's"),
        pytest.param(namespace("x", label="tenant-root"), None, id="R-193: a label of the tenant's, not listed"),
        pytest.param(namespace("x", label="tenant-root", by=""), None, id="an empty annotation"),
        pytest.param(namespace("x", label=""), None, id="an empty label without annotation"),
        pytest.param(namespace("x"), None, id="neither label nor annotation"),
    ],
)
def test_nothing_is_written_if_nothing_changes(existing: Object, owner: str | None) -> None:
    assert namespace_patch(existing, owner) is None


def test_labels_of_three_owners_are_stable_over_ten_passes() -> None:
    """R-195, R-197."""
    tree = [namespace(f"tenant-{each}", label="tenant-root") for each in ("root", "h1", "h2", "h3", "h4", "h5", "h6")]
    system = [namespace("cozy-a"), namespace("cozy-b"), namespace("default")]
    gateways = [
        claimant("tenant-root", "cozy-a", "tenant-h1"),
        claimant("tenant-bar", "cozy-a", "cozy-b", "tenant-h2"),
        claimant("tenant-foo", "default", "cozy-b"),
    ]
    writes = []
    for _ in range(10):
        found = attached(gateways, *tree, *system)
        for each in (*tree, *system):
            if (desired := namespace_patch(each, found.owners.get(each["metadata"]["name"]))) is not None:
                writes.append(each["metadata"]["name"])
                each["metadata"]["labels"].update(desired["metadata"]["labels"])
                each["metadata"].setdefault("annotations", {}).update(desired["metadata"]["annotations"])
    assert writes == ["cozy-a", "cozy-b", "default"]
    assert [each["metadata"]["labels"][LABEL] for each in system] == ["tenant-root", "tenant-bar", "tenant-foo"]


def test_a_namespace_that_only_a_gateway_lists_which_may_own_none_is_attached_to_none() -> None:
    """A TenantGateway in a namespace of the platform, such as cozy-cert-manager, that lists a tenant's namespace."""
    rules = AttachmentRules(
        publisher="tenant-root",
        platform=(),
        depth=lambda name: DEPTHS[name],
        may_own=lambda owner: owner.startswith("tenant-"),
    )
    listing = claimant("cozy-cert-manager", "tenant-zoe")
    found = assign_attachments([listing], {"tenant-zoe": namespace("tenant-zoe")}, rules)
    assert (found.owners, found.attached_elsewhere) == ({}, {})
