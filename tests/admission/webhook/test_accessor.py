from __future__ import annotations

import base64
from collections.abc import Mapping
from typing import Any

import pytest

from admission.webhook.accessor import Endpoint, webhooks_of
from tests.admission.webhook.webhook_objects import configuration, held, hook

_NEITHER = (
    'could not get REST client: failed calling webhook "x.example.com": '
    "webhook configuration must have either service or URL"
)


@pytest.mark.parametrize(
    ("config", "expected"),
    [
        pytest.param({"url": "https://a:1/b/c"}, Endpoint("https://a:1/b/c"), id="a URL"),
        pytest.param({"url": "https://a"}, Endpoint("https://a/"), id="without a path"),
        pytest.param({"url": "https://a/b//c/"}, Endpoint("https://a/b/c"), id="slashes too many"),
        pytest.param({"url": "https://a/b?c=d#e"}, Endpoint("https://a/b"), id="a query is none of the URL"),
        pytest.param(
            {"service": {"name": "s", "namespace": "n"}}, Endpoint("https://s.n.svc:443/", service=True), id="a Service"
        ),
        pytest.param(
            {"service": {"name": "s", "namespace": "n", "port": 8443, "path": "/a/b/"}},
            Endpoint("https://s.n.svc:8443/a/b", service=True),
            id="a port and a path",
        ),
        pytest.param(
            {"url": "https://a/", "caBundle": base64.b64encode(b"pem").decode()},
            Endpoint("https://a/", ca_bundle=b"pem"),
            id="a bundle",
        ),
        pytest.param({}, Endpoint(error=_NEITHER), id="neither"),
        pytest.param({"url": 5}, Endpoint(error=_NEITHER), id="no text"),
        pytest.param(
            {"url": "https://[::1/"},
            Endpoint(
                error='could not get REST client: failed calling webhook "x.example.com": '
                "Unparsable URL: Invalid IPv6 URL"
            ),
            id="no URL",
        ),
        pytest.param(
            {"url": "http://a/"},
            Endpoint(
                error='could not get REST client: failed calling webhook "x.example.com": '
                "'https' is the only allowed URL scheme"
            ),
            id="without TLS",
        ),
        pytest.param(
            {"url": "https://a/", "caBundle": "%"},
            Endpoint(error="could not get REST client: unable to load root certificates: invalid caBundle"),
            id="no base64",
        ),
    ],
)
def test_where_a_webhook_is_called(config: Mapping[str, Any], expected: Endpoint) -> None:
    [found] = webhooks_of(configuration(hook(clientConfig=config)))
    assert found.endpoint == expected


@pytest.mark.parametrize(("given", "expected"), [(None, 10), (3, 3), (0, 1), (-5, 1), (99, 30), ("7", 10)])
def test_the_time_of_a_webhook_is_bounded(given: object, expected: int) -> None:
    [found] = webhooks_of(configuration(hook(timeoutSeconds=given)))
    assert found.seconds == expected


def test_what_is_not_set_is_what_kubernetes_sets() -> None:
    [found] = webhooks_of(configuration({"name": "x"}))
    assert (found.ignores_failures, found.reinvoked, found.side_effects, found.versions) == (False, False, "", ())
    assert found.match is None
    [found] = webhooks_of(configuration(hook()))
    assert found.match is not None
    assert found.match.equivalent
    assert found.match.namespaces.empty


@pytest.mark.parametrize("nonsense", [None, 5, "x", {"a": 1}, [5, "x"]])
def test_nonsense_is_no_webhook(nonsense: object) -> None:
    assert webhooks_of({"metadata": {"name": "c"}, "webhooks": nonsense}) == ()


def test_webhooks_come_by_the_names_of_their_configurations_and_then_in_their_order() -> None:
    first, second = configuration(hook("b.a.x"), hook("a.a.x"), name="a"), configuration(hook("c.a.x"), name="b")
    found = held(second, first)
    assert [each.name for each in found.webhooks] == ["b.a.x", "a.a.x", "c.a.x"]
    found.configurations.apply("DELETED", first, 2)
    assert [each.name for each in found.webhooks] == ["c.a.x"]


def test_a_configuration_is_compiled_once_until_it_changes() -> None:
    found = held(configuration(hook()))
    [before] = found.webhooks
    relabelled = configuration(hook())
    relabelled["metadata"]["labels"] = {"a": "b"}
    found.configurations.apply("MODIFIED", relabelled, 2)
    assert found.webhooks[0] is before
    found.configurations.apply("MODIFIED", configuration(hook(timeoutSeconds=3)), 3)
    assert found.webhooks[0] is not before


def test_conditions_that_do_not_compile_are_told() -> None:
    broken = hook("broken.a.x", matchConditions=[{"name": "a", "expression": "1 < 2.5"}])
    problems = held(configuration(hook(), broken)).problems
    assert list(problems) == ["c/broken.a.x"]
    assert problems["c/broken.a.x"][0].startswith("expression '1 < 2.5': compilation failed:")
