"""HelmReleases."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from apiserver.meta.resource import Object
from tests.policies.account.case import HELMRELEASES, OTHER, ROOT, TENANT, AccountCase, Content, case

_CHART = {"kind": "ExternalArtifact", "name": "cozystack-tenant-application-default-tenant", "namespace": "cozy-system"}
_TENANT_LABELS = {
    "apps.cozystack.io/application.kind": "Tenant",
    "apps.cozystack.io/application.group": "apps.cozystack.io",
    "apps.cozystack.io/application.name": "limits",
}
_ACTION = {"timeout": "15m0s", "strategy": {"name": "RetryOnFailure", "retryInterval": "30s"}}
_RELEASE_SPEC = {
    "chartRef": _CHART,
    "interval": "5m0s",
    "maxHistory": 5,
    "install": _ACTION,
    "upgrade": _ACTION,
    "valuesFrom": [{"kind": "Secret", "name": "cozystack-values"}],
    "values": {"host": ""},
}


def releases() -> Iterator[AccountCase]:
    def release(labels: Content = _TENANT_LABELS, **spec: Any) -> Object:
        changed = {key: value for key, value in {**_RELEASE_SPEC, **spec}.items() if value is not None}
        return {"metadata": {"labels": dict(labels)}, "spec": changed}

    def create(id: str, new: Object, refusal: str = "", name: str = "tenant-limits") -> AccountCase:
        return case(HELMRELEASES, id, ROOT, name, new=new, refusal=refusal)

    def change(id: str, new: Object, refusal: str = "", *, old: Object) -> AccountCase:
        return case(HELMRELEASES, id, ROOT, "tenant-limits", old=old, new=new, refusal=refusal)

    place = (
        "may write helmreleases only so: labelled as an application, those of Tenants named tenant-*, in namespaces "
        "tenant-*"
    )
    fields = "spec of a new HelmRelease has only the fields chartRef, "
    action = "install and upgrade of a new HelmRelease have only the fields timeout, strategy"
    values_from = "spec.valuesFrom of a new HelmRelease names only kind=Secret name=cozystack-values"
    chart = "spec.chartRef of a new HelmRelease is kind=ExternalArtifact name=cozystack-tenant-application-default-"
    no_group = {**_TENANT_LABELS, "apps.cozystack.io/application.group": "x"}
    no_kind = {**_TENANT_LABELS, "apps.cozystack.io/application.kind": "Postgres"}
    yield create("a tenant", release())
    yield create("without optional fields", release(valuesFrom=None, maxHistory=None, install=None, upgrade=None))
    yield create("suspended", release(suspend=True))
    yield create("another name", release(), place, name="postgres-a")
    yield from _applications(release(no_kind))
    yield create("another group", release(no_group), place)
    yield create("without labels", {"spec": release()["spec"]}, place)
    yield case(HELMRELEASES, "elsewhere", OTHER, "tenant-limits", new=release(), refusal=place)
    yield create("another chart", release(chartRef={**_CHART, "name": "x"}), chart)
    yield create("a chart in another namespace", release(chartRef={**_CHART, "namespace": TENANT}), chart)
    yield create("another kind of chart", release(chartRef={**_CHART, "kind": "OCIRepository"}), chart)
    source = {"kind": "HelmRepository", "name": "x"}
    yield create(
        "a chart of its own", release(chartRef=None, chart={"spec": {"chart": "x", "sourceRef": source}}), chart
    )
    further: Mapping[str, Any] = {
        "kubeConfig": {"secretRef": {"name": "x"}},
        "serviceAccountName": "x",
        "targetNamespace": "kube-system",
        "storageNamespace": "kube-system",
        "releaseName": "x",
        "postRenderers": [{"kustomize": {"patches": [{"patch": "x"}]}}],
    }
    for field, value in further.items():
        changed = {"metadata": release()["metadata"], "spec": {**_RELEASE_SPEC, field: value}}
        yield create(f"with {field}", changed, fields)
        yield change(f"{field} added", changed, "only values may change", old=release())
    for name in ("install", "upgrade"):
        yield create(f"{name} of CRDs", release(**{name: {**_ACTION, "crds": "CreateReplace"}}), action)
    values = {"kind": "Secret", "name": "cozystack-values"}
    yield create("values of another Secret", release(valuesFrom=[values, {**values, "name": "x"}]), values_from)
    yield create("values of a ConfigMap", release(valuesFrom=[{**values, "kind": "ConfigMap"}]), values_from)
    yield change("values changed", release(values={"host": "a.example.org"}), old=release())
    yield change("values removed", release(values=None), old=release())
    foreign = release(chartRef={**_CHART, "name": "former"}, suspend=True, serviceAccountName="x")
    edited = {**foreign, "spec": {**foreign["spec"], "values": {"host": "b"}}}
    yield change("foreign fields remain", edited, old=foreign)
    yield change(
        "a foreign field removed", release(chartRef=foreign["spec"]["chartRef"]), "only values may change", old=foreign
    )
    yield change("a former chart replaced", release(suspend=True, serviceAccountName="x"), "only values", old=foreign)
    yield change("relabelled", release(), "keeps the kind of its application", old=release(no_kind))
    yield case(HELMRELEASES, "deleted", ROOT, "tenant-limits", old=release())
    yield case(HELMRELEASES, "another application deleted", ROOT, "postgres-a", old=release(no_kind))
    yield case(HELMRELEASES, "another application deleted elsewhere", OTHER, "a", old=release(no_kind), refusal=place)


def _applications(obj: Object) -> Iterator[AccountCase]:
    """`obj` is the HelmRelease of an application that is no Tenant."""

    def create(id: str, refusal: str = "", **spec: Any) -> AccountCase:
        new = {**obj, "spec": {**obj["spec"], **spec}}
        return case(HELMRELEASES, f"an application {id}", ROOT, "postgres-a", new=new, refusal=refusal)

    waiting = {**_ACTION, "disableWait": True}
    elsewhere = {**_CHART, "namespace": TENANT}
    identity = "apps.cozystack.io/application."
    yield create("")
    yield create("with another chart of the platform", chartRef={**_CHART, "name": "x"})
    yield create("with a health check", waitStrategy={"name": "poller"}, healthCheckExprs=[], install=waiting)
    yield create("with a chart elsewhere", "another one of this namespace", chartRef=elsewhere)
    yield create("as another account", "has only the fields", serviceAccountName="x")
    no_kind = {"metadata": {"labels": {f"{identity}group": "apps.cozystack.io"}}, "spec": obj["spec"]}
    place = "labelled as an application"
    yield case(HELMRELEASES, "an application without a kind", ROOT, "a", new=no_kind, refusal=place)
    yield case(HELMRELEASES, "an application elsewhere", OTHER, "a", new=obj, refusal=place)
