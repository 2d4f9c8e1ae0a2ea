"""Generates the Grafana dashboard: `python -m tenant_apiserver.generate_dashboard FILE`. Tests compare the metrics that
its panels name with those that the server exports."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from apiserver.meta.resource import Object

_WIDTH, _HEIGHT = 8, 8
_DATASOURCE = {"type": "prometheus", "uid": "${datasource}"}
_RATE = "[$__rate_interval]"


@dataclass(frozen=True, slots=True)
class Panel:
    """A graph of PromQL expressions. `{}` in an expression stands for the labels that select the server."""

    title: str
    unit: str
    queries: Sequence[tuple[str, str]]
    """Expressions with the legend of their series."""
    kind: str = "timeseries"
    help: str = ""


def _seconds(metric: str, by: str, quantile: float = 0.99) -> str:
    return f"histogram_quantile({quantile}, sum by (le, {by}) (rate({metric}_bucket{{}}{_RATE})))"


PANELS = (
    Panel("Replicas that answer", "short", [("sum(up{})", "replicas")], "stat"),
    Panel(
        "Checks that fail",
        "short",
        [('kubernetes_healthcheck{type="readyz",} == 0', "{{pod}} {{name}}")],
        help="readyz of each replica; empty if all pass.",
    ),
    Panel(
        "Days until the certificate expires",
        "d",
        [
            (
                "(min(tenant_apiserver_certificate_expiration_timestamp_seconds{}) - time()) / 86400",
                "serving certificate",
            )
        ],
        "stat",
    ),
    Panel(
        "Tenants by condition Ready",
        "short",
        [("max by (status, reason) (tenant_apiserver_tenants{})", "{{status}} {{reason}}")],
    ),
    Panel("Requests", "reqps", [(f"sum by (verb) (rate(apiserver_request_total{{}}{_RATE}))", "{{verb}}")]),
    Panel(
        "Errors",
        "reqps",
        [
            (
                f'sum by (code) (rate(apiserver_request_total{{code=~"[45]..",}}{_RATE}))',
                "{{code}}",
            )
        ],
    ),
    Panel("Latency, 99th percentile", "s", [(_seconds("apiserver_request_sli_duration_seconds", "verb"), "{{verb}}")]),
    Panel(
        "Requests in progress",
        "short",
        [
            ("sum by (request_kind) (apiserver_current_inflight_requests{})", "{{request_kind}}"),
            (f"sum(rate(apiserver_dropped_requests_total{{}}{_RATE}))", "rejected a second"),
        ],
    ),
    Panel(
        "Watches",
        "short",
        [("sum by (resource) (apiserver_registered_watchers{})", "{{resource}}")],
    ),
    Panel(
        "Events sent to watches",
        "ops",
        [(f"sum by (resource) (rate(apiserver_watch_events_total{{}}{_RATE}))", "{{resource}}")],
    ),
    Panel("Objects in caches", "short", [("max by (resource) (apiserver_storage_objects{})", "{{resource}}")]),
    Panel(
        "Age of caches",
        "s",
        [("max by (resource) (tenant_apiserver_informer_age_seconds{})", "{{resource}}")],
        help="Time since the cluster last sent something; a bookmark comes each minute.",
    ),
    Panel(
        "Requests to kube-apiserver",
        "reqps",
        [(f"sum by (code, method) (rate(rest_client_requests_total{{}}{_RATE}))", "{{method}} {{code}}")],
    ),
    Panel(
        "Controllers: keys waiting",
        "short",
        [("sum by (name) (workqueue_depth{})", "{{name}}")],
    ),
    Panel(
        "Controllers: attempts again",
        "ops",
        [(f"sum by (name) (rate(workqueue_retries_total{{}}{_RATE}))", "{{name}}")],
    ),
    Panel(
        "Admission, 99th percentile",
        "s",
        [
            (_seconds("apiserver_admission_controller_admission_duration_seconds", "name"), "{{name}}"),
            (_seconds("apiserver_admission_webhook_admission_duration_seconds", "name"), "webhook {{name}}"),
        ],
    ),
    Panel(
        "ApplicationDefinitions",
        "short",
        [
            ("count by (state) (max by (definition, state) (tenant_apiserver_application_definitions{}))", "{{state}}"),
            ("max by (kind) (tenant_apiserver_application_releases_unserved{})", "not served: {{kind}}"),
        ],
    ),
    Panel(
        "Stalls of the event loop",
        "percentunit",
        [(f"sum by (pod) (rate(apiserver_event_loop_stall_seconds_sum{{}}{_RATE}))", "{{pod}}")],
        help="The share of time in which a replica answers nobody.",
    ),
    Panel("Memory", "bytes", [("process_resident_memory_bytes{}", "{{pod}}")]),
    Panel("CPU", "short", [(f"rate(process_cpu_seconds_total{{}}{_RATE})", "{{pod}}")]),
)


def dashboard() -> Object:
    """The dashboard as Grafana imports it."""
    return {
        "uid": "tenant-apiserver",
        "title": "tenant-apiserver",
        "tags": ["cozystack"],
        "schemaVersion": 39,
        "timezone": "browser",
        "refresh": "30s",
        "time": {"from": "now-3h", "to": "now"},
        "templating": {"list": [{"name": "datasource", "type": "datasource", "query": "prometheus"}]},
        "panels": [_panel(number, each) for number, each in enumerate(PANELS)],
    }


def _panel(number: int, panel: Panel) -> Object:
    return {
        "id": number + 1,
        "type": panel.kind,
        "title": panel.title,
        "description": panel.help,
        "datasource": _DATASOURCE,
        "gridPos": {"h": _HEIGHT, "w": _WIDTH, "x": number % 3 * _WIDTH, "y": number // 3 * _HEIGHT},
        "fieldConfig": {"defaults": {"unit": panel.unit, "min": 0}, "overrides": []},
        "targets": [
            {"refId": chr(ord("A") + index), "expr": _selected(expression), "legendFormat": legend}
            for index, (expression, legend) in enumerate(panel.queries)
        ],
    }


def _selected(expression: str) -> str:
    job = 'job="tenant-apiserver"}'
    return expression.replace("{}", f"{{{job}").replace(",}", f", {job}")


def main(arguments: list[str]) -> int:
    if len(arguments) != 1:
        print("usage: python -m tenant_apiserver.generate_dashboard FILE", file=sys.stderr)
        return 2
    Path(arguments[0]).write_text(text())
    return 0


def text() -> str:
    return json.dumps(dashboard(), indent=1) + "\n"


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
