"""Copies of Tenants in etcd."""

from __future__ import annotations

import pytest

from benchmarks.copies import TenantCopies

_ROOT_UID = b"00000000-1111-2222-3333-444444444444"
_OWN_UID = b"fffffffe-aaaa-bbbb-cccc-dddddddddddd"
_NAMESPACE = b"/registry/namespaces/tenant-b00001"
_DATA = {
    b"/registry/namespaces/tenant-root": b"tenant-root " + _ROOT_UID,
    _NAMESPACE: b"\x0etenant-b00001 \x24" + _OWN_UID + b" owner \x24" + _ROOT_UID,
    b"/registry/events/tenant-root/tenant-b00001.18a": b"an event of b00001",
    b"/registry/configmaps/tenant-root/b000012": b"a longer number",
}


def test_names_and_own_uids_of_a_copy_are_new_and_uids_of_others_stay() -> None:
    [(key, value)] = TenantCopies(_DATA, 2).copy(3)
    assert key == b"/registry/namespaces/tenant-b00007"
    # 0xfffffffe + 3 * 0x9e3779b1, without what does not fit into 32 bits
    assert value == b"\x0etenant-b00007 \x24daa66d11-aaaa-bbbb-cccc-dddddddddddd owner \x24" + _ROOT_UID
    assert len(value) == len(_DATA[_NAMESPACE])


def test_different_copies_have_different_keys_and_uids() -> None:
    copies = TenantCopies(_DATA, 2)
    found = [pair for number in range(1, 50) for pair in copies.copy(number)]
    assert len({key for key, _ in found}) == len({value for _, value in found}) == 49


def test_only_keys_of_the_first_tenants_are_copied_and_no_events() -> None:
    assert TenantCopies(_DATA, 2).keys() == [_NAMESPACE]
    assert TenantCopies(_DATA, 1).keys() == []


def test_names_do_not_grow_longer() -> None:
    with pytest.raises(ValueError, match="five digits"):
        list(TenantCopies(_DATA, 2).copy(50_000))
