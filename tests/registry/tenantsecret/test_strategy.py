"""The rules of TenantSecrets: above all, which Secrets nobody may write through them."""

from __future__ import annotations

from typing import Any

import pytest

from apiserver.meta.resource import Object
from registry.tenantsecret.strategy import TenantSecretStrategy

STRATEGY = TenantSecretStrategy()


def secret(name: str = "db", type_: str = "Opaque", data: Any = None) -> Object:
    return {"metadata": {"name": name, "namespace": "tenant-a"}, "type": type_, "data": data or {}}


def fields(problems: list[Any]) -> list[str]:
    return [each.field for each in problems]


@pytest.mark.parametrize(
    "type_", ["kubernetes.io/service-account-token", "bootstrap.kubernetes.io/token", "helm.sh/release.v1"]
)
def test_a_secret_that_the_cluster_acts_upon_is_refused(type_: str) -> None:
    """Its author would get the rights of an account, or those of Flux."""
    assert fields(STRATEGY.validate(secret(type_=type_))) == ["type"]
    stored = secret(type_=type_)
    assert fields(STRATEGY.validate_update({**stored, "data": {"a": "eA=="}}, stored)) == ["type"]


@pytest.mark.parametrize("type_", ["Opaque", "kubernetes.io/tls", "kubernetes.io/basic-auth", "example.org/own"])
def test_other_types_are_accepted(type_: str) -> None:
    assert STRATEGY.validate(secret(type_=type_)) == []


@pytest.mark.parametrize("name", ["cozystack-values", "sh.helm.release.v1.tenant-a.v1"])
def test_names_of_the_platform_are_refused(name: str) -> None:
    assert fields(STRATEGY.name_errors(secret(name))) == ["metadata.name"]
    assert fields(STRATEGY.validate_update(secret(name), secret(name))) == ["metadata.name"]


@pytest.mark.parametrize(
    ("name", "valid"), [("db", True), ("a.b-c", True), ("Db", False), ("-x", False), ("a/b", False)]
)
def test_a_name_is_a_subdomain(name: str, valid: bool) -> None:
    assert (STRATEGY.name_errors(secret(name)) == []) == valid


def test_the_type_cannot_change() -> None:
    assert fields(STRATEGY.validate_update(secret(type_="a/b"), secret())) == ["type"]


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        pytest.param({"a": "eA=="}, [], id="valid"),
        pytest.param({"a": "no base64!"}, ["data[a]"], id="no base64"),
        pytest.param({"a b": "eA=="}, ["data[a b]"], id="a bad key"),
        pytest.param({"a": "A" * 1_500_000}, ["data"], id="too much"),
    ],
)
def test_data(data: dict[str, str], expected: list[str]) -> None:
    problems = STRATEGY.validate(secret(data=data))
    assert fields(problems) == expected
    assert not any("no base64!" in f"{each.value} {each.message}" for each in problems), "no message has a value"
