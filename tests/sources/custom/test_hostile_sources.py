"""Sources that ask hostile hosts, over real connections, beside one that asks a good one."""

import gzip
import subprocess
import sys
import time
import tracemalloc
from collections.abc import Callable
from typing import Any

import pytest

from factbook.sources import custom
from factbook.sources.custom import Connection, Definition
from factbook.sources.http import Client
from factbook.sources.http.network import Network
from factbook.sources.integration import Integration
from tests.service import NOON, Service, component
from tests.sources.custom.asking import Custom, definition
from tests.sources.custom.test_sources import NoFiles
from tests.sources.http.asking import naming, network
from tests.sources.http.conftest import Serve, Talk
from tests.sources.http.talking import endless, heard, saying

MB = 1_000_000
SECRET = "the-secret-of-a-connection"
HEAD = b"HTTP/1.1 200 OK\r\n"
CHUNKED = HEAD + b"transfer-encoding: chunked\r\n\r\n"
PIECE = b"10000\r\n" + b" " * 0x10000 + b"\r\n"
NAMES = ("one", "two", "three")
# A run of the good source takes some milliseconds.
SOON = 1_500
CATASTROPHE = {f"f{i}": ("string", "/(a|aa)+$/") for i in range(5)}
HTML = b"<!doctype html><title>Sign in</title>"


def whole(body: bytes, *, length: int | None = None, headers: bytes = b"") -> bytes:
    """An answer with a length, which may be wrong."""
    size = len(body) if length is None else length
    return HEAD + headers + b"content-length: %d\r\n\r\n" % size + body


def closing(answer: bytes) -> Talk:
    """Answers one request, and hangs up."""

    async def talk(reader: Any, writer: Any) -> None:
        await heard(reader)
        writer.write(answer)
        await writer.drain()

    return talk


def moved(location: str) -> bytes:
    return b"HTTP/1.1 301 Moved\r\nlocation: %s\r\ncontent-length: 0\r\n\r\n" % location.encode()


def aliases() -> bytes:
    """A few lines that stand for a thousand million values."""
    lines = [b"a0: &a0 [x, x, x, x, x, x, x, x]"]
    lines += [b"a%d: &a%d [%s]" % (i, i, b", ".join([b"*a%d" % (i - 1)] * 8)) for i in range(1, 10)]
    return b"\n".join(lines)


def everyone(reasons: dict[str, str]) -> dict[str, dict[str, str]]:
    """The same reasons for every entity."""
    return dict.fromkeys(NAMES, reasons)


class Ticking:
    """A clock that begins at the service's noon."""

    def __init__(self) -> None:
        self._began = time.monotonic()

    def __call__(self) -> int:
        return NOON + round((time.monotonic() - self._began) * 1000)


def connecting(network: Network, clock: Ticking) -> Callable[[Integration], Client]:
    """Makes clients over the network, as the service does but with narrower bounds."""

    def connect(integration: Integration) -> Client:
        url = integration.base_url
        sender = network.sender(url, seconds=0.3, most_bytes=MB)
        credential = integration.authorize(Client(url, sender, clock=clock))
        return Client(url, sender, credential=credential, clock=clock, patience=0)

    return connect


class Beside:
    """A source of a test's choice, and a good one beside it, in one collector."""

    def __init__(self, service: Service, serve: Serve) -> None:
        self._service = service
        self._serve = serve
        self.world: Custom

    async def run(
        self, source: Definition, base_url: str = "https://nowhere.test", **options: Any
    ) -> dict[str, dict[str, str]]:
        """The reasons that are stored for each entity, once both sources have run."""
        good = await self._serve(saying(whole(b'{"ok": true}')))
        connections = {
            "evil": Connection(base_url=base_url, headers={"x-token": SECRET}),
            "good": Connection(base_url=f"http://127.0.0.1:{good}"),
        }
        other = definition("http", "good", connection="good", path="/{{ metadata.name }}")
        clock = Ticking()
        self.world = Custom(
            self._service,
            connecting(network(**options), clock),
            *(custom.integration(one, connections, NoFiles()) for one in (source, other)),
            clock=clock,
        )
        entities = []
        for name in NAMES:
            entities.append(component(name))
            entities[-1]["metadata"]["description"] = "a" * 4_000 + "b"
        await self.world.run(*entities)
        await self.world.collector.stop()
        await self._look_at_the_good_one()
        return {name: (await self.world.latest(name, "evil")).reasons for name in NAMES}

    async def _look_at_the_good_one(self) -> None:
        run = await self.world.last("good")
        assert (run.state, run.covered) == ("done", len(NAMES))
        assert (run.duration or 0) < SOON
        for name in NAMES:
            assert (await self.world.latest(name, "good")).facts == {"ok": True}


@pytest.fixture
def beside(service: Service, serve: Serve) -> Beside:
    return Beside(service, serve)


def evil(**options: Any) -> Definition:
    """A source that has no time to be tried again by the collector."""
    members = {"timeout": {"seconds": 20}}
    options = {"connection": "evil", "path": "/{{ metadata.name }}"} | options
    return definition("http", "evil", members=members, **options)


TOO_LARGE = "127.0.0.1: the answer is larger than 1000000 bytes"
NOT_HTTP = "127.0.0.1: what came is not whole HTTP"
TOO_SLOW = "127.0.0.1: no answer within 0.3 seconds"
DEEP = b"[" * 10_000 + b"]" * 10_000


@pytest.mark.parametrize(
    ("talk", "source", "detail"),
    [
        pytest.param(endless(CHUNKED, PIECE), evil(), TOO_LARGE, id="endless body"),
        pytest.param(
            saying(whole(gzip.compress(b" " * 50 * MB), headers=b"content-encoding: gzip\r\n")),
            evil(),
            TOO_LARGE,
            id="gzip bomb",
        ),
        pytest.param(
            saying(whole(DEEP)), evil(), "the answer is nested more than 100 deep", id="deep JSON"
        ),
        pytest.param(
            saying(whole(b'{"ok":' * 10_000)),
            evil(),
            "the answer is nested more than 100 deep",
            id="deep JSON without an end",
        ),
        pytest.param(
            saying(whole(DEEP)),
            evil(format="yaml"),
            "the answer is nested more than 100 deep",
            id="deep YAML",
        ),
        pytest.param(
            saying(whole(aliases())),
            evil(format="yaml"),
            "the answer has an alias, which is not read",
            id="alias bomb",
        ),
        pytest.param(
            saying(whole(b"[" + b"1," * 200_000 + b"1]")),
            evil(format="yaml"),
            "the answer has more than 150000 parts",
            id="YAML that takes long",
        ),
        pytest.param(
            endless(CHUNKED, b"1\r\n \r\n", pause=0.01), evil(), TOO_SLOW, id="slow drip of a body"
        ),
        pytest.param(
            endless(HEAD, b"x: y\r\n", pause=0.01), evil(), TOO_SLOW, id="slow drip of headers"
        ),
        pytest.param(
            endless(HEAD, b"x-flood: " + b"a" * 1000 + b"\r\n"),
            evil(),
            NOT_HTTP,
            id="headers without end",
        ),
        pytest.param(
            closing(whole(b'{"ok": true}', length=100)), evil(), NOT_HTTP, id="length too large"
        ),
        pytest.param(
            saying(whole(b'{"ok": true}', length=5)),
            evil(),
            "the answer is not JSON",
            id="length too small",
        ),
        pytest.param(
            saying(whole(b'{"ok": true}', headers=b"content-length: 5\r\n")),
            evil(),
            NOT_HTTP,
            id="two lengths",
        ),
        pytest.param(saying(whole(HTML)), evil(), "the answer is not JSON", id="HTML"),
        pytest.param(closing(b""), evil(), NOT_HTTP, id="nothing"),
        pytest.param(saying(b"\0\xff" * 500 + b"\r\n\r\n"), evil(), NOT_HTTP, id="no HTTP"),
    ],
)
async def test_a_hostile_host_ends_in_a_clear_error_and_costs_no_other_source(
    beside: Beside, serve: Serve, talk: Talk, source: Definition, detail: str
) -> None:
    port = await serve(talk)
    reasons = await beside.run(source, f"http://127.0.0.1:{port}")
    assert reasons == everyone({"": f"upstream-error: {detail}"})
    run = await beside.world.last("evil")
    assert (run.state, run.failed, run.error) == ("failed", 3, f"upstream-error: {detail}")
    assert (run.duration or 0) < 10_000


async def test_a_catastrophic_expression_ends_with_its_bound(beside: Beside, serve: Serve) -> None:
    port = await serve(saying(whole(b"a" * 5_000 + b"b")))
    source = evil(format="text", facts=CATASTROPHE)
    reasons = await beside.run(source, f"http://127.0.0.1:{port}")
    slow = dict.fromkeys(CATASTROPHE, "upstream-error: the extraction took too long")
    assert reasons == everyone(slow)
    assert 1_000 < ((await beside.world.last("evil")).duration or 0) < 10_000


async def test_a_catastrophic_expression_on_entities_holds_nobody_up(beside: Beside) -> None:
    members = {"timeout": {"seconds": 20}}
    reasons = await beside.run(definition("entity", "evil", CATASTROPHE, members=members))
    assert set(reasons) == set(NAMES)
    assert set(reasons["one"]) == set(CATASTROPHE)
    assert set(reasons["one"].values()) == {"upstream-error: the extraction took too long"}


async def test_an_expression_that_takes_long_ends_with_its_bound(
    beside: Beside, serve: Serve
) -> None:
    port = await serve(saying(whole(b"[" + b"[]," * 300_000 + b"[]]")))
    source = evil(facts={"f": ("integer", "length(" + "[*]|" * 100 + "[*])")})
    reasons = await beside.run(source, f"http://127.0.0.1:{port}")
    slow = {"f": "upstream-error: the extraction took too long"}
    assert reasons == everyone(slow)


async def test_a_result_that_is_too_large_is_no_fact(beside: Beside, serve: Serve) -> None:
    port = await serve(saying(whole(b'"' + b"x" * 200_000 + b'"')))
    whole_ten_times = ", ".join(["@"] * 10)
    facts = {"one": ("string", "@"), "ten": ("object", f"[{whole_ten_times}]")}
    reasons = await beside.run(evil(facts=facts), f"http://127.0.0.1:{port}")
    large = {"ten": "upstream-error: what was extracted is too large for facts"}
    assert reasons == everyone(large)


async def test_a_redirect_is_not_followed_and_its_secret_not_carried(
    beside: Beside, serve: Serve
) -> None:
    asked: list[bytes] = []

    async def inner(reader: Any, writer: Any) -> None:
        asked.append(await heard(reader))

    private = await serve(inner)
    port = await serve(saying(moved(f"http://127.0.0.2:{private}/latest/meta-data")))
    reasons = await beside.run(evil(), f"http://127.0.0.1:{port}")
    assert reasons == everyone({"": "upstream-error: 127.0.0.1: answered 301"})
    assert asked == []


async def test_a_loop_of_redirects_is_asked_once(beside: Beside, serve: Serve) -> None:
    port = await serve(saying(moved("/one")))
    reasons = await beside.run(evil(), f"http://127.0.0.1:{port}")
    assert reasons == everyone({"": "upstream-error: 127.0.0.1: answered 301"})
    assert (await beside.world.last("evil")).calls == len(NAMES)


@pytest.mark.parametrize(
    ("base_url", "detail"),
    [
        ("https://10.1.2.3", "10.1.2.3: 10.1.2.3 is not called"),
        ("https://169.254.169.254/latest", "169.254.169.254: 169.254.169.254 is not called"),
        (
            "https://inner.example",
            "inner.example: inner.example leads to an address that is not called",
        ),
        (
            "https://mixed.example",
            "mixed.example: mixed.example leads to an address that is not called",
        ),
    ],
)
async def test_a_private_address_is_not_called_unless_a_setting_allows_it(
    beside: Beside, base_url: str, detail: str
) -> None:
    resolver = naming(
        inner_example="192.168.1.1",
        mixed_example=["8.8.8.8", "10.0.0.1"],
        **{"127_0_0_1": "127.0.0.1"},
    )
    reasons = await beside.run(evil(), base_url, resolver=resolver)
    told = f"upstream-error: {detail}; outgoing_networks can allow it"
    assert reasons == everyone({"": told})


async def test_a_name_that_changes_between_check_and_connection_leads_nowhere_else(
    beside: Beside, serve: Serve
) -> None:
    asked: list[bytes] = []

    async def talk(reader: Any, writer: Any) -> None:
        asked.append(await heard(reader))
        writer.write(whole(b'{"ok": true}', headers=b"connection: close\r\n"))
        await writer.drain()

    port = await serve(talk)
    looked_up: list[str] = []

    async def rebinding(host: str, port: int) -> list[str]:
        if host != "name.example":
            return [host]
        looked_up.append(host)
        # Each look-up says something else: what is checked is what is called.
        return ["127.0.0.1"] if len(looked_up) == 1 else ["10.0.0.1"]

    reasons = await beside.run(evil(), f"http://name.example:{port}", resolver=rebinding)
    refused = {
        "": "upstream-error: name.example: name.example leads to an address that is not called; "
        "outgoing_networks can allow it"
    }
    assert sorted(map(len, reasons.values())) == [0, 1, 1]
    assert [one for one in reasons.values() if one] == [refused, refused]
    assert (len(asked), len(looked_up)) == (1, 3)


# Memory


@pytest.mark.parametrize(
    "answer",
    [
        whole(gzip.compress(b" " * 100 * MB), headers=b"content-encoding: gzip\r\n"),
        CHUNKED + PIECE * 100,
        whole(DEEP * 40),
    ],
    ids=["gzip bomb", "endless body", "deep JSON"],
)
async def test_a_bomb_takes_no_memory(beside: Beside, serve: Serve, answer: bytes) -> None:
    port = await serve(saying(answer))
    tracemalloc.start()
    try:
        reasons = await beside.run(evil(), f"http://127.0.0.1:{port}")
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert all(one[""].startswith("upstream-error: ") for one in reasons.values())
    assert peak < 30 * MB


# What is read may be as large as it can: several at once, each with what takes most memory.
_GREEDY = """
import resource
from factbook.sources import custom
from factbook.sources.custom import taking

source = custom.parse({
    "id": "x", "title": "X",
    "handlerDefinition": {"type": "entity", "config": {"id": "x"}},
    "schema": {
        "all": {"type": "object", "extract": {"jmespath": "[@,@,@]|[*].to_string(@)"}},
        "each": {"type": "object", "extract": {"jmespath": "[*].[@,@,@,@,@,@,@,@,@,@]"}},
    },
})
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
body = b"[" + b"[]," * 690_000 + b"1]"
work = [taking._THREADS.submit(taking.from_body, source, body) for _ in range(4)]
assert {len(one.result().missing) for one in work} == {2}
print((resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) // 1024)
"""


def test_the_largest_documents_and_results_together_stay_within_memory() -> None:
    command = [sys.executable, "-c", _GREEDY]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) < 250
