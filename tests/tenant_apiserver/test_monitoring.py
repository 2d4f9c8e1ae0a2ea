"""Alerts and the dashboard: a real promtool fires each alert, and docs/monitoring.md explains it."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from tenant_apiserver import generate_dashboard

ROOT = Path(__file__).parents[2]
COMPONENT = ROOT / "manifests" / "components" / "monitoring"
PAGE = (ROOT / "docs" / "monitoring.md").read_text()
RULES = yaml.load((COMPONENT / "prometheusrule.yaml").read_text(), Loader=yaml.CSafeLoader)["spec"]
ALERTS = {each["alert"]: each for group in RULES["groups"] for each in group["rules"]}
JOB, OTHER = 'job="tenant-apiserver",pod="a"', 'job="tenant-apiserver",pod="b"'
DAY = 86400
CASES: dict[str, tuple[dict[str, str], dict[str, str], str, dict[str, str]]] = {
    "TenantAPIServerDown": (
        {f"up{{{JOB}}}": "1x5 0x60"},
        {f"up{{{JOB}}}": "1x60"},
        "No replica",
        {},
    ),
    "TenantAPIServerReplicaDown": (
        {f"up{{{JOB}}}": "0x60", 'up{job="tenant-apiserver",pod="b"}': "1x60"},
        {f"up{{{JOB}}}": "1x60"},
        "a",
        {"job": "tenant-apiserver", "pod": "a"},
    ),
    "TenantAPIServerNotReady": (
        {f'kubernetes_healthcheck{{{JOB},type="readyz",name="cluster"}}': "0x60"},
        {f'kubernetes_healthcheck{{{JOB},type="readyz",name="cluster"}}': "1x60"},
        "cluster",
        {"job": "tenant-apiserver", "pod": "a", "type": "readyz", "name": "cluster"},
    ),
    "TenantAPIServerNotRegistered": (
        {f'apiserver_aggregator_probe_timestamp_seconds{{{JOB},group="apps.cozystack.io"}}': "0+60x30 1800x60"},
        {
            f'apiserver_aggregator_probe_timestamp_seconds{{{JOB},group="apps.cozystack.io"}}': "0+60x60",
            f'apiserver_aggregator_probe_timestamp_seconds{{{OTHER},group="apps.cozystack.io"}}': "7x60",
        },
        "apps.cozystack.io for 35m 0s",
        {"group": "apps.cozystack.io"},
    ),
    "TenantAPIServerErrors": (
        {
            f'apiserver_request_total{{{JOB},code="500"}}': "0+60x60",
            f'apiserver_request_total{{{JOB},code="200"}}': "0+540x60",
        },
        {f'apiserver_request_total{{{JOB},code="200"}}': "0+540x60"},
        "10%",
        {},
    ),
    "TenantAPIServerRejectsRequests": (
        {f"apiserver_dropped_requests_total{{{JOB}}}": "0+120x60"},
        {f"apiserver_dropped_requests_total{{{JOB}}}": "0x60"},
        "2 requests",
        {"pod": "a"},
    ),
    "TenantAPIServerClusterErrors": (
        {
            f'rest_client_requests_total{{{JOB},code="<error>"}}': "0+30x60",
            f'rest_client_requests_total{{{JOB},code="200"}}': "0+30x60",
        },
        {f'rest_client_requests_total{{{JOB},code="404"}}': "0+30x60"},
        "50%",
        {"pod": "a"},
    ),
    "TenantAPIServerStaleAccess": (
        {f'apiserver_stale_verdicts_total{{{JOB},review="tokenreviews"}}': "0+60x60"},
        {f'apiserver_stale_verdicts_total{{{JOB},review="tokenreviews"}}': "7x60"},
        "tokenreviews",
        {"review": "tokenreviews"},
    ),
    "TenantAPIServerCacheStale": (
        {f'tenant_apiserver_informer_age_seconds{{{JOB},resource="namespaces"}}': "360x60"},
        {f'tenant_apiserver_informer_age_seconds{{{JOB},resource="namespaces"}}': "60x60"},
        "6m 0s",
        {"pod": "a", "resource": "namespaces"},
    ),
    "TenantAPIServerStalls": (
        {f"apiserver_event_loop_stall_seconds_sum{{{JOB}}}": "0+30x60"},
        {f"apiserver_event_loop_stall_seconds_sum{{{JOB}}}": "0+1x60"},
        "50%",
        {"pod": "a"},
    ),
    "TenantAPIServerCertificateExpires": (
        {f"tenant_apiserver_certificate_expiration_timestamp_seconds{{{JOB}}}": f"{10 * DAY + 7200}x120"},
        {f"tenant_apiserver_certificate_expiration_timestamp_seconds{{{JOB}}}": f"{100 * DAY}x120"},
        "in 10.04 days",
        {"pod": "a"},
    ),
    "TenantAPIServerCertificateExpiresSoon": (
        {f"tenant_apiserver_certificate_expiration_timestamp_seconds{{{JOB}}}": f"{DAY + 7200}x120"},
        {f"tenant_apiserver_certificate_expiration_timestamp_seconds{{{JOB}}}": f"{10 * DAY}x120"},
        "in 1.038 days",
        {"pod": "a"},
    ),
    "TenantControllersWithoutLeader": (
        {
            f'leader_election_master_status{{{JOB},name="tenant-apiserver"}}': "0x60",
            'leader_election_master_status{job="tenant-apiserver",pod="b",name="tenant-apiserver"}': "0x60",
        },
        {
            f'leader_election_master_status{{{JOB},name="tenant-apiserver"}}': "0x60",
            'leader_election_master_status{job="tenant-apiserver",pod="b",name="tenant-apiserver"}': "1x60",
        },
        "No replica holds the Lease tenant-apiserver",
        {"name": "tenant-apiserver"},
    ),
    "TenantControllersWithTwoLeaders": (
        {
            f'leader_election_master_status{{{JOB},name="tenant-apiserver"}}': "1x60",
            'leader_election_master_status{job="tenant-apiserver",pod="b",name="tenant-apiserver"}': "1x60",
        },
        {
            f'leader_election_master_status{{{JOB},name="tenant-apiserver"}}': "1x63 0x60",
            'leader_election_master_status{job="tenant-apiserver",pod="b",name="tenant-apiserver"}': "0x63 1x60",
        },
        "2 replicas",
        {"name": "tenant-apiserver"},
    ),
    "TenantAPIServerHandlerFails": (
        {f'tenant_apiserver_event_handler_failures_total{{{JOB},handler="tenants"}}': "0x55 3x60"},
        {f'tenant_apiserver_event_handler_failures_total{{{JOB},handler="tenants"}}': "3x60"},
        "Handler tenants",
        {"pod": "a", "handler": "tenants"},
    ),
    "TenantsNotReady": (
        {
            f'tenant_apiserver_tenants{{{JOB},status="False",reason="HostConflict"}}': "2x60",
            'tenant_apiserver_tenants{job="tenant-apiserver",pod="b",status="False",reason="HostConflict"}': "2x60",
        },
        {f'tenant_apiserver_tenants{{{JOB},status="True",reason="Reconciled"}}': "9x60"},
        "2 Tenants are not ready: HostConflict",
        {"status": "False", "reason": "HostConflict"},
    ),
    "TenantControllerStuck": (
        {f'workqueue_longest_running_processor_seconds{{{JOB},name="tenant"}}': "600x60"},
        {f'workqueue_longest_running_processor_seconds{{{JOB},name="tenant"}}': "3x60"},
        "10m 0s",
        {"pod": "a", "name": "tenant"},
    ),
    "TenantControllerFailing": (
        {f'workqueue_retries_total{{{JOB},name="tenant"}}': "0+60x120"},
        {f'workqueue_retries_total{{{JOB},name="tenant"}}': "0+1x120"},
        "tenant tries again 1 times",
        {"name": "tenant"},
    ),
    "ApplicationDefinitionNotServed": (
        {f'tenant_apiserver_application_definitions{{{JOB},definition="redis",state="kept"}}': "1x60"},
        {f'tenant_apiserver_application_definitions{{{JOB},definition="redis",state="served"}}': "1x60"},
        "redis is kept",
        {"definition": "redis", "state": "kept"},
    ),
    "ApplicationReleasesNotServed": (
        {f'tenant_apiserver_application_releases_unserved{{{JOB},kind="Redis"}}': "12x60"},
        {f'tenant_apiserver_application_releases_unserved{{{JOB},kind="Redis"}}': "0x60"},
        "12 HelmReleases",
        {"kind": "Redis"},
    ),
    "PlatformServiceNotServed": (
        {f'platform_service_served{{{JOB},service="dashboard"}}': "0x60"},
        {f'platform_service_served{{{JOB},service="dashboard"}}': "1x60"},
        "dashboard",
        {"service": "dashboard"},
    ),
    "TenantAPIServerAuditEventsLost": (
        {f'apiserver_audit_error_total{{{JOB},plugin="log"}}': "0+1x60"},
        {f'apiserver_audit_error_total{{{JOB},plugin="log"}}': "5x60"},
        "audit events",
        {"pod": "a"},
    ),
}
"""For each alert: series with which it fires, series with which it does not, a part of its summary, and its labels."""


def promtool(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    if (found := shutil.which("promtool")) is None:
        pytest.skip("no promtool on the PATH: Debian's package prometheus has it")
    return subprocess.run([found, *map(str, arguments)], capture_output=True, text=True, timeout=60)


def run_case(folder: Path, name: str, series: dict[str, str], expected: list[dict[str, Any]]) -> str:
    """The complaints of promtool about the alert after an hour; empty if it is as expected."""
    (folder / "rules.yaml").write_text(yaml.safe_dump(RULES))
    # the series go on to the time of evaluation
    lasting = {key: re.sub(r"x60\b", "x90", values) for key, values in series.items()}
    test = {
        "interval": "1m",
        "input_series": [{"series": key, "values": values} for key, values in lasting.items()],
        "alert_rule_test": [{"eval_time": "65m", "alertname": name, "exp_alerts": expected}],
    }
    (folder / "test.yaml").write_text(yaml.safe_dump({"rule_files": ["rules.yaml"], "tests": [test]}))
    done = promtool("test", "rules", folder / "test.yaml")
    return "" if done.returncode == 0 else done.stdout + done.stderr


def test_promtool_accepts_the_rules(tmp_path: Path) -> None:
    (tmp_path / "rules.yaml").write_text(yaml.safe_dump(RULES))
    done = promtool("check", "rules", tmp_path / "rules.yaml")
    assert done.returncode == 0, done.stdout + done.stderr


def test_each_alert_has_a_case() -> None:
    assert set(CASES) == set(ALERTS)


@pytest.mark.parametrize("name", CASES)
def test_an_alert_fires_for_what_it_is_about(name: str, tmp_path: Path) -> None:
    series, _, part, labels = CASES[name]
    complaint = run_case(tmp_path, name, series, [])
    found = re.search(r"got:\s*\[(?P<alert>.*)\]", complaint, re.DOTALL)
    assert found, f"it does not fire: {complaint}"
    assert part in found["alert"]
    severity = ALERTS[name]["labels"]["severity"]
    for key, value in {**labels, "severity": severity}.items():
        assert f'{key}="{value}"' in found["alert"]
    assert found["alert"].count("alertname=") == 1, "several replicas would tell the same"


@pytest.mark.parametrize("name", CASES)
def test_an_alert_does_not_fire_for_what_is_well(name: str, tmp_path: Path) -> None:
    assert run_case(tmp_path, name, CASES[name][1], []) == ""


@pytest.mark.parametrize("name", ALERTS)
def test_the_page_explains_each_alert_with_a_command(name: str) -> None:
    section = re.search(rf"^## {name}\n(?P<text>.*?)(?=^## |\Z)", PAGE, re.MULTILINE | re.DOTALL)
    assert section, f"docs/monitoring.md has no section {name}"
    assert "**Means.**" in section["text"]
    assert "**Do.**" in section["text"]
    assert "```console" in section["text"] or "`kubectl" in section["text"]


def test_the_page_explains_no_other_alert() -> None:
    sections = re.findall(r"^## (\w+)\n", PAGE, re.MULTILINE)
    assert [each for each in sections if each.startswith(("Tenant", "Application", "Platform"))] == list(ALERTS)


def test_the_dashboard_is_up_to_date() -> None:
    assert (COMPONENT / "tenant-apiserver.json").read_text() == generate_dashboard.text(), "run make manifests"
