"""The values of the platform's Package that are settings, and their precedence."""

from __future__ import annotations

from typing import Any

import pytest

from apiserver.meta.resource import Object
from controller.platform.package import combine, known_values
from controller.platform.settings import PlatformSettings


def package(values: Any) -> Object:
    return {"spec": {"variant": "isp-full", "components": {"platform": {"values": values}}}}


@pytest.mark.parametrize(
    ("obj", "expected"),
    [
        pytest.param(
            package({"publishing": {"host": "a.example"}}), {"publishing": {"host": "a.example"}}, id="a known key"
        ),
        pytest.param(package({"nosuch": 1, "publishing": {"nosuch": 1}}), {"publishing": {}}, id="keys of others"),
        pytest.param(package({"gateway": {"enabled": None}}), {"gateway": {}}, id="null is unset, as in Helm"),
        pytest.param(package({"gateway": None}), {}, id="a section of nothing"),
        pytest.param(package({"gateway": 3}), {"gateway": 3}, id="a section of a wrong type is for validation"),
        pytest.param(package({"gateway": {"gatewayClassName": "x"}}), {"gateway": {}}, id="a key of the file alone"),
        pytest.param(package({"tenants": {"chart": "flux"}}), {}, id="a section of the file alone"),
        pytest.param(
            package({"resources": {"cpuAllocationRatio": 4}}), {"resources": {"cpuAllocationRatio": 4}}, id="ratio"
        ),
        pytest.param(
            package({"publishing": {"certificates": {"dns01": {"route53": {"region": "eu", "x": 1}}}}}),
            {"publishing": {"certificates": {"dns01": {"route53": {"region": "eu"}}}}},
            id="deep",
        ),
        pytest.param({"spec": {}}, {}, id="no components"),
        pytest.param({}, {}, id="no spec"),
        pytest.param({"spec": {"components": {"other": {"values": {"gateway": 1}}}}}, {}, id="another component"),
        pytest.param({"spec": {"components": {"platform": {"enabled": True}}}}, {}, id="no values"),
    ],
)
def test_only_known_keys_count(obj: Object, expected: Any) -> None:
    assert known_values(obj) == expected


@pytest.mark.parametrize("values", [pytest.param([1], id="a list"), pytest.param("x", id="a text")])
def test_values_that_are_no_mapping_are_refused(values: Any) -> None:
    with pytest.raises(ValueError, match=r"spec\.components\.platform\.values: must be a mapping"):
        known_values(package(values))


FILE: dict[str, Any] = {
    "publishing": {"host": "file.example", "certificates": {"issuerName": "letsencrypt-stage"}},
    "tenants": {"chart": "flux"},
}


@pytest.mark.parametrize(
    ("file", "of_package", "root_host", "expected"),
    [
        pytest.param(FILE, None, "", FILE, id="no Package: the file"),
        pytest.param(
            {},
            {},
            "",
            {"publishing": {"exposedServices": ["api", "dashboard", "vm-exportproxy", "cdi-uploadproxy"]}},
            id="an empty Package: the defaults of the chart, but for its host",
        ),
        pytest.param(
            {"publishing": {"exposedServices": ["api"]}},
            {},
            "",
            {"publishing": {"exposedServices": ["api"]}},
            id="what the Package leaves out is the file's",
        ),
        pytest.param(
            FILE,
            {"publishing": {"host": "package.example", "exposedServices": []}},
            "",
            {
                "publishing": {
                    "host": "package.example",
                    "exposedServices": [],
                    "certificates": {"issuerName": "letsencrypt-stage"},
                },
                "tenants": {"chart": "flux"},
            },
            id="a key in both: the Package's",
        ),
        pytest.param(
            {},
            {"publishing": {"host": "package.example", "exposedServices": []}},
            "map.example",
            {"publishing": {"host": "map.example", "exposedServices": []}},
            id="the ConfigMap goes before the Package",
        ),
        pytest.param(
            FILE,
            None,
            "map.example",
            {**FILE, "publishing": {**FILE["publishing"], "host": "map.example"}},
            id="and before the file",
        ),
        pytest.param(
            {"publishing": {"certificates": {"acmeServers": {"own": {"server": "https://ca.example/d"}}}}},
            {"publishing": {"certificates": {"issuerName": "own"}, "exposedServices": []}},
            "",
            {
                "publishing": {
                    "certificates": {"issuerName": "own", "acmeServers": {"own": {"server": "https://ca.example/d"}}},
                    "exposedServices": [],
                }
            },
            id="an issuer of the Package may be a server of the file",
        ),
    ],
)
def test_what_goes_before_what(file: Any, of_package: Any, root_host: str, expected: Any) -> None:
    combined = combine(PlatformSettings.model_validate(file), of_package, root_host)
    assert combined == PlatformSettings.model_validate(expected)


@pytest.mark.parametrize(
    ("of_package", "message"),
    [
        pytest.param(
            {"publishing": {"certificates": {"solver": 7}}},
            "publishing.certificates.solver: must be 'http01' or 'dns01'",
            id="a wrong word",
        ),
        pytest.param({"gateway": 3}, "gateway: must be a mapping", id="a wrong section"),
        pytest.param({"gateway": {"enabled": "yes"}}, "gateway.enabled: must be a valid boolean", id="a wrong type"),
        pytest.param(
            {"publishing": {"certificates": {"solver": "dns01", "dns01": {"provider": "route53"}}}},
            "publishing.certificates.dns01.route53.region: must be set for the provider route53",
            id="R-162",
        ),
    ],
)
def test_a_wrong_value_names_its_field(of_package: Any, message: str) -> None:
    with pytest.raises(ValueError, match="must be") as error:
        combine(PlatformSettings(), of_package, "")
    assert str(error.value) == message
