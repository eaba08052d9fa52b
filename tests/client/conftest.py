"""The client, and a transport that answers it in place of a server."""

from collections.abc import Callable
from typing import Any
import httpx2
import msgspec
import pytest
from factbook.client import (
    ApiError,
    AsyncClient,
    Client,
    ConnectionFailed,
    ProtocolError,
    ToolCallError,
    UnexpectedAnswer,
)
from tests.cli.fake_server import TOOLS, FakeServer, component, pushed, rehearsed, result, unable
from factbook.client import ApiError, Client, UnexpectedAnswer
from tests.cli.fake_server import FakeServer, component


@pytest.fixture
def server() -> FakeServer:
    return FakeServer()


@pytest.fixture
def client(server: FakeServer) -> Client:
    return Client("http://factbook.test", "fbk_secret", transport=httpx2.MockTransport(server))
