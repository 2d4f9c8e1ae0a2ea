"""NetworkPolicies of the embedded cluster: defaults, validation and the table, as of a kube-apiserver."""

from __future__ import annotations

from typing import Any

import pytest

from apiserver.meta import errors
from apiserver.meta.resource import Key, Object
from apiserver.schema.pruning_and_defaulting import apply_defaults, object_schema
from registry.embedded.kinds import table_cells as cells
from registry.embedded.kinds.networking import NETWORKPOLICY
from tests.registry.embedded.embedded_storages import EmbeddedApi

GROUP = "networking.k8s.io"


async def create(api: EmbeddedApi, spec: Object) -> Object:
    """With the defaults of the schema, which a request's handler fills in."""
    obj: Object = {"metadata": {"name": "a", "namespace": "ns"}, "spec": spec}
    apply_defaults(object_schema(NETWORKPOLICY.resources()[0]), obj)
    return await api.create("networkpolicies", obj, group=GROUP)


@pytest.mark.parametrize(
    ("spec", "types"),
    [
        pytest.param({}, ["Ingress"], id="no rules"),
        pytest.param({"ingress": [{}]}, ["Ingress"], id="rules of ingress"),
        pytest.param({"egress": [{}]}, ["Ingress", "Egress"], id="rules of egress"),
        pytest.param({"policyTypes": ["Egress"]}, ["Egress"], id="as written"),
    ],
)
async def test_the_default_of_the_policy_types(api: EmbeddedApi, spec: Object, types: list[str]) -> None:
    created = await create(api, spec)

    assert created["spec"]["policyTypes"] == types
    assert created["spec"]["podSelector"] == {}
    assert created["metadata"]["generation"] == 1


async def test_ports_are_of_tcp_and_empty_lists_of_rules_are_not_stored(api: EmbeddedApi) -> None:
    created = await create(api, {"podSelector": {}, "ingress": [{"ports": [{"port": 80}]}], "egress": []})

    assert created["spec"]["ingress"] == [{"ports": [{"port": 80, "protocol": "TCP"}]}]
    assert "egress" not in created["spec"]
    changed = await api.update(
        "networkpolicies", Key("ns", "a"), lambda each: each["spec"].update(policyTypes=["Egress"]), group=GROUP
    )
    assert changed["metadata"]["generation"] == 2


def peer(**fields: Any) -> Object:
    return {"ingress": [{"from": [fields]}]}


BLOCK = {"cidr": "10.0.0.0/8"}


@pytest.mark.parametrize(
    ("spec", "field"),
    [
        pytest.param({"policyTypes": ["Both"]}, "spec.policyTypes[0]", id="an unknown type"),
        pytest.param({"policyTypes": ["Egress"] * 3}, "spec.policyTypes", id="three types"),
        pytest.param(peer(), "spec.ingress[0].from[0]", id="an empty peer"),
        pytest.param(peer(ipBlock=BLOCK, podSelector={}), "spec.ingress[0].from[0]", id="a block and a selector"),
        pytest.param(peer(ipBlock={"cidr": "10.0.0.0"}), "spec.ingress[0].from[0].ipBlock.cidr", id="no network"),
        pytest.param(
            peer(ipBlock={**BLOCK, "except": ["10.0.0.0/8"]}),
            "spec.ingress[0].from[0].ipBlock.except[0]",
            id="everything excepted",
        ),
        pytest.param(
            peer(ipBlock={**BLOCK, "except": ["10.1.0.0/16", "fd00::/64"]}),
            "spec.ingress[0].from[0].ipBlock.except[1]",
            id="an exception of another family",
        ),
        pytest.param({"egress": [{"ports": [{"port": 0}]}]}, "spec.egress[0].ports[0].port", id="port 0"),
        pytest.param(
            {"egress": [{"ports": [{"port": 1, "protocol": "ICMP"}]}]},
            "spec.egress[0].ports[0].protocol",
            id="another protocol",
        ),
        pytest.param(
            {"podSelector": {"matchExpressions": [{"key": "a", "operator": "In"}]}},
            "spec.podSelector.matchExpressions[0].values",
            id="In without values",
        ),
        pytest.param(
            {"podSelector": {"matchExpressions": [{"key": "a", "operator": "Exists", "values": ["b"]}]}},
            "spec.podSelector.matchExpressions[0].values",
            id="Exists with values",
        ),
    ],
)
async def test_invalid_policies_are_rejected(api: EmbeddedApi, spec: Object, field: str) -> None:
    with pytest.raises(errors.Invalid) as raised:
        await create(api, spec)
    assert [cause["field"] for cause in raised.value.causes] == [field]


@pytest.mark.parametrize(
    ("selector", "shown"),
    [
        pytest.param({}, "<none>", id="all Pods"),
        pytest.param({"matchLabels": {"b": "2", "a": "1"}}, "a=1,b=2", id="labels"),
        pytest.param(
            {"matchExpressions": [{"key": "a", "operator": "NotIn", "values": ["y", "x"]}]}, "a notin (x,y)", id="NotIn"
        ),
        pytest.param({"matchExpressions": [{"key": "a", "operator": "DoesNotExist"}]}, "!a", id="DoesNotExist"),
    ],
)
def test_the_table_shows_the_selector(selector: Object, shown: str) -> None:
    assert cells.networkpolicy({"metadata": {"name": "a"}, "spec": {"podSelector": selector}}) == [shown]
