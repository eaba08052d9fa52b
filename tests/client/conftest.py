"""The client, and a transport that answers it in place of a server."""

import httpx2
import pytest

from factbook.client import (
    Client,
)
from tests.cli.fake_server import FakeServer


@pytest.fixture
def server() -> FakeServer:
    return FakeServer()


@pytest.fixture
def client(server: FakeServer) -> Client:
    return Client("http://factbook.test", "fbk_secret", transport=httpx2.MockTransport(server))
