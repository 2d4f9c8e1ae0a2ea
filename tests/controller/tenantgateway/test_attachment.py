"""The label that attaches a system namespace to a gateway."""

from __future__ import annotations

import pytest

from apiserver.meta.resource import Key, Object
from controller.runtime.apply import merge_patch
from controller.tenantgateway.attachment import assign_attachments, namespace_patch
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


def attached(gateways: list[TenantGateway], *namespaces: Object) -> Attachments:
    return assign_attachments(
        gateways, {each["metadata"]["name"]: each for each in namespaces}, depth=lambda name: DEPTHS[name]
    )


def claimant(owner: str, *names: str, terminating: bool = False) -> TenantGateway:
    return gateway(owner, attached=names, terminating=terminating)


def test_every_namespace_of_the_list_is_the_gateways() -> None:
    """R-188, R-192, R-196: tenants' namespaces without a label and `default` as well."""
    names = ("cozy-harbor", "default", "tenant-zoe")
    found = attached([claimant("tenant-foo", *names)], *map(namespace, names))
    assert found == Attachments(owners=dict.fromkeys(names, "tenant-foo"))


def test_a_namespace_that_does_not_exist_is_no_error() -> None:
    """R-194."""
    assert attached([claimant("tenant-foo", "cozy-late")]) == Attachments()
    assert attached([claimant("tenant-foo", "cozy-late")], namespace("cozy-late")).owners == {"cozy-late": "tenant-foo"}


@pytest.mark.parametrize("reverse", [pytest.param(False, id="in order"), pytest.param(True, id="reversed")])
@pytest.mark.parametrize(
    ("owners", "keeps"),
    [
        pytest.param(["tenant-bar", "tenant-root"], "tenant-root", id="the one nearest the root of the tree"),
        pytest.param(["tenant-a-b", "tenant-foo"], "tenant-foo", id="before the smallest namespace"),
        pytest.param(["tenant-foo", "tenant-bar"], "tenant-bar", id="then the smallest namespace"),
    ],
)
def test_of_two_claimants_one_keeps_the_namespace(owners: list[str], keeps: str, reverse: bool) -> None:
    """GW-13: and the other one is told, in any order."""
    gateways = sorted((claimant(each, "cozy-x") for each in owners), key=lambda each: each.key, reverse=reverse)
    found = attached(gateways, namespace("cozy-x"))
    (loser,) = set(owners) - {keeps}
    assert found == Attachments(
        owners={"cozy-x": keeps}, attached_elsewhere={Key(loser, "cozystack"): {"cozy-x": keeps}}
    )


def test_a_claimant_nearer_to_the_root_takes_what_was_anothers() -> None:
    found = attached(
        [claimant("tenant-foo", "cozy-x"), claimant("tenant-root", "cozy-x")],
        namespace("cozy-x", label="tenant-foo", by="tenant-foo"),
    )
    assert found.owners == {"cozy-x": "tenant-root"}


def test_a_gateway_that_is_being_deleted_claims_nothing() -> None:
    """GW-14."""
    gateways = [claimant("tenant-root", "cozy-x", terminating=True), claimant("tenant-foo", "cozy-x")]
    assert attached(gateways, namespace("cozy-x")) == Attachments(owners={"cozy-x": "tenant-foo"})


def test_two_gateways_of_one_namespace_attach_to_the_same() -> None:
    other = gateway("tenant-foo", name="second", attached=("cozy-x",))
    found = attached([claimant("tenant-foo", "cozy-x"), other], namespace("cozy-x"))
    assert found == Attachments(owners={"cozy-x": "tenant-foo"})


@pytest.mark.parametrize(
    ("label", "lost"),
    [
        pytest.param("tenant-root", {Key("tenant-foo", "cozystack"): {"tenant-alice": "tenant-root"}}, id="another's"),
        pytest.param("tenant-foo", {}, id="its own already"),
    ],
)
def test_a_label_that_we_did_not_write_is_nobodys_to_take(label: str, lost: object) -> None:
    """R-190, R-193, CHOICE-8, PEER-05."""
    found = attached([claimant("tenant-foo", "tenant-alice")], namespace("tenant-alice", label=label))
    assert found == Attachments(owners={}, attached_elsewhere=lost)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("there", "owner", "label", "annotation"),
    [
        pytest.param(namespace("x"), "tenant-foo", "tenant-foo", "tenant-foo", id="R-189: missing"),
        pytest.param(namespace("x", label=""), "tenant-foo", "tenant-foo", "tenant-foo", id="empty"),
        pytest.param(
            namespace("x", label="tenant-bar", by="tenant-bar"), "tenant-foo", "tenant-foo", "tenant-foo", id="moved"
        ),
        pytest.param(
            namespace("x", label="edited", by="tenant-foo"), "tenant-foo", "tenant-foo", "tenant-foo", id="edited"
        ),
        pytest.param(namespace("x", by="tenant-foo"), "tenant-foo", "tenant-foo", "tenant-foo", id="label removed"),
        pytest.param(namespace("x", label="tenant-foo", by="tenant-foo"), None, None, None, id="R-191: stripped"),
        pytest.param(namespace("x", by="tenant-foo"), None, None, None, id="a leftover annotation"),
    ],
)
def test_a_label_of_ours_is_written_and_stripped(
    there: Object, owner: str | None, label: str | None, annotation: str | None
) -> None:
    """R-189, R-191, R-304: and everything else of the namespace stays."""
    desired = namespace_patch(there, owner)
    assert desired is not None
    changes = merge_patch(there, desired)["metadata"]
    labels = {**there["metadata"]["labels"], **changes.get("labels", {})}
    annotations = {**there["metadata"].get("annotations", {}), **changes.get("annotations", {})}
    assert (labels.get(LABEL), annotations.get(ANNOTATION)) == (label, annotation)
    assert labels["kept"] == "yes"
    assert set(changes) <= {"labels", "annotations"}


@pytest.mark.parametrize(
    ("there", "owner"),
    [
        pytest.param(namespace("x", label="tenant-foo", by="tenant-foo"), "tenant-foo", id="R-102: as it should be"),
        pytest.param(namespace("x", label="tenant-root"), "tenant-foo", id="R-190: a label of the tenant's"),
        pytest.param(namespace("x", label="tenant-foo"), "tenant-foo", id="R-193: a label of the tenant's, the same"),
        pytest.param(namespace("x", label="tenant-root"), None, id="R-193: which left the list"),
        pytest.param(namespace("x", label="tenant-root", by=""), None, id="an annotation that names nobody"),
        pytest.param(namespace("x", label=""), None, id="an empty label that is not ours"),
        pytest.param(namespace("x"), None, id="nothing"),
    ],
)
def test_nothing_is_written_where_nothing_is_to_do(there: Object, owner: str | None) -> None:
    assert namespace_patch(there, owner) is None


def test_labels_of_three_owners_and_their_heirs_stay_over_ten_passes() -> None:
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
