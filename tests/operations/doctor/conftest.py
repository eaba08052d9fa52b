"""The doctor, asked about a database as `factbook doctor` does it."""

import os
from collections.abc import Awaitable, Callable
from typing import Any

import httpx2
import pytest

from factbook.datasources.clients import Connect
from factbook.operations.doctor.database import Finding
from factbook.operations.doctor.examination import examine
from tests.conftest import TOKEN_KEY
from tests.service import NOON

Look = Callable[..., Awaitable[list[Finding]]]


def nobody(_: httpx2.Request) -> httpx2.Response:
    raise httpx2.ConnectError("Connection refused")


@pytest.fixture(autouse=True)
def bare(monkeypatch: pytest.MonkeyPatch, tmp_path: Any) -> None:
    """No settings but those of the test."""
    for name in [name for name in os.environ if name.startswith("FACTBOOK_")]:
        monkeypatch.delenv(name)
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def look(database_url: str) -> Look:
    """What the doctor finds, with the settings given, on the test's database."""

    async def found(
        *,
        connect: Connect | None = None,
        answer: Callable[[httpx2.Request], httpx2.Response] = nobody,
        quick: bool = False,
        now: int = NOON,
        **settings: Any,
    ) -> list[Finding]:
        flags = {"database_url": database_url, "token_key": TOKEN_KEY, **settings}
        transport = httpx2.MockTransport(answer)
        examined = examine(
            flags,
            lambda _: None,
            quick=quick,
            clock=lambda: now,
            connect=connect,
            transport=transport,
        )
        return [finding async for finding in examined]

    return found


def of(found: list[Finding], topic: str) -> list[tuple[str, str]]:
    """State and text of what was found of a topic."""
    return [(one.state, one.what) for one in found if one.topic == topic]


def only(found: list[Finding], topic: str) -> Finding:
    """The one thing that is not well of a topic; it says what to do."""
    [one] = [one for one in found if one.topic == topic and one.state != "ok"]
    assert one.advice
    return one


def is_well(found: list[Finding], topic: str) -> bool:
    states = [one.state for one in found if one.topic == topic]
    return bool(states) and set(states) == {"ok"}
