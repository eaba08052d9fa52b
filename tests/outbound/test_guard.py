"""Which addresses may be called."""

import ipaddress
import socket

import pytest
from hypothesis import given
from hypothesis import strategies as st

from factbook.errors import ConfigurationError
from factbook.outbound.network import Guard, normalize_literal_address
from factbook.settings import Settings

V4 = st.ip_addresses(v=4).map(ipaddress.IPv4Address)
V6 = st.ip_addresses(v=6).map(ipaddress.IPv6Address)


def test_what_is_not_a_public_address_is_not_called() -> None:
    addresses = [
        "0.0.0.0",  # noqa: S104 - nothing is bound to it
        "10.1.2.3",
        "100.64.0.1",
        "100.100.100.200",
        "127.0.0.1",
        "127.255.255.254",
        "168.63.129.16",
        "169.254.169.254",
        "172.16.0.1",
        "172.31.255.255",
        "192.0.0.192",
        "192.168.1.1",
        "198.18.0.1",
        "224.0.0.1",
        "239.255.255.255",
        "255.255.255.255",
        "::",
        "::1",
        "::7f00:1",
        "::ffff:127.0.0.1",
        "::ffff:10.0.0.1",
        "64:ff9b::7f00:1",
        "64:ff9b::a00:1",
        "64:ff9b:1::1",
        "100::1",
        "2001::1",
        "2001:db8::1",
        "2002:7f00:1::",
        "2002:808:808::1",
        "3fff::1",
        "5f00::1",
        "fc00::1",
        "fd00:ec2::254",
        "fe80::1",
        "fe80::1%eth0",
        "fec0::1",
        "ff02::1",
        "",
        "example.com",
        "2130706433",
    ]
    assert [address for address in addresses if Guard().allows(address)] == []


def test_public_addresses_are_called() -> None:
    addresses = ["8.8.8.8", "140.82.112.6", "::ffff:8.8.8.8", "2606:50c0:8000::153", "2a00:1450::1"]
    assert [address for address in addresses if not Guard().allows(address)] == []


@pytest.mark.slow
@given(V4 | V6)
def test_every_address_that_is_called_is_global_and_for_one_host(
    address: ipaddress.IPv4Address | ipaddress.IPv6Address,
) -> None:
    if Guard().allows(str(address)):
        found = getattr(address, "ipv4_mapped", None) or address
        assert found.is_global
        assert not found.is_multicast
        assert not found.is_reserved
        assert getattr(found, "sixtofour", None) is None
        assert getattr(found, "teredo", None) is None


@pytest.mark.slow
@given(V4)
def test_an_address_of_version_4_that_is_refused_is_so_for_a_reason(
    address: ipaddress.IPv4Address,
) -> None:
    known = [ipaddress.IPv4Network("168.63.129.16/32"), ipaddress.IPv4Network("192.88.99.0/24")]
    if not Guard().allows(str(address)):
        special = not address.is_global or address.is_multicast or address.is_reserved
        assert special or any(address in network for network in known) or address in _ASSIGNED


# Parts of 192.0.0.0/24 that newer versions of the standard library call global.
_ASSIGNED = ipaddress.IPv4Network("192.0.0.0/24")


@pytest.mark.slow
@given(V4)
def test_a_mapped_address_is_called_when_the_one_inside_is(address: ipaddress.IPv4Address) -> None:
    assert Guard().allows(f"::ffff:{address}") == Guard().allows(str(address))


@pytest.mark.slow
@given(V4, st.integers(8, 32), V4)
def test_a_listed_network_allows_its_addresses_and_no_others(
    inside: ipaddress.IPv4Address, length: int, other: ipaddress.IPv4Address
) -> None:
    network = ipaddress.IPv4Network((inside, length), strict=False)
    guard = Guard([str(network)])
    assert guard.allows(str(inside))
    assert guard.lists(str(inside))
    assert guard.lists(str(other)) == (other in network)
    assert guard.allows(str(other)) == (other in network or Guard().allows(str(other)))


@pytest.mark.slow
@given(V4)
def test_an_address_is_recognised_in_every_form_that_systems_read(
    address: ipaddress.IPv4Address,
) -> None:
    number = int(address)
    for form in (str(address), str(number), hex(number), f"{number >> 24}.{number & 0xFFFFFF}"):
        assert (
            normalize_literal_address(form)
            == socket.inet_ntoa(socket.inet_aton(form))
            == str(address)
        )


def test_names_are_not_addresses() -> None:
    assert [
        normalize_literal_address(name) for name in ("localhost", "example.com", "1.example", "")
    ] == [None] * 4


@pytest.mark.parametrize("network", ["10.0.0.1/8", "10.0.0.0/33", "somewhere", ""])
def test_a_setting_that_names_no_network_is_refused(network: str) -> None:
    with pytest.raises(ConfigurationError, match="outgoing_networks"):
        Settings(outgoing_networks=[network])


def test_a_proxy_that_is_not_of_http_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="outgoing_proxy"):
        Settings(outgoing_proxy="socks5://proxy.example.com")
