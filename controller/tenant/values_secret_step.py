"""The step of the Secret `cozystack-values`, from which the charts in a Tenant's Namespace read values of the platform
and of the Tenant (R-060, R-069). Unknown keys of `_cluster` are inherited from the parent's Secret."""

from __future__ import annotations

import base64
import binascii
import re
import sys
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Any

import yaml

from apiserver.meta.resource import Key, Object
from controller.runtime.conditions import Finding
from controller.tenant.helm_ownership import ObjectManager, object_manager, tenant_release
from controller.tenant.managed_objects import ContentWriter, ManagedKind, ObjectDigests
from controller.tenant.namespace_step import host_label, scheduling_class_label
from controller.tenant.observe import ObservedTenant
from controller.tenant.planning.context import PlanningContext
from registry.cluster.event_handlers import SyncingHandler
from registry.cluster.interface import SECRETS
from registry.names import ROOT_NAMESPACE

SECRET_NAME = "cozystack-values"
KEY = "values.yaml"
VALUES_READY = "ValuesReady"
WATCH_LABEL = "reconcile.fluxcd.io/watch"

_CLUSTER, _NAMESPACE = "_cluster", "_namespace"
# Keys with this prefix depend on the DNS-01 provider: they are not inherited, because they may come from earlier
# settings.
_SETTINGS_PREFIX = "dns01-"
_BLOCK = re.compile(rf"^{_CLUSTER}:.*?(?=^[^\s#]|\Z)", re.MULTILINE | re.DOTALL)
_Loader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_Dumper: Any = getattr(yaml, "CSafeDumper", yaml.SafeDumper)


class MalformedValues(ValueError):
    """The text is not a YAML document in the format that charts read."""


def namespace_values(observed: ObservedTenant) -> Mapping[str, str]:
    """The mapping `_namespace`, which has the same values as the labels of the Namespace."""
    values = {
        **observed.services.by_name(),
        "gateway": observed.gateway.namespace,
        "host": host_label(observed.host) or "",
    }
    if scheduling_class := scheduling_class_label(observed.scheduling_class):
        values["schedulingClass"] = scheduling_class
    return values


def render_values(
    cluster: Mapping[str, str], namespace: Mapping[str, str], inherited: str, unconfirmed: Collection[str] = ()
) -> str:
    """Renders values.yaml. `inherited` is YAML with a mapping `_cluster`, whose unknown and `unconfirmed` keys are
    carried over. The root's own text may have more mappings, which are carried over as well. Raises MalformedValues."""
    document = _parse(inherited)
    others = {key: value for key, value in document.items() if key not in (_CLUSTER, _NAMESPACE)}
    previous = document.get(_NAMESPACE)
    return (
        _cluster_text(inherited, tuple(sorted(cluster.items())), frozenset(unconfirmed))
        + _dump({_NAMESPACE: {**(previous if isinstance(previous, dict) else {}), **namespace}})
        + (_dump(others) if others else "")
    )


def render_secret(namespace: str, text: str) -> Object:
    return {
        "metadata": {"name": SECRET_NAME, "namespace": namespace, "labels": {WATCH_LABEL: "Enabled"}},
        "type": "Opaque",
        "data": {KEY: base64.b64encode(text.encode()).decode()},
    }


def values_text(secret: Object) -> str:
    """values.yaml of a Secret; empty if there is none or it is malformed."""
    encoded = (secret.get("data") or {}).get(KEY)
    try:
        return base64.b64decode(encoded, validate=True).decode() if isinstance(encoded, str) else ""
    except (binascii.Error, UnicodeDecodeError):
        return ""


def cluster_block(text: str) -> str:
    """The part of the text that children inherit; the whole text if it is not in YAML block style."""
    found = _BLOCK.search(text)
    return found.group() if found else text


def _normalize_secret(secret: Object) -> object:
    text = values_text(secret)
    if object_manager(secret) is ObjectManager.HELM:
        # a chart may format the same values differently: ours always have the same format
        text = _reformat(text)
    return [text, (secret["metadata"].get("labels") or {}).get(WATCH_LABEL)]


def _reformat(text: str) -> str:
    try:
        document = dict(_parse(text))
    except MalformedValues:
        return text
    blocks = [{key: document.pop(key)} for key in (_CLUSTER, _NAMESPACE) if key in document]
    return "".join(_dump(block) for block in (*blocks, document) if block)


def _is_immutable(current: Object, desired: Object) -> bool:
    return bool(current.get("immutable")) or current.get("type") != desired["type"]


MANAGED_VALUES_SECRET = ManagedKind(
    resource=SECRETS,
    normalize=_normalize_secret,
    selects=lambda namespace, name: name == SECRET_NAME,
    must_be_replaced=_is_immutable,
)


class InheritedValues(SyncingHandler):
    """A handler of the informer of these Secrets, which stores the text that children inherit from each of them.

    Equal texts are stored once. `enqueue_heirs` is called with the Namespace of a Secret whose text has changed.
    """

    def __init__(self, *, enqueue_heirs: Callable[[str], None]) -> None:
        self._heirs = enqueue_heirs
        self._texts: dict[str, str] = {}

    def get(self, namespace: str) -> str | None:
        """YAML: the block `_cluster` of a Secret, or the whole text of the root's. None if there is no such Secret."""
        return self._texts.get(namespace)

    def _known_keys(self) -> Iterable[Key]:
        return (Key(namespace, SECRET_NAME) for namespace in self._texts)

    def _sync(self, key: Key, obj: Object | None) -> None:
        self._put(key.namespace, None if obj is None else _inherited_text(obj))

    def _put(self, namespace: str, text: str | None) -> None:
        if self._texts.get(namespace) == text:
            return
        if text is None:
            del self._texts[namespace]
        else:
            self._texts[namespace] = text
        self._heirs(namespace)


class ValuesStep:
    """Findings: ValuesReady while it is False, and ChartConflict. `cluster` returns the keys of the settings,
    `unconfirmed` those of them that do not replace a value of before."""

    name = "values"
    condition = VALUES_READY

    def __init__(
        self,
        *,
        contents: ContentWriter,
        digests: ObjectDigests,
        inherited: InheritedValues,
        cluster: Callable[[], Mapping[str, str]],
        unconfirmed: Callable[[], Collection[str]],
    ) -> None:
        self._contents = contents
        self._digests = digests
        self._inherited = inherited
        self._cluster = cluster
        self._unconfirmed = unconfirmed

    def planning(self, context: PlanningContext) -> ValuesStep:
        return ValuesStep(
            contents=context.contents,
            digests=self._digests,
            inherited=self._inherited,
            cluster=self._cluster,
            unconfirmed=self._unconfirmed,
        )

    async def run(self, observed: ObservedTenant) -> Sequence[Finding]:
        tenant = observed.tenant
        source = tenant.namespace if tenant.is_root else tenant.key.namespace
        inherited = self._inherited.get(source)
        if inherited is None and not tenant.is_root:
            message = (
                f'namespace "{source}" has no Secret {SECRET_NAME} yet; the conditions of the parent tenant tell why'
            )
            return [Finding(VALUES_READY, "False", "ParentValuesMissing", message)]
        try:
            unconfirmed = self._unconfirmed()
            text = render_values(self._cluster(), namespace_values(observed), inherited or "", unconfirmed)
        except MalformedValues as e:
            message = f'{KEY} of the Secret {SECRET_NAME} in namespace "{source}" cannot be read: {e}; correct it'
            return [Finding(VALUES_READY, "False", "Malformed", message)]
        desired = render_secret(tenant.namespace, text)
        # no chart creates the Secret of the root
        release = None if tenant.is_root else tenant_release(tenant)
        return await self._contents.ensure(self._digests, lambda current: desired, release)


def _inherited_text(secret: Object) -> str:
    text = values_text(secret)
    return text if secret["metadata"]["namespace"] == ROOT_NAMESPACE else sys.intern(cluster_block(text))


@lru_cache(maxsize=64)
def _cluster_text(inherited: str, cluster: tuple[tuple[str, str], ...], unconfirmed: frozenset[str]) -> str:
    previous = _parse(inherited).get(_CLUSTER) or {}
    carried = {key: value for key, value in previous.items() if not str(key).startswith(_SETTINGS_PREFIX)}
    confirmed = {key: value for key, value in cluster if key not in unconfirmed or key not in carried}
    return _dump({_CLUSTER: {**carried, **confirmed}})


@lru_cache(maxsize=64)
def _parse(text: str) -> Mapping[str, Any]:
    try:
        document = yaml.load(text, Loader=_Loader)
    except yaml.YAMLError as error:
        # the text may contain secrets: the message gives the position only
        mark = getattr(error, "problem_mark", None)
        raise MalformedValues(
            f"invalid YAML at line {mark.line + 1}" if mark is not None else "invalid YAML"
        ) from error
    cluster = document.get(_CLUSTER) if isinstance(document, dict) else None
    if not isinstance(document, dict | None) or not isinstance(cluster, dict | None):
        raise MalformedValues(f"{_CLUSTER} is not a mapping")
    return document or {}


def _dump(document: Mapping[str, Any]) -> str:
    dumped: str = yaml.dump(document, Dumper=_Dumper, allow_unicode=True, default_flow_style=False, width=2**31 - 1)
    return dumped
