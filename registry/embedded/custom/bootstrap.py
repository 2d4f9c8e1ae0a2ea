"""Creates the definitions of the kinds that every embedded cluster has, and replaces those of an earlier release."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Sequence

from apiserver.encoding.encoded_object import to_json
from apiserver.meta.resource import Key, Object
from registry.embedded.custom import shipped
from registry.embedded.custom.definition_kind import with_spec_defaults
from registry.embedded.custom.names import with_accepted_names
from registry.sqlite.backend import SqliteBackend
from registry.tenantgateway.types import tenantgateway_crd

SHIPPED_SPEC = "standalone.cozystack.io/shipped-spec"
"""The annotation with the hash of the spec as it was shipped. A spec with another hash was changed by a user."""


async def bootstrap_definitions(definitions: SqliteBackend) -> None:
    """A definition that a user has changed stays as it is."""
    for crd, digest in await asyncio.to_thread(_shipped):
        key = Key("", crd["metadata"]["name"])
        stored = await definitions.read(key, live=False)
        if stored is None:
            await definitions.create(_new(crd, digest), dry_run=False)
            continue
        mark = (stored["metadata"].get("annotations") or {}).get(SHIPPED_SPEC)
        if mark not in (None, digest) and mark == _digest(stored):
            await definitions.update(key, _replaced(stored, crd, digest), stored, dry_run=False)


def _shipped() -> Sequence[tuple[Object, str]]:
    """The definitions with their hashes. Reads files."""
    found = []
    for crd in (*shipped.definitions(), tenantgateway_crd()):
        definition = {"metadata": crd["metadata"], "spec": with_spec_defaults(crd["spec"])}
        found.append((definition, _digest(definition)))
    return found


def _digest(crd: Object) -> str:
    # the order of keys does not count, because kubectl may change it
    return hashlib.sha256(to_json(_sorted(crd["spec"]))).hexdigest()[:16]


def _sorted(value: object) -> object:
    if isinstance(value, dict):
        return {name: _sorted(value[name]) for name in sorted(value)}
    return [_sorted(each) for each in value] if isinstance(value, list) else value


def _new(crd: Object, digest: str) -> Object:
    metadata = {**crd["metadata"], "generation": 1}
    metadata["annotations"] = {**(metadata.get("annotations") or {}), SHIPPED_SPEC: digest}
    stored = [version["name"] for version in crd["spec"]["versions"] if version.get("storage")]
    return with_accepted_names({**crd, "metadata": metadata, "status": {"storedVersions": stored}}, ())


def _replaced(stored: Object, crd: Object, digest: str) -> Object:
    metadata = {**stored["metadata"], "generation": stored["metadata"].get("generation", 0) + 1}
    metadata["annotations"] = {
        **(metadata.get("annotations") or {}),
        **(crd["metadata"].get("annotations") or {}),
        SHIPPED_SPEC: digest,
    }
    status = stored.get("status") or {}
    added = [version["name"] for version in crd["spec"]["versions"] if version.get("storage")]
    versions = list(dict.fromkeys([*(status.get("storedVersions") or ()), *added]))
    return {**stored, "metadata": metadata, "spec": crd["spec"], "status": {**status, "storedVersions": versions}}
