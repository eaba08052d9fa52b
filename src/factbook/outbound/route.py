"""Route to a client's host, for another program that makes a call."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field

from factbook.outbound.answers import EMPTY, HostReply


@dataclass(frozen=True, slots=True)
class HostRoute:
    """Addresses that a program may connect to, with the credential and the trusted certificates.

    `url` is the client's base URL. `name` and `port` are those of its host, or of the proxy in
    front of it; `addresses` are its checked addresses, the only ones to connect to. `proxy` is the
    proxy's URL with its password, or empty. `authorities` are certificates in PEM form. `headers`
    authenticate the caller.
    """

    url: str
    name: str
    port: int
    addresses: Sequence[str]
    proxy: str = field(default="", repr=False)
    authorities: str = field(default="", repr=False)
    headers: Mapping[str, str] = field(default_factory=lambda: EMPTY, repr=False)


# Makes one call on a route. What the host says is a reply with the status of HTTP that stands for
# it; all else is one with a failure. It ends in time by itself, and raises nothing.
Exchange = Callable[[HostRoute], Awaitable[HostReply]]
