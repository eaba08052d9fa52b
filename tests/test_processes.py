"""Ports that are reserved for servers."""

import socket
import sys

import pytest

from tests.processes import free_port

pytestmark = pytest.mark.skipif(
    sys.platform != "linux", reason="only Linux reserves ports this way"
)


def test_a_reserved_port_is_taken_for_everybody_but_a_server() -> None:
    port = free_port()
    with socket.socket() as other, pytest.raises(OSError, match="in use"):
        other.bind(("127.0.0.1", port))
    with (
        socket.create_server(("127.0.0.1", port)),
        socket.create_connection(("127.0.0.1", port), timeout=30) as client,
    ):
        assert client.getpeername()[1] == port


def test_nothing_answers_on_a_reserved_port() -> None:
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.1", free_port()), timeout=30)
