"""The command line of `benchmarks.versus`, above all the name of an external server's resource."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.targets.external_server import ResourceName
from benchmarks.versus import parse

# a file that can be read: parsing does not look into it
KUBECONFIG = Path(__file__)
ELSEWHERE = [
    "--against",
    "https://other.example",
    "--kubeconfig",
    str(KUBECONFIG),
    "--resource",
    "example.org/v1/things",
]


@pytest.mark.parametrize(
    ("text", "expected", "collection"),
    [
        pytest.param(
            "apps.cozystack.io/v1alpha1/tenants",
            ResourceName("apps.cozystack.io", "v1alpha1", "tenants"),
            "/apis/apps.cozystack.io/v1alpha1/namespaces/ns/tenants",
            id="a named group",
        ),
        pytest.param(
            "v1/configmaps",
            ResourceName("", "v1", "configmaps"),
            "/api/v1/namespaces/ns/configmaps",
            id="the core group",
        ),
    ],
)
def test_a_resource_name_is_parsed_and_has_a_collection_path(
    text: str, expected: ResourceName, collection: str
) -> None:
    assert ResourceName.parse(text) == expected
    assert expected.collection("ns") == collection


@pytest.mark.parametrize("text", ["tenants", "a/b/c/d", "/v1/things", "example.org//things", ""])
def test_an_invalid_resource_name_is_rejected(text: str) -> None:
    with pytest.raises(ValueError, match="is not group/version/plural"):
        ResourceName.parse(text)


@pytest.mark.parametrize(
    "arguments",
    [
        pytest.param(ELSEWHERE[:4], id="no resource"),
        pytest.param([*ELSEWHERE[:2], *ELSEWHERE[4:]], id="no kubeconfig"),
        pytest.param([*ELSEWHERE[:5], "things"], id="no group and version"),
        pytest.param(["--only", "list,everything"], id="an unknown workload"),
        pytest.param(["--sizes", "many"], id="a size that is not a number"),
    ],
)
def test_an_invalid_command_line_is_rejected(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        parse(arguments)
    assert "error: " in capsys.readouterr().err


def test_a_complete_command_line_is_parsed() -> None:
    parsed = parse([*ELSEWHERE, "--sizes", "10,20", "--only", "list", "--pids", "7,8", "--writers", "1,8"])
    assert (parsed.against, parsed.kubeconfig) == ("https://other.example", KUBECONFIG)
    assert parsed.resource == ResourceName("example.org", "v1", "things")
    assert (parsed.sizes, parsed.only, parsed.pids) == ([10, 20], ["list"], [7, 8])
    assert parsed.writers == [1, 8]


@pytest.mark.parametrize(("cluster", "sides"), [("kube", ["direct", "aggregated", "custom"]), ("embedded", ["direct"])])
def test_the_default_sides_depend_on_the_cluster(cluster: str, sides: list[str]) -> None:
    assert parse(["--cluster", cluster]).sides == sides
