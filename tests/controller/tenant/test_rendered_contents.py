"""Contents of a Tenant's Namespace: how they are rendered, and which objects are equivalent."""

from __future__ import annotations

import base64
from typing import Any

import pytest
import yaml

from apiserver.meta.resource import Object
from controller.tenant import rbac_step as rbac
from controller.tenant import tenantgateway_step as tenantgateway
from controller.tenant import values_secret_step as values
from controller.tenant.namespace_step import (
    InheritedSettings,
    conflicting_labels,
    helm_patch,
    render_namespace,
    scheduling_class_label,
)
from controller.tenant.observe import ObservedTenant
from controller.tenant.quota import rendering as quota
from controller.tenant.values_secret_step import (
    MalformedValues,
    cluster_block,
    namespace_values,
    render_secret,
    render_values,
    values_text,
)
from registry.tenant.inheritance import Services
from registry.tenant.tree import EffectiveGateway, EffectiveHost
from tests.controller.golden_files import assert_golden
from tests.tenant_objects import release, root_summary, tenant_summary

FOO = tenant_summary("foo", spec={"etcd": True, "monitoring": True})
BAR = tenant_summary("bar", "tenant-foo", spec={"etcd": True, "gateway": True, "resourceQuotas": {"cpu": 4}})
PARENT: Object = {"metadata": {"name": "tenant-foo", "uid": "u-foo"}}
SERVICES = Services(etcd="tenant-foo-bar", ingress="tenant-root", monitoring="tenant-foo", seaweedfs="tenant-root")
HOST = EffectiveHost(value="bar.foo.example.org", namespace="tenant-root")
INHERITED = InheritedSettings(host=HOST, services=SERVICES, gateway="tenant-foo-bar", scheduling_class="gold")
GATEWAY = "namespace.cozystack.io/gateway"
ATTACHED_BY = "cozystack.io/gateway-attached-by"


def observed(**changes: Any) -> ObservedTenant:
    fields: dict[str, Any] = {
        "tenant": BAR,
        "release": release("bar", "tenant-foo"),
        "ancestors": (FOO, root_summary()),
        "host": HOST,
        "gateway": EffectiveGateway(value=True, namespace="tenant-foo-bar"),
        "services": SERVICES,
        "scheduling_class": "gold",
        "shares_host": False,
        "shares_namespace": False,
        "namespace": None,
        "parent_namespace": PARENT,
    }
    return ObservedTenant(**fields | changes)


def namespace(labels: dict[str, str] | None = None, annotations: dict[str, str] | None = None) -> Object:
    return {"metadata": {"name": "tenant-foo-bar", "labels": labels or {}, "annotations": annotations or {}}}


def test_the_rendered_namespace() -> None:
    """R-054, R-063, R-067, R-068."""
    assert_golden("tenant-namespace", render_namespace(BAR, (FOO, root_summary()), INHERITED, parent=PARENT))


@pytest.mark.parametrize(
    ("owner", "labels", "annotations", "label", "annotation"),
    [
        pytest.param("tenant-foo", {}, {}, "tenant-foo", None, id="R-068 an ancestor has a Gateway"),
        pytest.param(
            "tenant-foo",
            {GATEWAY: "x"},
            {ATTACHED_BY: "x/cozystack"},
            "tenant-foo",
            None,
            id="attached before",
        ),
        pytest.param(
            "",
            {GATEWAY: "x"},
            {ATTACHED_BY: "x/cozystack"},
            "absent",
            "absent",
            id="attached",
        ),
        pytest.param("", {GATEWAY: "x"}, {}, None, "absent", id="R-070 a label without a Gateway is removed"),
        pytest.param("", {}, {}, None, "absent", id="R-070 no Gateway, no label"),
    ],
)
def test_the_gateway_label(
    owner: str, labels: dict[str, str], annotations: dict[str, str], label: str | None, annotation: str | None
) -> None:
    current = namespace(labels, annotations)

    metadata = render_namespace(BAR, (FOO, root_summary()), InheritedSettings(gateway=owner), current=current)[
        "metadata"
    ]

    assert metadata["labels"].get(GATEWAY, "absent") == label
    assert metadata.get("annotations", {}).get(ATTACHED_BY, "absent") == annotation


@pytest.mark.parametrize(
    ("name", "label"),
    [
        pytest.param("", None, id="none"),
        pytest.param("gold", "gold", id="a name"),
        pytest.param("not a label", None, id="not a valid label value"),
        pytest.param("a" * 64, None, id="too long for a label"),
    ],
)
def test_the_label_of_the_scheduling_class(name: str, label: str | None) -> None:
    assert scheduling_class_label(name) == label


HELM = {"app.kubernetes.io/managed-by": "Helm"}


@pytest.mark.parametrize(
    ("labels", "annotations", "added", "conflicting"),
    [
        pytest.param({}, {}, {GATEWAY: "tenant-foo-bar"}, [], id="a label that the chart lacks is added"),
        pytest.param({GATEWAY: "x"}, {}, {}, [GATEWAY], id="a label of the chart stays and conflicts"),
        pytest.param({GATEWAY: ""}, {}, {}, [GATEWAY], id="an empty label of the chart stays as well"),
        pytest.param(
            {GATEWAY: "x"},
            {ATTACHED_BY: "x/cozystack"},
            {GATEWAY: "tenant-foo-bar"},
            [GATEWAY],
            id="the label of the TenantGateway controller is not the chart's",
        ),
    ],
)
def test_the_gateway_label_of_a_namespace_that_helm_manages(
    labels: dict[str, str], annotations: dict[str, str], added: dict[str, str], conflicting: list[str]
) -> None:
    current = namespace({**HELM, **labels}, annotations)
    desired = render_namespace(BAR, (), InheritedSettings(gateway="tenant-foo-bar"), current=current)

    metadata = helm_patch(desired, current)["metadata"]

    assert {key: value for key, value in metadata["labels"].items() if key == GATEWAY} == added
    assert conflicting_labels(desired, current) == conflicting


def test_an_empty_label_of_the_chart_equals_an_absent_one() -> None:
    """The chart writes every label, empty if there is no owner (R-070)."""
    current = namespace({**HELM, GATEWAY: "", "namespace.cozystack.io/etcd": ""})

    assert conflicting_labels(render_namespace(BAR, (), InheritedSettings(), current=current), current) == []


CLUSTER = {"root-host": "example.org", "solver": "http01", "dns01-provider": "cloudflare"}
INHERITED_TEXT = "_cluster:\n  bundle-name: isp-full\n  dns01-route53-region: x\n  solver: old\n  nested: {a: [1, 2]}\n"


def test_the_rendered_secret() -> None:
    """R-069: `_namespace` has the values of the labels."""
    text = render_values(CLUSTER, namespace_values(observed()), INHERITED_TEXT)

    assert_golden("cozystack-values", render_secret("tenant-foo-bar", text))
    assert_golden("cozystack-values-decoded", yaml.load(text, Loader=yaml.CSafeLoader))


def test_values_that_look_like_other_yaml_types_stay_strings() -> None:
    text = render_values({"gateway-enabled": "true", "n": "1"}, {"host": "1.0", "etcd": ""}, "")

    assert yaml.load(text, Loader=yaml.CSafeLoader) == {
        "_cluster": {"gateway-enabled": "true", "n": "1"},
        "_namespace": {"host": "1.0", "etcd": ""},
    }


@pytest.mark.parametrize(
    ("changes", "field", "value"),
    [
        pytest.param({}, "host", "bar.foo.example.org", id="R-060 the host of the label"),
        pytest.param({"host": None}, "host", "", id="no host"),
        pytest.param(
            {"host": EffectiveHost(value="a" * 70 + ".org", namespace="n")},
            "host",
            "",
            id="R-060 FACT-6 no label, no host",
        ),
        pytest.param({}, "gateway", "tenant-foo-bar", id="R-069 the owner of the Gateway"),
        pytest.param({"gateway": EffectiveGateway(value=False, namespace="")}, "gateway", "", id="R-070 no owner"),
        pytest.param({}, "etcd", "tenant-foo-bar", id="R-064 its own etcd"),
        pytest.param({}, "monitoring", "tenant-foo", id="R-075 the parent's monitoring"),
        pytest.param({}, "schedulingClass", "gold", id="a class"),
    ],
)
def test_charts_read_the_values_of_the_labels(changes: dict[str, Any], field: str, value: str) -> None:
    assert namespace_values(observed(**changes))[field] == value


@pytest.mark.parametrize("name", ["", "not a label"])
def test_a_scheduling_class_that_is_no_label_value_is_not_in_the_values(name: str) -> None:
    assert "schedulingClass" not in namespace_values(observed(scheduling_class=name))


def test_the_same_values_in_another_yaml_format_have_the_same_digest() -> None:
    ours = render_secret("tenant-foo", render_values({"solver": "http01"}, {"host": "x.example", "etcd": ""}, ""))
    text = '_namespace:\n  host: "x.example"\n  etcd: ""\n_cluster:\n    solver: "http01"\n'
    theirs = {
        **render_secret("tenant-foo", text),
        "metadata": {"labels": {**HELM, "reconcile.fluxcd.io/watch": "Enabled"}},
    }
    other = {**theirs, "data": render_secret("tenant-foo", text.replace("x.", "y."))["data"]}

    assert values.MANAGED_VALUES_SECRET.digest(theirs) == values.MANAGED_VALUES_SECRET.digest(ours)
    assert values.MANAGED_VALUES_SECRET.digest(other) != values.MANAGED_VALUES_SECRET.digest(ours)
    malformed = {**theirs, "data": render_secret("tenant-foo", "[")["data"]}
    assert values.MANAGED_VALUES_SECRET.digest(malformed) != values.MANAGED_VALUES_SECRET.digest(ours)


def test_unknown_keys_and_blocks_of_the_roots_own_text_are_kept() -> None:
    text = "_cluster: {bundle: x, solver: old}\n_namespace: {extra: y, host: old}\nothers: [1]\n"

    rendered = yaml.load(render_values({"solver": "http01"}, {"host": "example.org"}, text), Loader=yaml.CSafeLoader)

    assert rendered == {
        "_cluster": {"bundle": "x", "solver": "http01"},
        "_namespace": {"extra": "y", "host": "example.org"},
        "others": [1],
    }
    assert (
        yaml.load(
            render_values({"solver": "http01"}, {"host": "example.org"}, yaml.safe_dump(rendered)),
            Loader=yaml.CSafeLoader,
        )
        == rendered
    )


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("_cluster: [", id="invalid YAML"),
        pytest.param("- _cluster", id="a list"),
        pytest.param("_cluster: text", id="not a mapping"),
        pytest.param("_cluster: !!python/object/apply:os.getcwd []", id="a Python tag"),
    ],
)
def test_a_malformed_text_is_an_error(text: str) -> None:
    with pytest.raises(MalformedValues):
        render_values({}, {}, text)


@pytest.mark.parametrize(
    ("text", "block"),
    [
        pytest.param("_cluster:\n  a: b\n_namespace:\n  c: d\n", "_cluster:\n  a: b\n", id="two blocks"),
        pytest.param("_namespace:\n  c: d\n_cluster:\n  a: b\n", "_cluster:\n  a: b\n", id="the other way round"),
        pytest.param(
            "_cluster:\n  a: b\n\n# note\n  c: d\nx: y\n", "_cluster:\n  a: b\n\n# note\n  c: d\n", id="comments"
        ),
        pytest.param('{"_cluster": {"a": "b"}}', '{"_cluster": {"a": "b"}}', id="JSON as a whole"),
        pytest.param("", "", id="empty"),
    ],
)
def test_the_block_that_children_inherit(text: str, block: str) -> None:
    assert cluster_block(text) == block


@pytest.mark.parametrize(
    ("data", "text"),
    [
        pytest.param({"values.yaml": base64.b64encode(b"a: b").decode()}, "a: b", id="a text"),
        pytest.param({}, "", id="no such key"),
        pytest.param(None, "", id="no data"),
        pytest.param({"values.yaml": "%"}, "", id="not base64"),
        pytest.param({"values.yaml": base64.b64encode(b"\xff").decode()}, "", id="not UTF-8"),
    ],
)
def test_the_text_of_a_secret(data: dict[str, str] | None, text: str) -> None:
    assert values_text({"metadata": {}, "data": data}) == text


SPEC: Object = {
    "apex": "bar.foo.example.org",
    "certMode": "dns01",
    "issuerName": "letsencrypt-prod",
    "gatewayClassName": "cilium",
    "dns01": {"provider": "route53", "route53": {"region": "eu-central-1"}},
    "attachedNamespaces": ["cozy-dashboard", "default"],
    "tlsPassthroughServices": ["api"],
}


def test_the_rendered_tenantgateway() -> None:
    """R-083, R-088."""
    assert_golden("tenantgateway", tenantgateway.render_tenantgateway("tenant-foo-bar", SPEC))


@pytest.mark.parametrize(
    ("present", "rendered"),
    [
        pytest.param(SPEC, {}, id="up to date"),
        pytest.param(
            {k: v for k, v in SPEC.items() if k != "gatewayClassName"}, {}, id="the CRD's default is up to date"
        ),
        pytest.param(
            {**SPEC, "wildcardSecretRef": {"name": "x"}},
            {**SPEC, "wildcardSecretRef": None},
            id="a field to remove",
        ),
        pytest.param(
            {
                **SPEC,
                "dns01": {"provider": "cloudflare", "cloudflare": {"apiTokenSecretRef": {"name": "a", "key": "b"}}},
            },
            {**SPEC, "dns01": {"provider": "route53", "route53": {"region": "eu-central-1"}, "cloudflare": None}},
            id="R-092 only the block of one provider",
        ),
    ],
)
def test_the_patch_of_an_existing_tenantgateway(present: Object, rendered: Object) -> None:
    current = {"metadata": {}, "spec": present}

    assert tenantgateway.render_tenantgateway("tenant-foo-bar", SPEC, current)["spec"] == rendered


@pytest.mark.parametrize(
    ("host", "reason"),
    [
        pytest.param(HOST, None, id="R-086 a derived domain"),
        pytest.param(None, "NoApex", id="no domain"),
        pytest.param(
            EffectiveHost(value="a" * 60 + ".org", namespace="n"), "HostTooLongForLabel", id="FACT-6 too long"
        ),
        pytest.param(EffectiveHost(value="*.org", namespace="n"), "NoApex", id="a stored value that is invalid"),
    ],
)
def test_the_reason_why_there_is_no_tenantgateway(host: EffectiveHost | None, reason: str | None) -> None:
    found = tenantgateway.missing_apex_finding(observed(host=host))

    assert (found.reason if found else None) == reason


@pytest.mark.parametrize(
    ("kind", "mine", "theirs"),
    [
        pytest.param(
            values.MANAGED_VALUES_SECRET, ("tenant-foo", "cozystack-values"), ("tenant-foo", "other"), id="Secret"
        ),
        pytest.param(
            rbac.MANAGED_SERVICE_ACCOUNT, ("tenant-foo", "tenant-foo"), ("tenant-foo", "default"), id="ServiceAccount"
        ),
        pytest.param(
            rbac.MANAGED_ROLE_BINDING, ("tenant-foo", "cozy:tenant:use"), ("tenant-foo", "x"), id="RoleBinding"
        ),
        pytest.param(quota.MANAGED_QUOTA, ("tenant-foo", "tenant-quota"), ("tenant-foo", "x"), id="ResourceQuota"),
        pytest.param(
            quota.MANAGED_LIMIT_RANGE, ("tenant-foo", "tenant-range-limits"), ("tenant-foo", "x"), id="LimitRange"
        ),
        pytest.param(
            tenantgateway.MANAGED_TENANTGATEWAY, ("tenant-foo", "cozystack"), ("tenant-foo", "x"), id="TenantGateway"
        ),
    ],
)
def test_which_objects_are_managed(kind: Any, mine: tuple[str, str], theirs: tuple[str, str]) -> None:
    assert kind.selects(*mine)
    assert not kind.selects(*theirs)
