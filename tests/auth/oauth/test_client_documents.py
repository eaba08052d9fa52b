"""Metadata documents of clients: where they are fetched, and what of them is believed."""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from factbook.auth.oauth import clients
from factbook.auth.oauth.clients import ClientDocuments, GuardedDocumentFetch
from factbook.auth.oauth.protocol import OAuthError
from factbook.clock import HOUR, MINUTE
from factbook.errors import UnavailableError
from factbook.outbound.outcomes import HostReply
from factbook.settings import Settings
from tests.api.authorizing import CALLBACK, CLIENT, Documents
from tests.outbound.conftest import Serve, Talk
from tests.outbound.talking import Authority, endless, heard, saying
from tests.service import Time

HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n"


def over_the_network(**settings: Any) -> ClientDocuments:
    """Documents by the way that the service has."""
    return ClientDocuments(GuardedDocumentFetch(Settings(**settings)), Time())


async def refusal(documents: ClientDocuments, client: str) -> str:
    with pytest.raises(OAuthError) as raised:
        await documents.get(client)
    assert raised.value.code == "invalid_client"
    return raised.value.message


async def test_no_document_is_fetched_from_an_inner_address(
    serve: Serve, subtests: pytest.Subtests
) -> None:
    asked = 0

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal asked
        asked += 1

    port = await serve(talk)
    for host, reason in {
        "127.0.0.1": "outgoing_networks",
        "localhost": "outgoing_networks",
        "[::1]": "outgoing_networks",
        "10.0.0.1": "outgoing_networks",
        "169.254.169.254": "outgoing_networks",
        "0.0.0.0": "outgoing_networks",  # noqa: S104 - called, not bound
        "[64:ff9b::a00:1]": "outgoing_networks",
        "[fd00::1]": "outgoing_networks",
        # Browsers read these as 127.0.0.1.
        "2130706433": "not the address of a document",
        "0x7f.1": "not the address of a document",
        "[::ffff:127.0.0.1]": "not the address of a document",
    }.items():
        with subtests.test(host=host):
            told = await refusal(over_the_network(), f"https://{host}:{port}/client.json")
            assert reason in told
            assert not asked


async def test_only_an_address_of_a_document_is_fetched(subtests: pytest.Subtests) -> None:
    for client in [
        "http://agent.example.com/client.json",
        "http://127.0.0.1/client.json",
        "https://agent.example.com",
        "https://agent.example.com/",
        "https://agent.example.com/client.json#a",
        "https://user@agent.example.com/client.json",
        "https://agent.example.com/../client.json",
        "https://agent.example.com/./client.json",
        "https://agent.example.com:99999/client.json",
        "https:///client.json",
        "https://agent.example.com/cl\u0131ent.json",
        "https://agent.example.com/client.json\n",
        "https://agent.example.com/" + "x" * 500,
        "ftp://agent.example.com/client.json",
        "client",
    ]:
        with subtests.test(client=client):
            fetch = Documents(client)
            assert "not the address of a document" in await refusal(
                ClientDocuments(fetch, Time()), client
            )
            assert not fetch.asked


async def served(serve: Serve, folder: Path, talk: Talk) -> tuple[ClientDocuments, str]:
    """Documents of a host of this machine that talks so, and the address of one."""
    authority = Authority(folder)
    port = await serve(talk, tls=authority.server("localhost"))
    settings = {"outgoing_networks": ["127.0.0.0/8", "::1/128"]}
    documents = over_the_network(outgoing_ca_file=str(authority.file), **settings)
    return documents, f"https://localhost:{port}/client.json"


async def test_a_document_is_fetched_over_tls(serve: Serve, tmp_path: Path) -> None:
    asked: list[bytes] = []

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        asked.append(await heard(reader))
        host = asked[-1].lower().partition(b"host: ")[2].partition(b"\r\n")[0].decode()
        client = f"https://{host}/client.json"
        body = json.dumps({"client_id": client, "redirect_uris": [CALLBACK]}).encode()
        writer.write(HEAD + b"content-length: %d\r\n\r\n" % len(body) + body)
        await writer.drain()

    documents, client = await served(serve, tmp_path, talk)
    assert (await documents.get(client)).redirect_uris == (CALLBACK,)
    assert asked[0].startswith(b"GET /client.json HTTP/1.1\r\n")
    assert b"cookie" not in asked[0].lower()
    assert b"authorization" not in asked[0].lower()


async def test_a_document_of_ten_megabytes_is_not_read_to_its_end(
    serve: Serve, tmp_path: Path
) -> None:
    said = 0

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal said
        await heard(reader)
        writer.write(HEAD + b"content-length: 10000000\r\n\r\n")
        while said < 10_000_000:
            writer.write(b" " * 65_536)
            said += 65_536
            await writer.drain()

    documents, client = await served(serve, tmp_path, talk)
    assert "larger than 65536 bytes" in await refusal(documents, client)
    # What a connection buffers is said, too.
    assert said < 9_000_000


async def test_a_host_that_is_slow_keeps_nobody_waiting(
    serve: Serve, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(clients, "MOST_SECONDS", 0.5)
    dripping = endless(HEAD + b"content-length: 5000\r\n\r\n", b" ", pause=0.01)
    documents, client = await served(serve, tmp_path, dripping)
    assert "no answer within 0.5 seconds" in await refusal(documents, client)


@pytest.mark.slow
async def test_a_redirect_is_not_followed_and_a_fault_is_told(
    serve: Serve, tmp_path: Path, subtests: pytest.Subtests
) -> None:
    where = b"location: https://elsewhere.example.com/client.json\r\n"
    for status in [301, 302, 307, 404, 500]:
        with subtests.test(status=status):
            talk = saying(b"HTTP/1.1 %d X\r\n" % status + where + b"content-length: 0\r\n\r\n")
            documents, client = await served(serve, tmp_path, talk)
            assert f"it answered {status}" in await refusal(documents, client)


async def test_a_document_that_does_not_fit_is_refused_without_quoting_it(
    subtests: pytest.Subtests,
) -> None:
    cases: list[tuple[dict[str, Any], str]] = [
        ({"client_id": "https://other.example.com/client.json"}, "about another client"),
        ({"client_id": None}, "cannot be read"),
        ({"redirect_uris": []}, "cannot be read"),
        ({"redirect_uris": ["https://a.example"] * 51}, "cannot be read"),
        ({"redirect_uris": [7]}, "cannot be read"),
        ({"redirect_uris": ["http://agent.example.com/callback"]}, "neither https, nor loopback"),
        ({"redirect_uris": ["javascript:alert(1)"]}, "neither https, nor loopback"),
        ({"redirect_uris": ["file:///callback"]}, "neither https, nor loopback"),
        ({"client_secret": "a secret that everybody knows"}, "prove who it is"),
        ({"token_endpoint_auth_method": "client_secret_post"}, "prove who it is"),
        ({"token_endpoint_auth_method": "private_key_jwt"}, "prove who it is"),
        ({"token_endpoint_auth_methods_supported": ["none"], "client_secret": "x"}, "prove who"),
    ]
    for changed, message in cases:
        with subtests.test(changed=changed):
            fetch = Documents()
            fetch.put(**changed)
            assert message in await refusal(ClientDocuments(fetch, Time()), CLIENT)


async def test_a_client_that_can_do_without_proof_is_accepted(subtests: pytest.Subtests) -> None:
    for changed in (
        {"token_endpoint_auth_method": None, "client_name": None},
        {
            "token_endpoint_auth_method": "private_key_jwt",
            "token_endpoint_auth_methods_supported": ["none", "private_key_jwt"],
        },
    ):
        with subtests.test(changed=changed):
            fetch = Documents()
            fetch.put(**changed)
            assert (await ClientDocuments(fetch, Time()).get(CLIENT)).redirect_uris == (CALLBACK,)


async def test_what_is_no_document_is_refused(subtests: pytest.Subtests) -> None:
    for body in [b"", b"{", b"[]", b"\xff", b"[" * 60_000, b'{"client_id": "\xff"}']:
        with subtests.test(body=body):
            fetch = Documents()
            fetch.replies[CLIENT] = HostReply(200, body=body)
            assert "cannot be read" in await refusal(ClientDocuments(fetch, Time()), CLIENT)


async def test_a_document_is_kept_for_an_hour_and_a_fault_for_a_minute() -> None:
    fetch, time = Documents(), Time()
    documents = ClientDocuments(fetch, time)
    for _ in range(3):
        await documents.get(CLIENT)
    assert fetch.asked[CLIENT] == 1
    time.advance(HOUR)
    fetch.replies[CLIENT] = HostReply(500)
    for _ in range(3):
        await refusal(documents, CLIENT)
    assert fetch.asked[CLIENT] == 2
    time.advance(MINUTE)
    fetch.put()
    await documents.get(CLIENT)
    assert fetch.asked[CLIENT] == 3


async def test_of_very_many_documents_the_first_are_forgotten() -> None:
    many = [f"https://agent.example.com/{number}.json" for number in range(300)]
    fetch = Documents(*many)
    documents = ClientDocuments(fetch, Time())
    for client in many:
        await documents.get(client)
    await documents.get(many[-1])
    await documents.get(many[0])
    assert (fetch.asked[many[-1]], fetch.asked[many[0]]) == (1, 2)


async def test_at_most_four_hosts_are_asked_at_once() -> None:
    under_way = most = 0

    async def fetch(url: str, headers: Any) -> HostReply:
        nonlocal under_way, most
        under_way += 1
        most = max(most, under_way)
        await asyncio.sleep(0)
        under_way -= 1
        return HostReply(404)

    documents = ClientDocuments(fetch, Time())
    asked = [f"https://agent.example.com/{number}.json" for number in range(20)]
    await asyncio.gather(*(documents.get(one) for one in asked), return_exceptions=True)
    assert most <= 4


async def test_who_waits_for_the_same_document_has_it_fetched_once() -> None:
    fetch = Documents(CLIENT)
    documents = ClientDocuments(fetch, Time())
    slow = [f"https://slow.example.com/{number}.json" for number in range(4)]
    asked = [documents.get(one) for one in [*slow, *[CLIENT] * 10]]
    found = await asyncio.gather(*asked, return_exceptions=True)
    assert [one for one in found if not isinstance(one, OAuthError)] == found[4:]
    assert fetch.asked[CLIENT] <= 4


async def test_slow_hosts_keep_no_more_than_some_waiting() -> None:
    answered = asyncio.Event()

    async def fetch(url: str, headers: Any) -> HostReply:
        await answered.wait()
        return HostReply(404)

    documents = ClientDocuments(fetch, Time())
    slow = [f"https://slow.example.com/{number}.json" for number in range(30)]
    asked = [asyncio.ensure_future(documents.get(one)) for one in slow]
    async with asyncio.timeout(30):
        refused, waiting = await asyncio.wait(asked, return_when=asyncio.FIRST_COMPLETED)
        assert (len(refused), len(waiting)) == (10, 20)
        for one in refused:
            with pytest.raises(UnavailableError, match="Too many clients"):
                await one
        answered.set()
        await asyncio.wait(waiting)
    assert await refusal(documents, slow[-1])
