"""Addresses that may be called: public ones, and networks that a setting allows."""

import ipaddress
import socket
from collections.abc import Iterable
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network
from typing import Final

Address = IPv4Address | IPv6Address
Network = IPv4Network | IPv6Network

# By the registries of special-purpose addresses (RFC 6890), written out because what the standard
# library calls global differs between its versions and includes multicast and translated addresses.
_NOT_PUBLIC: Final = tuple(
    IPv4Network(network)
    for network in (
        "0.0.0.0/8",  # this network
        "10.0.0.0/8",  # private
        "100.64.0.0/10",  # shared by carriers
        "127.0.0.0/8",  # loopback
        "168.63.129.16/32",  # a cloud's own services, in a public range
        "169.254.0.0/16",  # link-local, with the clouds' metadata
        "172.16.0.0/12",  # private
        "192.0.0.0/24",  # protocol assignments
        "192.0.2.0/24",  # documentation
        "192.88.99.0/24",  # 6to4 relays
        "192.168.0.0/16",  # private
        "198.18.0.0/15",  # benchmarks
        "198.51.100.0/24",  # documentation
        "203.0.113.0/24",  # documentation
        "224.0.0.0/4",  # multicast
        "240.0.0.0/4",  # reserved, with broadcast
    )
)
# All else of IPv6 is unspecified, loopback, mapped, translated (64:ff9b::/96), unique-local,
# link-local, site-local (fec0::/10), multicast or not assigned.
_UNICAST: Final = IPv6Network("2000::/3")
_NOT_PUBLIC_6: Final = tuple(
    IPv6Network(network)
    for network in (
        "2001::/23",  # protocol assignments, with Teredo
        "2001:db8::/32",  # documentation
        "2002::/16",  # 6to4, which leads to any IPv4 address
        "3fff::/20",  # documentation
    )
)


class Guard:
    """Guard that allows public addresses and those in `networks`, strings such as `10.0.0.0/8`."""

    def __init__(self, networks: Iterable[str] = ()) -> None:
        self._networks: tuple[Network, ...] = tuple(map(ipaddress.ip_network, networks))

    def allows(self, address: str) -> bool:
        """True if a connection to the address is allowed; false if it is not an address."""
        found = _address(address)
        return found is not None and (self._is_listed(found) or _is_public(found))

    def lists(self, address: str) -> bool:
        """True if the address is in one of the setting's networks."""
        found = _address(address)
        return found is not None and self._is_listed(found)

    def _is_listed(self, address: Address) -> bool:
        return any(
            address.version == network.version and address in network for network in self._networks
        )


def literal(host: str) -> str | None:
    """The IP address that a host name spells, in any notation that systems accept, else None."""
    if found := _address(host):
        return str(found)
    try:
        # Also `127.1`, `0x7f.1` and `2130706433`.
        return str(IPv4Address(socket.inet_aton(host)))
    except (OSError, ValueError):
        return None


def _address(text: str) -> Address | None:
    try:
        found = ipaddress.ip_address(text)
    except ValueError:
        return None
    mapped = found.ipv4_mapped if isinstance(found, IPv6Address) else None
    return mapped or found


def _is_public(address: Address) -> bool:
    if isinstance(address, IPv4Address):
        return not any(address in network for network in _NOT_PUBLIC)
    return address in _UNICAST and not any(address in network for network in _NOT_PUBLIC_6)
