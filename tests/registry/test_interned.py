"""Strings that occur in several indexes."""

from __future__ import annotations

from registry.interned import interned
from registry.rbac.role_index import make_binding_key, parse_binding


def _copy(text: str) -> str:
    """An equal string that is another object."""
    return "".join([text[:1], text[1:]])


def test_equal_names_are_one_object() -> None:
    name = "tenant-of-a-test"
    assert interned(_copy(name)) is interned(_copy(name))


def test_a_long_text_is_not_retained() -> None:
    text = "x" * 1025
    assert interned(_copy(text)) == text
    assert interned(_copy(text)) is not interned(_copy(text))


def test_bindings_share_their_subjects_unless_these_are_long() -> None:
    short, long = (
        [parse_binding(_binding(name, subject)) for name in ("one", "other")] for subject in ("reader", "x" * 2000)
    )
    for bindings, shared in ((short, True), (long, False)):
        one, other = bindings
        assert one is not None
        assert other is not None
        assert (one.key, one.subjects) == (make_binding_key("a", "one"), other.subjects)
        assert (one.subjects[0] is other.subjects[0]) is shared


def _binding(name: str, subject: str) -> dict[str, object]:
    return {
        "metadata": {"namespace": "a", "name": name},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "view"},
        "subjects": [{"kind": "User", "name": subject}],
    }
