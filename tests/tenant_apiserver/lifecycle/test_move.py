"""`replace` and `back` move the APIServices, or leave them as they were."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from apiserver.meta.errors import StatusError
from apiserver.meta.resource import Key, Object
from registry.cluster.interface import APISERVICES, CLUSTERROLEBINDINGS, SECRETS, SERVICES, ClusterResource
from tenant_apiserver.lifecycle import availability, back, move
from tenant_apiserver.lifecycle.command import StepFailed, StepRefused
from tenant_apiserver.lifecycle.facts import GROUPS
from tenant_apiserver.lifecycle.registration import OurServer, moved_to_us
from tenant_apiserver.lifecycle.serving import service_of
from tenant_apiserver.options.lifecycle import BackOptions, MoveOptions
from tests.tenant_apiserver.lifecycle.live_cozystack import LiveCozystack, api_service, down, live_cozystack, local

PEER, OURS = "cozy-system/cozystack-api", "cozy-system/tenant-apiserver"
OUR_SERVICE = {"namespace": "cozy-system", "name": "tenant-apiserver"}
NAMES = [f"v1alpha1.{group}" for group in GROUPS]
HOME = {"namespace": "cozy-system"}


@pytest.fixture(autouse=True)
def _without_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(availability, "_POLL_SECONDS", 0.0)


@pytest.fixture
def cluster() -> LiveCozystack:
    return beside_us()


def beside_us() -> LiveCozystack:
    """A live Cozystack beside which our server has started."""
    found = live_cozystack()
    found.add(SECRETS, {"metadata": {"name": "tenant-apiserver-serving-cert", **HOME}, "data": {"ca.crt": "b3Vycw=="}})
    labels = {"app.kubernetes.io/part-of": "tenant-apiserver"}
    service = {"name": "tenant-apiserver", **HOME, "labels": labels}
    found.add(SERVICES, {"metadata": service, "spec": {"ports": [{"port": 8443}]}})
    return found


def options(**changes: Any) -> MoveOptions:
    return MoveOptions(**{"kubeconfig": None, "dry_run": False, "timeout": 0.0, **changes})


def registered(cluster: LiveCozystack) -> dict[str, Object]:
    """The labels and annotations that owners of the APIServices have written, by name."""
    found = {each["metadata"]["name"]: each for each in cluster.peek_all(APISERVICES)}
    return {
        name: {"annotations": each["metadata"].get("annotations"), "spec": each["spec"]} for name, each in found.items()
    }


def services(cluster: LiveCozystack) -> list[str]:
    return [service_of(each) for _, each in sorted(registered(cluster).items())]


async def test_the_groups_that_this_version_serves_move_there_and_back(cluster: LiveCozystack) -> None:
    before = registered(cluster)
    await move.move_to_us(cluster, options())
    moved = [group for group in GROUPS if f"v1alpha1.{group}" in cluster_names(cluster, OURS)]
    assert "apps.cozystack.io" in moved
    assert registered(cluster)["v1alpha1.apps.cozystack.io"]["spec"]["service"]["port"] == 8443
    await back.move_back(cluster, BackOptions(kubeconfig=None, dry_run=False, timeout=0.0))
    assert registered(cluster) == before


def cluster_names(cluster: LiveCozystack, service: str) -> set[str]:
    return {name for name, each in registered(cluster).items() if service_of(each) == service}


async def test_one_group_can_move_alone(cluster: LiveCozystack) -> None:
    await move.move_to_us(cluster, options(groups=("apps.cozystack.io",)))
    assert cluster_names(cluster, OURS) == {"v1alpha1.apps.cozystack.io"}


def only_the_peer_answers(cluster: LiveCozystack, error: StatusError) -> None:
    discover = cluster.discover

    async def answers_for_the_peer(api_version: str) -> Object:
        group = api_version.partition("/")[0]
        if service_of(registered(cluster)[f"v1alpha1.{group}"]) == OURS:
            raise error
        return await discover(api_version)

    cluster.discover = answers_for_the_peer  # type: ignore[method-assign]


@pytest.mark.parametrize(
    ("error", "why"),
    [
        pytest.param(StatusError(503, "ServiceUnavailable", "no endpoints"), "no endpoints", id="a Status"),
        pytest.param(down(), "the answer is 503 Service Unavailable", id="plain text of the aggregator"),
    ],
)
async def test_a_server_that_does_not_answer_gets_no_group(
    cluster: LiveCozystack, error: StatusError, why: str
) -> None:
    before = registered(cluster)
    only_the_peer_answers(cluster, error)
    with pytest.raises(StepRefused, match=f"is as it was before: {why}"):
        await move.move_to_us(cluster, options())
    assert registered(cluster) == before


async def test_a_group_moves_back_even_if_its_state_cannot_be_read(cluster: LiveCozystack) -> None:
    """As while a kube-apiserver restarts."""
    before = registered(cluster)
    reads = 0

    async def restart(verb: str, res: ClusterResource, key: Key) -> None:
        nonlocal reads
        if (verb, res) == ("get", APISERVICES) and cluster.writes:
            reads += 1
            if reads == 1:
                raise down()

    cluster.before = restart
    with pytest.raises(StepRefused, match="is as it was before: the answer is 503"):
        await move.move_to_us(cluster, options())
    assert registered(cluster) == before


async def test_a_peer_that_is_down_does_not_keep_its_group(cluster: LiveCozystack) -> None:
    cluster.served = {}

    async def start(verb: str, res: ClusterResource, key: Key) -> None:
        if cluster.writes:
            cluster.served = {group: ["tenants"] for group in GROUPS}

    cluster.before = start
    await move.move_to_us(cluster, options())
    assert services(cluster) == [OURS, OURS, OURS]


async def test_a_group_that_is_with_us_already_is_checked(
    cluster: LiveCozystack, capsys: pytest.CaptureFixture[str]
) -> None:
    await move.move_to_us(cluster, options())
    cluster.clear_writes()
    await move.move_to_us(cluster, options())
    assert "v1alpha1.apps.cozystack.io leads to us already, available" in capsys.readouterr().out
    del cluster.served["apps.cozystack.io"]
    for dry_run in (False, True):
        with pytest.raises(
            StepRefused, match=r"apps.cozystack.io leads to us already, and is NOT available: the answer"
        ):
            await move.move_to_us(cluster, options(dry_run=dry_run))
    assert cluster.writes == []


async def test_a_group_at_whose_port_an_upgrade_has_written_gets_ours_again(cluster: LiveCozystack) -> None:
    before = registered(cluster)
    await move.move_to_us(cluster, options())
    moved = registered(cluster)
    name = "v1alpha1.apps.cozystack.io"
    upgraded = cluster.peek(APISERVICES, "", name)
    assert upgraded is not None
    spec = upgraded["spec"]
    cluster.add(APISERVICES, {**upgraded, "spec": {**spec, "service": {**spec["service"], "port": 9443}}})
    await move.move_to_us(cluster, options())
    assert registered(cluster)[name]["spec"] == moved[name]["spec"]
    await back.move_back(cluster, BackOptions(kubeconfig=None, dry_run=False, timeout=0.0))
    peers = before[name]["spec"]
    assert registered(cluster)[name]["spec"] == {**peers, "service": {**peers["service"], "port": 9443}}


async def test_no_further_group_moves_to_a_server_that_is_down(cluster: LiveCozystack) -> None:
    await move.move_to_us(cluster, options(groups=("core.cozystack.io",)))
    only_the_peer_answers(cluster, down())
    with pytest.raises(StepRefused, match=r"core.cozystack.io leads to us already, and is NOT available"):
        await move.move_to_us(cluster, options())
    assert services(cluster) == [PEER, OURS, PEER]


async def test_a_group_of_a_custom_resource_definition_is_never_moved(cluster: LiveCozystack) -> None:
    cluster.add(APISERVICES, local("sdn.cozystack.io"))
    with pytest.raises(StepRefused, match="kube-apiserver itself serves the group, from a CustomResourceDefinition"):
        await move.move_to_us(cluster, options())
    assert cluster.writes == []
    # nor if it becomes one in between
    cluster.add(APISERVICES, api_service("sdn.cozystack.io"))

    async def race(verb: str, res: ClusterResource, key: Key) -> None:
        if (verb, res, key.name) == ("update", APISERVICES, "v1alpha1.apps.cozystack.io"):
            cluster.before = None
            cluster.add(APISERVICES, local("apps.cozystack.io"))

    cluster.before = race
    with pytest.raises(StepRefused, match="kube-apiserver itself serves the group"):
        await move.move_to_us(cluster, options())
    assert services(cluster) == ["", PEER, PEER]


async def test_a_group_that_is_local_returns_to_kube_apiserver(cluster: LiveCozystack) -> None:
    """By an earlier version, which moved it."""
    moved = moved_to_us(local("apps.cozystack.io"), OurServer("b3Vycw=="))
    cluster.add(APISERVICES, moved)
    await back.move_back(cluster, BackOptions(kubeconfig=None, dry_run=False, timeout=0.0))
    assert registered(cluster)["v1alpha1.apps.cozystack.io"]["spec"] == local("apps.cozystack.io")["spec"]


@pytest.mark.parametrize("verb", ["update", "create"])
async def test_a_move_that_is_not_permitted_is_refused_before_the_first_write(
    cluster: LiveCozystack, verb: str
) -> None:
    if verb == "create":
        await cluster.delete(APISERVICES, "", NAMES[-1])
        cluster.clear_writes()
    cluster.forbidden = {verb}
    name = NAMES[-1] if verb == "create" else NAMES[0]
    with pytest.raises(StepRefused, match=f"you may not {verb} APIService {name}"):
        await move.move_to_us(cluster, options())
    assert cluster.writes == []


async def test_a_move_that_ends_in_between_says_what_has_moved(cluster: LiveCozystack) -> None:
    async def deny(verb: str, res: ClusterResource, key: Key) -> None:
        if (verb, res, key.name) == ("update", APISERVICES, NAMES[1]):
            raise StatusError(403, "Forbidden", "a webhook denies it")

    cluster.before = deny
    with pytest.raises(StepFailed) as raised:
        await move.move_to_us(cluster, options())
    assert str(raised.value).splitlines() == [
        "v1alpha1.core.cozystack.io: a webhook denies it",
        "moved: v1alpha1.apps.cozystack.io",
        "not moved: v1alpha1.core.cozystack.io, v1alpha1.sdn.cozystack.io",
        "to return what has moved: tenant-apiserver back",
    ]
    assert services(cluster) == [OURS, PEER, PEER]


async def test_a_return_that_ends_in_between_says_what_is_left(cluster: LiveCozystack) -> None:
    await move.move_to_us(cluster, options())

    async def deny(verb: str, res: ClusterResource, key: Key) -> None:
        if (verb, res, key.name) == ("update", APISERVICES, NAMES[0]):
            raise StatusError(403, "Forbidden", "a webhook denies it")

    cluster.before = deny
    with pytest.raises(StepFailed, match=r"v1alpha1.apps.cozystack.io still leads to us: a webhook denies it"):
        await back.move_back(cluster, BackOptions(kubeconfig=None, dry_run=False, timeout=0.0))
    # the others do not wait for it
    assert services(cluster) == [OURS, PEER, PEER]


async def test_other_api_services_that_lead_to_us_are_named_by_back(
    cluster: LiveCozystack, capsys: pytest.CaptureFixture[str]
) -> None:
    other = api_service("apps.cozystack.io", OUR_SERVICE)
    other["metadata"]["name"] = "v1alpha2.apps.cozystack.io"
    cluster.add(APISERVICES, other)
    with pytest.raises(StepRefused, match=r"kubectl delete apiservice v1alpha2\.apps\.cozystack\.io"):
        await back.move_back(cluster, BackOptions(kubeconfig=None, dry_run=False, timeout=0.0))
    assert cluster.writes == []


async def test_what_cannot_be_read_is_said_in_a_stable_order(cluster: LiveCozystack) -> None:
    async def deny(verb: str, res: ClusterResource, key: Key) -> None:
        if (verb, res) == ("get", APISERVICES):
            raise StatusError(403, "Forbidden", f"{key.name} is forbidden")

    cluster.before = deny
    with pytest.raises(StepFailed) as raised:
        await back.move_back(cluster, BackOptions(kubeconfig=None, dry_run=False, timeout=0.0))
    assert str(raised.value).splitlines() == [
        *(f"APIService {name} cannot be read: {name} is forbidden" for name in NAMES),
        "you need credentials that may do this",
    ]
    with pytest.raises(StepFailed, match=r"unknown: v1alpha1.apps.cozystack.io is forbidden"):
        await move.move_to_us(cluster, options())


def _no_certificate(cluster: LiveCozystack) -> None:
    cluster.add(SECRETS, {"metadata": {"name": "tenant-apiserver-serving-cert", **HOME}, "data": {}})


def _lost_kind(cluster: LiveCozystack) -> None:
    cluster.served["apps.cozystack.io"] = ["tenants", "redises"]


@pytest.mark.parametrize(
    ("change", "text"),
    [
        pytest.param(_no_certificate, "no server of ours has started yet; first: kubectl rollout", id="not started"),
        pytest.param(_lost_kind, "redises.apps.cozystack.io", id="preflight"),
    ],
)
async def test_a_move_that_would_break_something_is_refused(
    cluster: LiveCozystack, change: Callable[[LiveCozystack], None], text: str
) -> None:
    change(cluster)
    with pytest.raises(StepRefused, match=text):
        await move.move_to_us(cluster, options())
    assert cluster.writes == []


async def test_nothing_is_written_by_a_dry_run(cluster: LiveCozystack, capsys: pytest.CaptureFixture[str]) -> None:
    await move.move_to_us(cluster, options(dry_run=True))
    assert cluster.writes == []
    assert f"v1alpha1.apps.cozystack.io would move from {PEER} to us" in capsys.readouterr().out


async def test_the_former_server_gets_no_group_while_everybody_may_list_tenants(cluster: LiveCozystack) -> None:
    """It shows all Tenants to whoever may list them."""
    await move.move_to_us(cluster, options())
    cluster.add(CLUSTERROLEBINDINGS, {"metadata": {"name": "cozy:tenants:visible"}})
    with pytest.raises(StepRefused, match="kubectl delete clusterrolebinding cozy:tenants:visible"):
        await back.move_back(cluster, BackOptions(kubeconfig=None, dry_run=False, timeout=0.0))
    assert OURS in services(cluster)
