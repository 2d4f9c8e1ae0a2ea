"""Any Tenant survives its HelmRelease, and any HelmRelease can be read and written back."""

from __future__ import annotations

import string
from typing import Any

import orjson
from hypothesis import given
from hypothesis import strategies as st

from apiserver.meta.resource import Object
from registry import names
from registry.tenant.convert import to_release, to_tenant
from registry.tenant.spec import unreadable_paths
from tests.registry.tenant.converted_objects import DEFAULTS, SETTINGS, release, tenant

_NAME_PART = st.text(string.ascii_letters + string.digits + "-_.", min_size=1, max_size=63).filter(
    lambda text: text[0].isalnum() and text[-1].isalnum()
)
_PREFIX = st.lists(st.from_regex(r"[a-z]([-a-z0-9]{0,40}[a-z0-9])?", fullmatch=True), min_size=1, max_size=6).map(
    ".".join
)
_LEGAL_KEY = st.one_of(_NAME_PART, st.builds("{}/{}".format, _PREFIX.filter(lambda text: len(text) <= 253), _NAME_PART))
_MAP = st.dictionaries(_LEGAL_KEY, st.text(max_size=8), min_size=1, max_size=5)
_USER_FINALIZER = _LEGAL_KEY.filter(lambda key: key not in names.HIDDEN_FINALIZERS)
_FINALIZERS = st.lists(_USER_FINALIZER, min_size=1, max_size=3, unique=True)
_JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-5, 5)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)
_SPEC = st.fixed_dictionaries(
    {
        "host": st.sampled_from(["", "a.example"]),
        **dict.fromkeys(names.SERVICE_FLAGS, st.booleans()),
        "schedulingClass": st.sampled_from(["", "fast"]),
        "resourceQuotas": st.dictionaries(
            _NAME_PART, st.one_of(st.integers(0, 9), st.sampled_from(["1", "2Gi"])), max_size=3
        ),
    },
    optional={"gateway": st.booleans(), "addons": _JSON, "own": _JSON},
)
_METADATA = st.fixed_dictionaries({}, optional={"labels": _MAP, "annotations": _MAP, "finalizers": _FINALIZERS})


@given(_METADATA, _SPEC)
def test_a_tenant_round_trips_through_its_helmrelease(metadata: Object, spec: Object) -> None:
    wanted = tenant(metadata=metadata, spec=spec)
    shown = to_tenant(to_release(wanted, None, SETTINGS))
    assert shown.pop("status")["namespace"] == "tenant-alice"
    assert shown == wanted


@given(_METADATA, _SPEC, _METADATA, _SPEC)
def test_an_update_changes_the_tenant_and_preserves_everything_else(
    metadata: Object, spec: Object, new_metadata: Object, new_spec: Object
) -> None:
    stored = to_release(tenant(metadata=metadata, spec=spec), release(), SETTINGS)
    wanted = tenant(metadata=new_metadata, spec=new_spec)
    written = to_release(wanted, stored, SETTINGS)
    shown = to_tenant(written)
    assert shown["spec"] == wanted["spec"]
    assert {field: shown["metadata"].get(field) for field in ("labels", "annotations", "finalizers")} == {
        field: new_metadata.get(field) for field in ("labels", "annotations", "finalizers")
    }
    assert to_release(shown, written, SETTINGS) == written
    assert written["metadata"]["labels"]["foreign"] == "label"
    assert written["metadata"]["annotations"]["foreign.example/a"] == "1"
    assert written["spec"]["values"]["_cluster"] == {"a": 1}
    assert written["spec"]["suspend"] is True
    assert [each for each in written["metadata"]["finalizers"] if each in names.HIDDEN_FINALIZERS] == [
        names.FLUX_FINALIZER,
        names.TENANT_FINALIZER,
    ]


@given(
    st.dictionaries(st.sampled_from([*DEFAULTS, "gateway", "addons", "_x"]), _JSON) | _JSON,
    st.dictionaries(st.sampled_from(["conditions", "lastAttemptedRevision"]), _JSON) | _JSON,
    st.dictionaries(st.sampled_from(["host", "gateway", "services", "conditions", "externalIPsCount"]), _JSON) | _JSON,
)
def test_any_stored_values_can_be_read_and_written_back(values: Any, status: Any, findings: Any) -> None:
    annotations = {names.FINDINGS_ANNOTATION: orjson.dumps(findings).decode()}
    stored = release(metadata={"annotations": annotations}, spec={"values": values}, status=status)
    unreadable_paths(stored)
    assert to_release(to_tenant(stored), stored, SETTINGS) == stored


@given(st.dictionaries(st.sampled_from([*DEFAULTS, "gateway", "addons", "_x"]), _JSON), _SPEC)
def test_an_update_of_any_stored_values_shows_what_was_sent(values: Object, spec: Object) -> None:
    stored = release(spec={"values": values})
    written = to_release(tenant(spec=spec), stored, SETTINGS)
    assert to_tenant(written)["spec"] == tenant(spec=spec)["spec"]
    assert written["spec"]["values"].get("_x") == values.get("_x")
