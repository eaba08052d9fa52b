"""Where connections lead: the guard, the proxy and certificate authorities."""

from pathlib import Path

import pytest

from factbook.errors import ConfigurationError
from factbook.outbound.client import Credential, HttpClient
from factbook.outbound.outcomes import Outcome
from tests.outbound.asking import calling, naming, network
from tests.outbound.conftest import Serve
from tests.outbound.talking import GOOD, Authority, saying, tunnel

REFUSED = "resolves to an address that is not called; outgoing_networks can allow it"


@pytest.mark.spec("network.outgoing-address-guard")
async def test_no_form_of_an_inner_address_is_called(
    subtests: pytest.Subtests, serve: Serve
) -> None:
    hosts = [
        "127.0.0.1",
        "localhost",
        "2130706433",
        "0x7f.1",
        "127.1",
        "[::1]",
        "[::ffff:127.0.0.1]",
        "0.0.0.0",  # noqa: S104 - nothing is bound to it
        "169.254.169.254",
        "[fe80::1]",
        "[64:ff9b::7f00:1]",
        "10.0.0.1",
    ]
    port = await serve(saying(GOOD))
    for host in hosts:
        with subtests.test(host=host):
            async with calling(f"https://{host}:{port}", network(outgoing_networks=[])) as client:
                answer = await client.get("x")
            assert answer.outcome is Outcome.TRANSIENT
            assert "outgoing_networks can allow it" in answer.detail
            assert client.health.calls == 1


async def test_a_network_that_the_setting_lists_is_called(serve: Serve) -> None:
    port = await serve(saying(GOOD))
    async with calling(f"http://127.0.0.1:{port}", network()) as client:
        assert (await client.get("x")).data == {"a": 1}


async def test_one_inner_address_among_public_ones_refuses_the_name() -> None:
    resolver = naming(mixed_example=["8.8.8.8", "10.0.0.1"])
    async with calling("https://mixed.example", network(resolver=resolver)) as client:
        assert (await client.get("x")).detail == f"mixed.example: mixed.example {REFUSED}"


async def test_a_name_is_looked_up_once_and_the_checked_address_is_called(serve: Serve) -> None:
    port = await serve(saying(GOOD))
    looked_up: list[str] = []

    async def rebinding(host: str, port: int) -> list[str]:
        looked_up.append(host)
        return ["127.0.0.1"] if len(looked_up) == 1 else ["169.254.169.254"]

    async with calling(f"http://name.example:{port}", network(resolver=rebinding)) as client:
        assert (await client.get("x")).ok
    assert looked_up == ["name.example"]


async def test_a_name_that_comes_to_lead_inside_is_refused_at_the_next_connection(
    serve: Serve,
) -> None:
    port = await serve(saying(GOOD.replace(b"\r\n", b"\r\nconnection: close\r\n", 1)))
    answers = iter([["127.0.0.1"], ["192.168.0.1"]])

    async def rebinding(host: str, port: int) -> list[str]:
        return next(answers)

    async with calling(f"http://name.example:{port}", network(resolver=rebinding)) as client:
        assert (await client.get("x")).ok
        assert REFUSED in (await client.get("x")).detail


async def test_a_redirect_inside_is_refused_by_its_origin_and_by_its_address(serve: Serve) -> None:
    secret = await serve(saying(GOOD))
    location = f"http://127.0.0.2:{secret}/latest/meta-data".encode()
    moved = b"HTTP/1.1 302 Found\r\ncontent-length: 0\r\nlocation: " + location + b"\r\n\r\n"
    port = await serve(saying(moved))
    async with calling(f"http://127.0.0.1:{port}", network()) as client:
        answer = await client.get("x", follow=True)
    assert answer.outcome is Outcome.TRANSIENT
    assert client.health.calls == 1


async def test_the_next_address_is_tried_when_one_does_not_answer(serve: Serve) -> None:
    port = await serve(saying(GOOD))
    resolver = naming(name_example=["127.0.0.77", "127.0.0.1"])
    async with calling(f"http://name.example:{port}", network(resolver=resolver)) as client:
        assert (await client.get("x")).ok


async def test_a_name_that_nobody_knows_is_no_connection() -> None:
    async with calling("https://nowhere.example", network(resolver=naming())) as client:
        assert (await client.get("x")).detail == "nowhere.example: no connection"


async def test_without_encryption_a_public_address_is_not_called() -> None:
    resolver = naming(public_example="8.8.8.8")
    async with calling("http://public.example", network(resolver=resolver)) as client:
        assert REFUSED in (await client.get("x")).detail


async def test_a_private_authority_is_trusted_when_the_setting_names_it(
    serve: Serve, tmp_path: Path
) -> None:
    authority = Authority(tmp_path)
    port = await serve(saying(GOOD), tls=authority.server("ghe.example"))
    resolver = naming(ghe_example="127.0.0.1", other_example="127.0.0.1")
    trusting = network(resolver=resolver, outgoing_ca_file=str(authority.file))
    async with calling(f"https://ghe.example:{port}", trusting) as client:
        assert (await client.get("x")).data == {"a": 1}
    untrusted = "its certificate is not trusted; outgoing_ca_file can name a private authority"
    async with calling(f"https://other.example:{port}", trusting) as client:
        assert (await client.get("x")).detail == f"other.example: {untrusted}"
    async with calling(f"https://ghe.example:{port}", network(resolver=resolver)) as client:
        assert (await client.get("x")).detail == f"ghe.example: {untrusted}"
        assert client.health.calls == 1


@pytest.mark.parametrize("content", [None, "not a certificate"])
def test_a_file_of_authorities_that_cannot_be_read_is_named(
    tmp_path: Path, content: str | None
) -> None:
    file = tmp_path / "authority.pem"
    if content:
        file.write_text(content)
    with pytest.raises(ConfigurationError, match=r"outgoing_ca_file: .*authority\.pem"):
        network(outgoing_ca_file=str(file))


async def test_a_proxy_carries_the_call_without_seeing_the_credential(
    serve: Serve, tmp_path: Path
) -> None:
    authority = Authority(tmp_path)
    port = await serve(saying(GOOD), tls=authority.server("api.example"))
    asked: list[bytes] = []
    proxy = await serve(tunnel(asked, port))
    through = network(
        resolver=naming(proxy_example="127.0.0.1"),
        outgoing_proxy=f"http://user:word@proxy.example:{proxy}",
        outgoing_ca_file=str(authority.file),
    )
    sender = through.sender("https://api.example")
    token = Credential.fixed("t", {"authorization": "Bearer secret"})
    answer = await HttpClient("https://api.example", sender, credential=token).get("x")
    await sender.aclose()
    assert answer.data == {"a": 1}
    assert asked[0].startswith(b"CONNECT api.example:443 ")
    assert b"Basic dXNlcjp3b3Jk" in asked[0]
    assert b"secret" not in asked[0]


async def test_a_proxy_at_an_inner_address_has_to_be_listed() -> None:
    through = network(
        resolver=naming(proxy_example="10.0.0.1"), outgoing_proxy="http://proxy.example:3128"
    )
    async with calling("https://api.example", through) as client:
        assert (await client.get("x")).detail == f"api.example: proxy.example {REFUSED}"


def test_nothing_goes_through_a_proxy_without_encryption() -> None:
    through = network(outgoing_proxy="http://127.0.0.1:3128")
    with pytest.raises(ConfigurationError, match=r"api\.example is not called through"):
        through.sender("http://api.example")


@pytest.mark.parametrize("proxy", ["http://", "http://[", "http://:3128", "https://word@"])
def test_a_proxy_without_a_host_is_refused(proxy: str) -> None:
    with pytest.raises(ConfigurationError, match="outgoing_proxy") as refused:
        network(outgoing_proxy=proxy)
    assert "word" not in str(refused.value)


async def test_a_proxy_is_not_asked_for_an_inner_address(serve: Serve) -> None:
    asked: list[bytes] = []
    proxy = await serve(tunnel(asked, 1))
    through = network(outgoing_proxy=f"http://127.0.0.1:{proxy}")
    async with calling("https://169.254.169.254", through) as client:
        assert "outgoing_networks can allow it" in (await client.get("x")).detail
    assert asked == []


async def test_names_that_the_setting_lists_are_called_without_the_proxy(serve: Serve) -> None:
    asked: list[bytes] = []
    port, proxy = await serve(saying(GOOD)), await serve(tunnel(asked, 1))
    through = network(
        resolver=naming(git_corp_example="127.0.0.1"),
        outgoing_proxy=f"http://127.0.0.1:{proxy}",
        outgoing_direct=["corp.example"],
    )
    async with calling(f"http://git.corp.example:{port}", through) as client:
        assert (await client.get("x")).ok
    assert asked == []
    names = ["corp.example", "GIT.corp.example.", "notcorp.example", "corp.example.org"]
    assert [through.proxied(name) for name in names] == [False, False, True, True]


async def test_the_environment_chooses_neither_proxy_nor_authorities(
    serve: Serve, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[bytes] = []
    port, proxy = await serve(saying(GOOD)), await serve(tunnel(asked, 1))
    netrc = tmp_path / "netrc"
    netrc.write_text("machine 127.0.0.1 login user password word")
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY"):
        monkeypatch.setenv(name, f"http://127.0.0.1:{proxy}")
    monkeypatch.setenv("NETRC", str(netrc))
    monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "none.pem"))
    async with calling(f"http://127.0.0.1:{port}", network()) as client:
        assert (await client.get("x")).ok
    assert asked == []
