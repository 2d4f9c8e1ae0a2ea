"""The step of the Secret `cozystack-values`: what charts in a Tenant's Namespace read of the platform and the Tenant
(R-060, R-069). Keys of `_cluster` that we do not know are carried down from the parent's Secret."""

from __future__ import annotations

import base64
import binascii
import re
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Any

import yaml

from apiserver.meta.resource import Key, Object
from controller.runtime.conditions import Finding
from controller.tenant.helm_ownership import ObjectManager, object_manager, tenant_release
from controller.tenant.managed_objects import ContentWriter, ManagedKind, ObjectDigests
from controller.tenant.namespace_step import host_label, scheduling_class_label
from controller.tenant.observe import ObservedTenant
from registry.cluster.event_handlers import SyncingHandler
from registry.cluster.interface import SECRETS
from registry.names import ROOT_NAMESPACE

SECRET_NAME = "cozystack-values"
KEY = "values.yaml"
VALUES_READY = "ValuesReady"
WATCH_LABEL = "reconcile.fluxcd.io/watch"

_CLUSTER, _NAMESPACE = "_cluster", "_namespace"
# What there is of these depends on the provider: one that is not of the settings is of former settings.
_OURS = "dns01-"
_BLOCK = re.compile(rf"^{_CLUSTER}:.*?(?=^[^\s#]|\Z)", re.MULTILINE | re.DOTALL)
_Loader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_Dumper: Any = getattr(yaml, "CSafeDumper", yaml.SafeDumper)


class MalformedValues(ValueError):
    """The text is no YAML document of the form that charts read."""


def namespace_values(observed: ObservedTenant) -> Mapping[str, str]:
    """`_namespace`: what the labels of the Namespace say."""
    values = {
        **observed.services.by_name(),
        "gateway": observed.gateway.namespace,
        "host": host_label(observed.host) or "",
    }
    if scheduling_class := scheduling_class_label(observed.scheduling_class):
        values["schedulingClass"] = scheduling_class
    return values


def render_values(cluster: Mapping[str, str], namespace: Mapping[str, str], inherited: str) -> str:
    """values.yaml. `inherited` is YAML with a `_cluster`: its other keys are kept, and of the root's own text
    everything else as well. Raises Malformed."""
    document = _parse(inherited)
    others = {key: value for key, value in document.items() if key not in (_CLUSTER, _NAMESPACE)}
    held = document.get(_NAMESPACE)
    return (
        _cluster_text(inherited, tuple(sorted(cluster.items())))
        + _dump({_NAMESPACE: {**(held if isinstance(held, dict) else {}), **namespace}})
        + (_dump(others) if others else "")
    )


def render_secret(namespace: str, text: str) -> Object:
    return {
        "metadata": {"name": SECRET_NAME, "namespace": namespace, "labels": {WATCH_LABEL: "Enabled"}},
        "type": "Opaque",
        "data": {KEY: base64.b64encode(text.encode()).decode()},
    }


def values_text(secret: Object) -> str:
    """values.yaml of a Secret, empty if there is none, or it is damaged."""
    encoded = (secret.get("data") or {}).get(KEY)
    try:
        return base64.b64decode(encoded, validate=True).decode() if isinstance(encoded, str) else ""
    except (binascii.Error, UnicodeDecodeError):
        return ""


def cluster_block(text: str) -> str:
    """The part of the text that children take over; the whole text if it is not laid out in blocks."""
    found = _BLOCK.search(text)
    return found.group() if found else text


def _essence(secret: Object) -> object:
    text = values_text(secret)
    if object_manager(secret) is ObjectManager.HELM:
        # a chart lays out the same values in its own way; what we write has one layout
        text = _in_our_layout(text)
    return [text, (secret["metadata"].get("labels") or {}).get(WATCH_LABEL)]


def _in_our_layout(text: str) -> str:
    try:
        document = dict(_parse(text))
    except MalformedValues:
        return text
    blocks = [{key: document.pop(key)} for key in (_CLUSTER, _NAMESPACE) if key in document]
    return "".join(_dump(block) for block in (*blocks, document) if block)


def _is_fixed(current: Object, desired: Object) -> bool:
    return bool(current.get("immutable")) or current.get("type") != desired["type"]


MANAGED_VALUES_SECRET = ManagedKind(
    resource=SECRETS,
    normalize=_essence,
    selects=lambda namespace, name: name == SECRET_NAME,
    must_be_replaced=_is_fixed,
)


class InheritedValues(SyncingHandler):
    """A handler of the informer of these Secrets: what children inherit of each. All Secrets share one text.

    `heirs` is told the Namespace of a Secret whose children inherit something else from now on.
    """

    def __init__(self, *, enqueue_heirs: Callable[[str], None]) -> None:
        self._heirs = enqueue_heirs
        self._held: dict[str, str] = {}

    def get(self, namespace: str) -> str | None:
        """YAML: the block `_cluster` of a Secret, or the whole of the root's. None if there is no such Secret."""
        return self._held.get(namespace)

    def record_written(self, secret: Object) -> None:
        self._put(secret["metadata"]["namespace"], _held(secret))

    def _known_keys(self) -> Iterable[Key]:
        return (Key(namespace, SECRET_NAME) for namespace in self._held)

    def _sync(self, key: Key, obj: Object | None) -> None:
        self._put(key.namespace, None if obj is None else _held(obj))

    def _put(self, namespace: str, text: str | None) -> None:
        if self._held.get(namespace) == text:
            return
        if text is None:
            del self._held[namespace]
        else:
            self._held[namespace] = text
        self._heirs(namespace)


class ValuesStep:
    """Findings: ValuesReady, while it is False, and ChartConflict. `cluster` gives the keys of the settings."""

    name = "values"
    condition = VALUES_READY

    def __init__(
        self,
        *,
        contents: ContentWriter,
        digests: ObjectDigests,
        inherited: InheritedValues,
        cluster: Callable[[], Mapping[str, str]],
    ) -> None:
        self._writer = contents
        self._marks = digests
        self._inherited = inherited
        self._cluster = cluster

    async def run(self, observed: ObservedTenant) -> Sequence[Finding]:
        tenant = observed.tenant
        source = tenant.namespace if tenant.is_root else tenant.key.namespace
        inherited = self._inherited.get(source)
        if inherited is None and not tenant.is_root:
            why = f'namespace "{source}" has no Secret {SECRET_NAME} yet'
            return [Finding(VALUES_READY, "False", "ParentValuesMissing", why)]
        try:
            text = render_values(self._cluster(), namespace_values(observed), inherited or "")
        except MalformedValues as e:
            why = f'{KEY} of the Secret {SECRET_NAME} in namespace "{source}" cannot be read: {e}'
            return [Finding(VALUES_READY, "False", "Malformed", why)]
        desired = render_secret(tenant.namespace, text)
        # the root's is no part of its chart
        release = None if tenant.is_root else tenant_release(tenant)
        return await self._writer.ensure(self._marks, lambda current: desired, release)


def _held(secret: Object) -> str:
    text = values_text(secret)
    return text if secret["metadata"]["namespace"] == ROOT_NAMESPACE else sys.intern(cluster_block(text))


@lru_cache(maxsize=64)
def _cluster_text(inherited: str, cluster: tuple[tuple[str, str], ...]) -> str:
    held = _parse(inherited).get(_CLUSTER) or {}
    carried = {key: value for key, value in held.items() if not str(key).startswith(_OURS)}
    return _dump({_CLUSTER: {**carried, **dict(cluster)}})


@lru_cache(maxsize=64)
def _parse(text: str) -> Mapping[str, Any]:
    try:
        document = yaml.load(text, Loader=_Loader)
    except yaml.YAMLError as error:
        # the text may hold what is nobody else's business; where it is damaged is enough
        mark = getattr(error, "problem_mark", None)
        raise MalformedValues(f"no YAML at line {mark.line + 1}" if mark is not None else "no YAML") from error
    cluster = document.get(_CLUSTER) if isinstance(document, dict) else None
    if not isinstance(document, dict | None) or not isinstance(cluster, dict | None):
        raise MalformedValues(f"{_CLUSTER} is not a mapping")
    return document or {}


def _dump(document: Mapping[str, Any]) -> str:
    dumped: str = yaml.dump(document, Dumper=_Dumper, allow_unicode=True, default_flow_style=False, width=2**31 - 1)
    return dumped
