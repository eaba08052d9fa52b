"""A client whose host, clock and sleep are a test's own."""

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import httpx2

from factbook.outbound.client import HttpClient
from factbook.outbound.network import Network, Resolver, Sender, resolve_host
from factbook.settings import Settings
from tests.service import Time

BASE = "https://api.example.com/v3"
LOOPBACK = ["127.0.0.0/8", "::1/128"]

Handler = Callable[[httpx2.Request], httpx2.Response]


class Host:
    """A host that answers what a test says, in turn, the last answer for ever."""

    def __init__(self, *answers: httpx2.Response | Exception | Handler) -> None:
        self.answers = list(answers)
        self.requests: list[httpx2.Request] = []

    def __call__(self, request: httpx2.Request) -> httpx2.Response:
        self.requests.append(request)
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        if isinstance(answer, Exception):
            raise answer
        return answer if isinstance(answer, httpx2.Response) else answer(request)

    @property
    def last(self) -> httpx2.Request:
        return self.requests[-1]


class Sleeps:
    """A sleep that takes no time of ours; the test's clock moves on."""

    def __init__(self, time: Time) -> None:
        self.time = time
        self.slept: list[float] = []

    async def __call__(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.time.advance(round(seconds * 1000))


class Keeper:
    """A memory that is a dictionary."""

    def __init__(self) -> None:
        self.values: dict[str, bytes] = {}

    async def get(self, key: str) -> bytes | None:
        return self.values.get(key)

    async def put(self, key: str, value: bytes, *, days: int | None = None) -> None:
        self.values[key] = value


def asking(
    host: Host, time: Time | None = None, *, base_url: str = BASE, **options: Any
) -> HttpClient:
    """A client of the host, whose sleeps are not waited for."""
    time = time or Time()
    options.setdefault("sleep", Sleeps(time))
    return HttpClient(base_url, Sender(httpx2.MockTransport(host)), clock=time, **options)


def json(status: int, value: Any, **headers: str) -> httpx2.Response:
    """An answer with a JSON body; underscores in names of headers are hyphens."""
    named = {name.replace("_", "-"): text for name, text in headers.items()}
    return httpx2.Response(status, json=value, headers=named)


def network(*, resolver: Resolver = resolve_host, **settings: Any) -> Network:
    """A network that may call this machine, unless the settings say otherwise."""
    return Network(Settings(**{"outgoing_networks": LOOPBACK, **settings}), resolver=resolver)


@asynccontextmanager
async def calling(
    base_url: str, network: Network, *, seconds: float = 5.0, most_bytes: int = 1_000_000
) -> AsyncIterator[HttpClient]:
    """A client over the real network, closed at the end."""
    sender = network.sender(base_url, seconds=seconds, most_bytes=most_bytes)
    try:
        yield HttpClient(base_url, sender)
    finally:
        await sender.aclose()


def naming(**names: str | list[str]) -> Resolver:
    """A resolver that knows these names, with underscores for dots, and no others."""
    known = {name.replace("_", "."): found for name, found in names.items()}

    async def resolve(host: str, port: int) -> list[str]:
        if host not in known:
            raise OSError("not known")
        found = known[host]
        return [found] if isinstance(found, str) else found

    return resolve
