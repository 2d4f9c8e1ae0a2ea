from __future__ import annotations

import base64
from collections.abc import Mapping
from typing import Any

import pytest

from admission.webhook.accessor import WebhookEndpoint, compile_webhooks
from tests.admission.webhook.webhook_objects import configuration, hook, webhook_source

_NEITHER = (
    'could not get REST client: failed calling webhook "x.example.com": '
    "webhook configuration must have either service or URL"
)


@pytest.mark.parametrize(
    ("config", "expected"),
    [
        pytest.param({"url": "https://a:1/b/c"}, WebhookEndpoint("https://a:1/b/c"), id="a URL"),
        pytest.param({"url": "https://a"}, WebhookEndpoint("https://a/"), id="without a path"),
        pytest.param({"url": "https://a/b//c/"}, WebhookEndpoint("https://a/b/c"), id="superfluous slashes"),
        pytest.param({"url": "https://a/b?c=d#e"}, WebhookEndpoint("https://a/b"), id="query and fragment are dropped"),
        pytest.param(
            {"service": {"name": "s", "namespace": "n"}},
            WebhookEndpoint("https://s.n.svc:443/", service=True),
            id="a Service",
        ),
        pytest.param(
            {"service": {"name": "s", "namespace": "n", "port": 8443, "path": "/a/b/"}},
            WebhookEndpoint("https://s.n.svc:8443/a/b", service=True),
            id="a port and a path",
        ),
        pytest.param(
            {"url": "https://a/", "caBundle": base64.b64encode(b"pem").decode()},
            WebhookEndpoint("https://a/", ca_bundle=b"pem"),
            id="a bundle",
        ),
        pytest.param({}, WebhookEndpoint(error=_NEITHER), id="neither"),
        pytest.param({"url": 5}, WebhookEndpoint(error=_NEITHER), id="not a string"),
        pytest.param(
            {"url": "https://[::1/"},
            WebhookEndpoint(
                error='could not get REST client: failed calling webhook "x.example.com": '
                "Unparsable URL: Invalid IPv6 URL"
            ),
            id="an invalid URL",
        ),
        pytest.param(
            {"url": "http://a/"},
            WebhookEndpoint(
                error='could not get REST client: failed calling webhook "x.example.com": '
                "'https' is the only allowed URL scheme"
            ),
            id="plain HTTP",
        ),
        pytest.param(
            {"url": "https://a/", "caBundle": "%"},
            WebhookEndpoint(error="could not get REST client: unable to load root certificates: invalid caBundle"),
            id="an invalid caBundle",
        ),
    ],
)
def test_a_client_config_is_resolved_to_an_endpoint(config: Mapping[str, Any], expected: WebhookEndpoint) -> None:
    [found] = compile_webhooks(configuration(hook(clientConfig=config)))
    assert found.endpoint == expected


@pytest.mark.parametrize(("seconds", "expected"), [(None, 10), (3, 3), (0, 1), (-5, 1), (99, 30), ("7", 10)])
def test_the_timeout_of_a_webhook_is_between_1_and_30_seconds(seconds: object, expected: int) -> None:
    [found] = compile_webhooks(configuration(hook(timeoutSeconds=seconds)))
    assert found.seconds == expected


def test_unset_fields_have_kubernetes_defaults() -> None:
    [found] = compile_webhooks(configuration({"name": "x"}))
    assert (found.ignores_failures, found.reinvoked, found.side_effects, found.versions) == (False, False, "", ())
    assert found.match is None
    [found] = compile_webhooks(configuration(hook()))
    assert found.match is not None
    assert found.match.equivalent
    assert found.match.namespaces.empty


@pytest.mark.parametrize("malformed", [None, 5, "x", {"a": 1}, [5, "x"]])
def test_malformed_webhooks_are_ignored(malformed: object) -> None:
    assert compile_webhooks({"metadata": {"name": "c"}, "webhooks": malformed}) == ()


def test_webhooks_are_sorted_by_configuration_name_then_in_their_order() -> None:
    first, second = configuration(hook("b.a.x"), hook("a.a.x"), name="a"), configuration(hook("c.a.x"), name="b")
    source = webhook_source(second, first)
    assert [each.name for each in source.webhooks] == ["b.a.x", "a.a.x", "c.a.x"]
    source.configurations.apply("DELETED", first, 2)
    assert [each.name for each in source.webhooks] == ["c.a.x"]


def test_a_configuration_is_compiled_once_until_it_changes() -> None:
    source = webhook_source(configuration(hook()))
    [before] = source.webhooks
    relabelled = configuration(hook())
    relabelled["metadata"]["labels"] = {"a": "b"}
    source.configurations.apply("MODIFIED", relabelled, 2)
    assert source.webhooks[0] is before
    source.configurations.apply("MODIFIED", configuration(hook(timeoutSeconds=3)), 3)
    assert source.webhooks[0] is not before


def test_compile_errors_of_match_conditions_are_reported() -> None:
    broken = hook("broken.a.x", matchConditions=[{"name": "a", "expression": "1 < 2.5"}])
    problems = webhook_source(configuration(hook(), broken)).problems
    assert list(problems) == ["c/broken.a.x"]
    assert problems["c/broken.a.x"][0].startswith("expression '1 < 2.5': compilation failed:")
