"""Where Git connects to: checked addresses alone, through the proxy, to who is believed."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from factbook.outbound.network import Network, Resolver
from factbook.outbound.outcomes import Outcome
from tests.fakes.faults import saying
from tests.fakes.git import FakeGit, hosted
from tests.integrations.git.asking import APP, EVERYTHING, TOKEN, Collector, full
from tests.integrations.git.conftest import Make
from tests.outbound.asking import naming, network
from tests.outbound.talking import Authority, tunnel

HOST = "git.example.org"
Ask = Callable[..., Awaitable[Collector]]


@pytest.fixture
def served(guarded: FakeGit) -> Iterator[int]:
    """The port of a host without encryption that wants a token, and has a full repository."""
    full(guarded)
    with hosted(guarded) as port:
        yield port


@pytest.fixture
def encrypted(guarded: FakeGit, tmp_path: Path) -> Iterator[tuple[int, str]]:
    """The port of one with encryption, by a private authority, and that authority's file."""
    full(guarded)
    authority = Authority(tmp_path)
    authority.server(HOST)
    with hosted(guarded, certificate=tmp_path / f"{HOST}.pem") as port:
        yield port, str(authority.file)


@pytest.fixture
async def ask(guarded: FakeGit) -> AsyncIterator[Ask]:
    """Asks an address for the repository."""
    collectors = []

    async def ask(url: str, through: Network) -> Collector:
        collector = Collector(guarded, url, through=through, token=TOKEN)
        collectors.append(collector)
        return collector

    yield ask
    for collector in collectors:
        await collector.client.aclose()


LOOPBACK = naming(git_example_org="127.0.0.1")


async def test_git_connects_to_the_address_that_was_checked(served: int, ask: Ask) -> None:
    # Nobody else knows that name.
    collector = await ask(f"http://{HOST}:{served}", network(resolver=LOOPBACK))
    assert (await collector.one(APP)).values == EVERYTHING


async def test_of_several_addresses_one_that_answers_is_enough(served: int, ask: Ask) -> None:
    resolver = naming(git_example_org=["::1", "127.0.0.77", "127.0.0.1"])
    collector = await ask(f"http://{HOST}:{served}", network(resolver=resolver))
    assert (await collector.one(APP)).values == EVERYTHING


@pytest.mark.parametrize(
    ("url", "resolver", "allowed"),
    [
        ("https://127.0.0.1:{port}", LOOPBACK, []),
        ("https://2130706433:{port}", LOOPBACK, []),
        ("https://[::1]:{port}", LOOPBACK, []),
        (f"https://{HOST}:{{port}}", LOOPBACK, []),
        (f"https://{HOST}", naming(git_example_org=["8.8.8.8", "169.254.169.254"]), []),
        (f"http://{HOST}", naming(git_example_org="8.8.8.8"), ["127.0.0.0/8"]),
    ],
)
async def test_an_address_that_is_not_allowed_is_not_called(
    served: int, ask: Ask, guarded: FakeGit, url: str, resolver: Resolver, allowed: list[str]
) -> None:
    through = network(resolver=resolver, outgoing_networks=allowed)
    collector = await ask(url.format(port=served), through)
    found = await collector.one(APP)
    assert found.missing[""].outcome is Outcome.TRANSIENT
    assert "outgoing_networks can allow it" in found.missing[""].detail
    assert guarded.requests == {}
    assert collector.client.health.last_error == found.missing[""].detail


async def test_a_name_that_comes_to_lead_inside_is_refused_at_the_next_command(
    served: int, ask: Ask, guarded: FakeGit
) -> None:
    answers = iter([["127.0.0.1"], ["127.0.0.1", "10.0.0.1"]])

    async def rebinding(host: str, port: int) -> list[str]:
        return next(answers)

    collector = await ask(f"http://{HOST}:{served}", network(resolver=rebinding))
    found = await collector.one(APP)
    assert "outgoing_networks can allow it" in found.missing[""].detail
    assert guarded.requests == {"refs": 1, "ls-refs": 1}


@pytest.mark.spec("sources.credential-stays-with-its-host")
@pytest.mark.parametrize("kind", ["refs", "ls-refs"])
async def test_a_redirect_is_not_followed_to_another_host(
    guarded: FakeGit, make: Make, tmp_path: Path, kind: str
) -> None:
    full(guarded)
    other = FakeGit(tmp_path / "repositories")
    with hosted(other) as port:
        location = f"http://127.0.0.1:{port}/{APP}/info/refs?service=git-upload-pack"
        guarded.fail(kind, saying(None, 302, {"location": location}), times=10)
        found = await make(guarded, token=TOKEN).one(APP)
    assert found.missing[""].detail == "127.0.0.1: answered 302"
    assert other.requests == {}


@pytest.mark.slow
async def test_a_private_authority_is_believed_when_the_setting_names_it(
    encrypted: tuple[int, str], ask: Ask, guarded: FakeGit
) -> None:
    port, file = encrypted
    url = f"https://{HOST}:{port}"
    trusting = network(resolver=LOOPBACK, outgoing_ca_file=file)
    assert (await (await ask(url, trusting)).one(APP)).values == EVERYTHING
    guarded.requests.clear()
    found = await (await ask(url, network(resolver=LOOPBACK))).one(APP)
    assert "its certificate is not trusted; outgoing_ca_file" in found.missing[""].detail
    other = await ask(f"https://localhost:{port}", network(outgoing_ca_file=file))
    assert "its certificate is not trusted" in (await other.one(APP)).missing[""].detail
    assert guarded.requests == {}


@pytest.mark.slow
async def test_git_goes_through_the_proxy_which_alone_is_looked_up(
    encrypted: tuple[int, str], ask: Ask
) -> None:
    port, file = encrypted
    asked: list[bytes] = []
    talk = tunnel(asked, port)

    async def talked(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(ConnectionError, asyncio.IncompleteReadError):
            await talk(reader, writer)
        writer.close()

    server = await asyncio.start_server(talked, "127.0.0.1", 0)
    proxy = f"http://me:secret@proxy.example:{server.sockets[0].getsockname()[1]}"
    through = network(
        resolver=naming(proxy_example="127.0.0.1"), outgoing_ca_file=file, outgoing_proxy=proxy
    )
    assert (await (await ask(f"https://{HOST}", through)).one(APP)).values == EVERYTHING
    server.close()
    assert {head.split(b"\r\n")[0] for head in asked} == {f"CONNECT {HOST}:443 HTTP/1.1".encode()}
    assert all(b"Proxy-Authorization: Basic bWU6c2VjcmV0" in head for head in asked)


async def test_what_the_environment_says_is_not_heeded(
    served: int, ask: Ask, guarded: FakeGit, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    instead = '[url "http://127.0.0.1:1/"]\n\tinsteadOf = http://'
    (tmp_path / ".gitconfig").write_text(instead)
    (tmp_path / ".netrc").write_text("machine 127.0.0.1 login a password b")
    marker = tmp_path / "was-here"
    for name, value in {
        "HOME": str(tmp_path),
        "http_proxy": "http://127.0.0.1:1",
        "ALL_PROXY": "http://127.0.0.1:1",
        "GIT_DIR": str(tmp_path),
        "GIT_CONFIG_COUNT": "1",
        "GIT_CONFIG_KEY_0": "http.proxy",
        "GIT_CONFIG_VALUE_0": "http://127.0.0.1:1",
        "GIT_ASKPASS": f"/usr/bin/touch {marker}",
        "GIT_TRACE": str(marker),
    }.items():
        monkeypatch.setenv(name, value)
    through = network()
    url = f"http://127.0.0.1:{served}"
    assert (await (await ask(url, through)).one(APP)).values == EVERYTHING
    guarded.proofs.clear()
    nobody = Collector(guarded, url, through=through)
    assert (await nobody.one(APP)).missing[""].outcome is Outcome.REFUSED
    assert guarded.proofs == {"": 1}
    assert not marker.exists()
