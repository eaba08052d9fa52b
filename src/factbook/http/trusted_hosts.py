"""Trusted hosts, browser origins and proxies."""

import ipaddress
import re
from functools import lru_cache
from urllib.parse import urlsplit

from starlette.types import Scope

from factbook.errors import ConfigurationError, MisdirectedRequestError, NotAllowedError
from factbook.settings import Settings

_LOOPBACK = frozenset({"localhost", "127.0.0.1", "::1"})
# A host with or without its port; an address of IPv6 stands in brackets.
_HOST = re.compile(r"(?:\[([0-9a-f:.]+)\]|([^\[\]:]*))(?::[0-9]*)?", re.ASCII)

Network = ipaddress.IPv4Network | ipaddress.IPv6Network


class Hosts:
    """Hosts that this server answers for, and browser origins that may call it.

    A page of another site can point a host name of its own here (DNS rebinding), which browsers
    then treat as the same origin. It cannot use a foreign name or a bare address for that. So the
    names in the settings are accepted and, if none are listed, addresses too, which health checks
    and people trying the service use. Answers are shared with the origins of the setting, which
    browsers keep from other origins.
    """

    def __init__(self, settings: Settings) -> None:
        self.shared_with = frozenset(origin.rstrip("/") for origin in settings.allowed_origins)
        origins = set(self.shared_with)
        names = {name.lower() for name in settings.allowed_hosts}
        self._addresses = not names and settings.host not in _LOOPBACK
        if not names:
            names |= _LOOPBACK
        if settings.public_url:
            own = urlsplit(settings.public_url)
            origins.add(f"{own.scheme}://{own.netloc}")
            names.add(own.hostname or "")
        self._origins = frozenset(origins)
        self._names = frozenset(names | {name.strip("[]") for name in names})
        # Names come from clients: what is remembered is bounded.
        self._allows = lru_cache(maxsize=256)(self._is_allowed)

    def check(self, host: bytes | None, origin: bytes | None, *, probe: bool = False) -> None:
        """Raise MisdirectedRequestError or NotAllowedError, naming the setting that decides.

        A `probe` may use any address: health checks know no name.
        """
        if not self._allows(host, probe or self._addresses):
            raise MisdirectedRequestError(
                "This server does not answer for the host of this request. Set public_url to the "
                "address that clients use, or name the host in allowed_hosts."
            )
        if origin is not None and not self._allows_origin(origin.decode("latin-1"), host or b""):
            raise NotAllowedError(
                "The origin of this request may not call this server; "
                "the setting allowed_origins names those that may."
            )

    def _is_allowed(self, host: bytes | None, addresses: bool) -> bool:
        if host is None:  # as programs of HTTP/1.0 ask, and no browser
            return addresses
        text = host.decode("latin-1").lower()
        found = _HOST.fullmatch(text)
        name = (found[1] or found[2]) if found else ""
        return bool({text, name} & self._names) or (
            addresses and (name == "localhost" or _is_address(name))
        )

    def _allows_origin(self, origin: str, host: bytes) -> bool:
        own = host.decode("latin-1").lower()
        try:
            return origin in self._origins or urlsplit(origin).netloc.lower() == own
        except ValueError:  # not an address at all
            return False


class Proxies:
    """Proxies trusted to report a client's address."""

    def __init__(self, settings: Settings) -> None:
        try:
            self._trusted: list[Network] = [
                ipaddress.ip_network(text, strict=False) for text in settings.trusted_proxies
            ]
        except ValueError as error:
            raise ConfigurationError(f"trusted_proxies: {error}.") from None

    def client(self, peer: str, forwarded_for: str | None) -> str:
        """The client's address: the peer's own, or the one reported by trusted proxies.

        Each proxy appends the address of its peer: the last one that is no trusted proxy is the
        client's, and anything before it is made up by the client.
        """
        if not self._trusted or forwarded_for is None:
            return peer
        address = peer
        for hop in reversed(forwarded_for.split(",")):
            if not self._is_trusted(address):
                break
            address = _without_port(hop.strip())
        return address

    def _is_trusted(self, text: str) -> bool:
        try:
            address = ipaddress.ip_address(text)
        except ValueError:
            return False
        return any(address in network for network in self._trusted)


def client_address(scope: Scope, proxies: Proxies) -> str:
    """The address that a request comes from."""
    client = scope.get("client")
    # Proxies add to the one header or add one of their own.
    hops = [text for name, text in scope["headers"] if name == b"x-forwarded-for"]
    forwarded_for = b",".join(hops).decode("latin-1") if hops else None
    return proxies.client(client[0] if client else "", forwarded_for)


def _is_address(name: str) -> bool:
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True


def _without_port(hop: str) -> str:
    """Strip the port that some proxies add: `192.0.2.1:5000`, `[2001:db8::1]:5000`."""
    if hop.startswith("["):
        return hop[1:].partition("]")[0]
    return hop.partition(":")[0] if hop.count(":") == 1 else hop
