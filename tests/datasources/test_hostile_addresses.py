"""Redirects and names that would lead to where nothing may be asked."""

from typing import Any

import pytest

from tests.datasources.hostile import NAMES, Beside, everyone, evil, whole
from tests.outbound.asking import naming
from tests.outbound.conftest import Serve
from tests.outbound.talking import heard, saying


def moved(location: str) -> bytes:
    return b"HTTP/1.1 301 Moved\r\nlocation: %s\r\ncontent-length: 0\r\n\r\n" % location.encode()


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


@pytest.mark.slow
@pytest.mark.parametrize(
    ("base_url", "detail"),
    [
        ("https://10.1.2.3", "10.1.2.3: 10.1.2.3 is not called"),
        ("https://169.254.169.254/latest", "169.254.169.254: 169.254.169.254 is not called"),
        (
            "https://inner.example",
            "inner.example: inner.example resolves to an address that is not called",
        ),
        (
            "https://mixed.example",
            "mixed.example: mixed.example resolves to an address that is not called",
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
        "": "upstream-error: name.example: name.example resolves to an address that is not called; "
        "outgoing_networks can allow it"
    }
    assert sorted(map(len, reasons.values())) == [0, 1, 1]
    assert [one for one in reasons.values() if one] == [refused, refused]
    assert (len(asked), len(looked_up)) == (1, 3)
