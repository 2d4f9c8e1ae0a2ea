"""The certificate of a server that listens on all addresses has those of the machine."""

from __future__ import annotations

import socket
import sys

import pytest

from tenant_apiserver.certificates.serving_names import interface_address, parse_if_inet6, serving_names


def unresolvable(*_: object, **__: object) -> None:
    raise socket.gaierror("unknown host")


@pytest.mark.parametrize("bind_address", ["0.0.0.0", "::"])
def test_the_address_by_which_others_are_reached_is_served_though_the_name_has_none(
    bind_address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The name of a machine often resolves to 127.0.0.1, or not at all."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(("192.0.2.1", 9))
        except OSError:
            pytest.skip("the machine has no route")
        own = probe.getsockname()[0]
    monkeypatch.setattr(socket, "getaddrinfo", unresolvable)
    found = serving_names(bind_address)
    assert {"127.0.0.1", own, socket.gethostname()} <= set(found)
    assert len(found) == len(set(found))


def test_an_address_of_its_own_is_the_only_one() -> None:
    assert serving_names("192.0.2.7") == ["192.0.2.7"]


def test_link_local_addresses_are_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    found = [(0, 0, 0, "", (each, 0)) for each in ("fe80::1%eth0", "169.254.1.1", "2001:db8::7")]
    monkeypatch.setattr(socket, "getaddrinfo", lambda *_, **__: found)
    names = serving_names("0.0.0.0")
    assert "2001:db8::7" in names
    assert not {"fe80::1%eth0", "fe80::1", "169.254.1.1"} & set(names)


@pytest.mark.skipif(sys.platform != "linux", reason="the number of the call is that of Linux")
@pytest.mark.parametrize(("name", "address"), [("lo", "127.0.0.1"), ("no-such", ""), ("a" * 300, "")])
def test_the_address_of_an_interface(name: str, address: str) -> None:
    assert interface_address(name) == address


def test_the_table_of_the_kernel_is_parsed() -> None:
    table = (
        "00000000000000000000000000000001 01 80 10 80       lo\n20010db8000000000000000000000007 02 40 00 80     eth0\n"
    )
    assert parse_if_inet6(table) == ["::1", "2001:db8::7"]
