"""Trusted hosts, browser origins and proxies."""

import ipaddress
from functools import lru_cache
from urllib.parse import urlsplit

from factbook.errors import ConfigurationError, MisdirectedRequestError, NotAllowedError
from factbook.settings import Settings

_LOOPBACK = frozenset({"localhost", "127.0.0.1", "::1", "[::1]"})

Network = ipaddress.IPv4Network | ipaddress.IPv6Network


class Hosts:
    """Hosts that this server answers for, and browser origins that may call it.

    A page of another site can point a host name of its own here (DNS rebinding), which browsers
    then treat as the same origin. It cannot use a foreign name or a bare address for that. So the
    names in the settings are accepted and, if none are listed, addresses too, which health checks
    and people trying the service use.
    """

    def __init__(self, settings: Settings) -> None:
        origins = {origin.rstrip("/") for origin in settings.allowed_origins}
        public = None
        if settings.public_url:
            own = urlsplit(settings.public_url)
            origins.add(f"{own.scheme}://{own.netloc}")
            public = own.hostname
        self._origins = frozenset(origins)
        names = {name.lower() for name in settings.allowed_hosts}
        if not names and settings.host in _LOOPBACK:
            names = set(_LOOPBACK)
        if names and public:
            names.add(public)
        self._names = frozenset(names)
        # Names come from clients: what is remembered is bounded.
        self._allows = lru_cache(maxsize=256)(self._is_allowed)

    def check(self, host: bytes | None, origin: bytes | None) -> None:
        """Raise MisdirectedRequestError or NotAllowedError, naming the setting that decides."""
        if self._names and not self._allows(host or b""):
            raise MisdirectedRequestError(
                "This server does not answer for the host of this request; "
                "the setting allowed_hosts names those that it answers for."
            )
        if origin is not None and not self._allows_origin(origin.decode("latin-1"), host or b""):
            raise NotAllowedError(
                "The origin of this request may not call this server; "
                "the setting allowed_origins names those that may."
            )

    def _is_allowed(self, host: bytes) -> bool:
        name = host.decode("latin-1").lower()
        return name in self._names or name.rpartition(":")[0] in self._names

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


def _without_port(hop: str) -> str:
    """Strip the port that some proxies add: `192.0.2.1:5000`, `[2001:db8::1]:5000`."""
    if hop.startswith("["):
        return hop[1:].partition("]")[0]
    return hop.partition(":")[0] if hop.count(":") == 1 else hop
