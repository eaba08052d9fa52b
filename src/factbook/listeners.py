"""Listening sockets of the service, bound before it starts any other work."""

import errno
import os
import socket
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import Final

from factbook.errors import UnavailableError

# Connections that may wait for a process to accept them.
_BACKLOG: Final = 2048
_ADVICE: Final = {
    errno.EADDRINUSE: (
        "is in use",
        "Another process listens there, perhaps another Factbook: stop it, or choose another port "
        "(--port, FACTBOOK_PORT). `ss -ltnp` names the process.",
    ),
    errno.EACCES: (
        "needs more rights than this user has",
        "Choose a port from 1024 on (--port, FACTBOOK_PORT), with a proxy before it.",
    ),
    errno.EADDRNOTAVAIL: (
        "is no address of this machine",
        "Choose one that is (--host, FACTBOOK_HOST): 0.0.0.0 for all of them.",
    ),
}


@contextmanager
def bound(host: str, port: int) -> Iterator[list[socket.socket]]:
    """Bind sockets to every address of the host, without listening; closes them at the end.

    Raises UnavailableError, with advice as a note, when an address can't be bound.
    """
    with ExitStack() as stack:
        yield [stack.enter_context(_bound(*each, port)) for each in _addresses(host, port)]


def listen(sockets: Sequence[socket.socket]) -> None:
    """Start listening; clients wait until a process accepts them. Raises as `bound` does."""
    for each in sockets:
        try:
            # If two processes bind at the same moment, the second one fails only here.
            each.listen(_BACKLOG)
        except OSError as error:
            raise _told(shown(each), error) from error


def shown(bound: socket.socket) -> str:
    """Format the address of a socket: `127.0.0.1:8000`, `[::1]:8000`."""
    host, port = bound.getsockname()[:2]
    return _address(host, port)


def _addresses(host: str, port: int) -> list[tuple[socket.AddressFamily, str]]:
    try:
        found = socket.getaddrinfo(
            host or None, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )
    except OSError as error:
        told = UnavailableError(f"Cannot listen on {host}: {error.strerror}.")
        told.add_note("Is the name right (--host, FACTBOOK_HOST)?")
        raise told from error
    return list(dict.fromkeys((family, str(address[0])) for family, *_, address in found))


def _bound(family: socket.AddressFamily, host: str, port: int) -> socket.socket:
    made = socket.socket(family)
    try:
        # Allows binding a port right after its last connections closed.
        made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if family == socket.AF_INET6:
            made.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        made.bind((host, port))
    except OSError as error:
        made.close()
        raise _told(_address(host, port), error) from error
    return made


def _told(address: str, error: OSError) -> UnavailableError:
    number = error.errno or 0
    reason, advice = _ADVICE.get(number, (f"cannot be used: {os.strerror(number)}", ""))
    told = UnavailableError(f"Cannot listen: {address} {reason}.")
    if advice:
        told.add_note(advice)
    return told


def _address(host: str, port: int) -> str:
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
