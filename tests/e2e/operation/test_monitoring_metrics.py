"""Alerts and the dashboard name metrics that the running server exports, and labels that these have."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest
import yaml

from tenant_apiserver.generate_dashboard import PANELS
from tests.e2e.support.clusters.cluster import ROOT
from tests.e2e.support.clusters.kube import KubeCluster
from tests.e2e.support.clusters.processes import REPOSITORY

RULES = REPOSITORY / "manifests" / "components" / "monitoring" / "prometheusrule.yaml"
METRIC = re.compile(r"\b([a-z]\w*_\w+)(?=\{|\[)")
TYPE = re.compile(r"^# TYPE (\S+) (\S+)$", re.MULTILINE)
OF_PROMETHEUS = {"up"}
SUFFIXES = {"histogram": ("_bucket", "_sum", "_count"), "summary": ("_sum", "_count")}


def expressions() -> Iterator[str]:
    for group in yaml.load(RULES.read_text(), Loader=yaml.CSafeLoader)["spec"]["groups"]:
        yield from (each["expr"] for each in group["rules"])
    for panel in PANELS:
        yield from (expression for expression, _ in panel.queries)


def named() -> set[str]:
    return {name for each in expressions() for name in METRIC.findall(each)} - OF_PROMETHEUS


def exported(text: str) -> set[str]:
    return {f"{name}{suffix}" for name, kind in TYPE.findall(text) for suffix in SUFFIXES.get(kind, ("",))}


@pytest.fixture
def scraped(kube: KubeCluster) -> str:
    assert kube.direct_client().get("/readyz").status == 200
    return kube.direct_client().get("/metrics").content.decode()


def test_the_server_exports_every_metric_that_is_named(scraped: str) -> None:
    assert len(named()) > 20
    assert sorted(named() - exported(scraped)) == []


def test_the_state_of_the_server_is_told(scraped: str) -> None:
    assert 'kubernetes_healthcheck{name="informer-sync",type="readyz"} 1.0' in scraped
    assert re.search(r"^tenant_apiserver_certificate_expiration_timestamp_seconds 1\.\d+e\+09$", scraped, re.MULTILINE)
    assert 'tenant_apiserver_informer_age_seconds{resource="helmreleases.helm.toolkit.fluxcd.io"}' in scraped


def test_tenants_are_counted(kube: KubeCluster) -> None:
    def count() -> float:
        text = kube.direct_client().get("/metrics").content.decode()
        return sum(float(each) for each in re.findall(r"^tenant_apiserver_tenants\{.*\} (\S+)$", text, re.MULTILINE))

    kube.wait_until(f"{ROOT} is counted", lambda: count() >= 1)
