"""A push over the wire: chunked bodies, clients that hang up, answers in pieces."""

import json
from collections.abc import Iterable
from typing import Any

import pytest

from tests.service import PUSH, Service, component

Message = dict[str, Any]


async def drive(
    service: Service, method: str, path: str, received: Iterable[Message], **headers: str
) -> list[Message]:
    """What the application sends to a client from which these messages come."""
    token = await service.token(name="raw")
    given = {"host": "127.0.0.1:8000", "authorization": f"Bearer {token}"} | headers
    messages = iter(received)
    sent: list[Message] = []

    async def receive() -> Message:
        return next(messages)

    async def send(message: Any) -> None:
        sent.append(dict(message))

    scope = {
        "type": "http",
        "asgi": {"version": "3.0"},
        "http_version": "1.1",
        "method": method,
        "scheme": "http",
        "path": path,
        "raw_path": path.encode(),
        "query_string": b"",
        "root_path": "",
        "headers": [
            (name.replace("_", "-").encode(), text.encode()) for name, text in given.items()
        ],
        "client": ("127.0.0.1", 40_000),
        "server": ("127.0.0.1", 8_000),
    }
    await service.application(scope, receive, send)
    return sent


def chunks(body: bytes, size: int, *, complete: bool = True) -> list[Message]:
    """A body in pieces; one that is not complete ends in a hang-up."""
    pieces: list[Message] = [
        {"type": "http.request", "body": body[start : start + size], "more_body": True}
        for start in range(0, len(body), size)
    ]
    end: Message = (
        {"type": "http.request", "body": b""} if complete else {"type": "http.disconnect"}
    )
    return [*pieces, end]


def body_of(*items: dict[str, Any]) -> bytes:
    return json.dumps({"items": items}).encode()


@pytest.mark.spec("push.content-length-is-optional")
async def test_a_body_is_taken_with_its_length_and_in_chunks(service: Service) -> None:
    body = body_of(component("a"), component("größe"))
    path = f"{PUSH}/sets/first"
    whole = [{"type": "http.request", "body": body, "more_body": False}]
    answers = [
        await drive(service, "PUT", path, whole, content_length=str(len(body))),
        await drive(service, "PUT", path, chunks(body, 1)),
        await drive(service, "PUT", path, chunks(body, 50), transfer_encoding="chunked"),
    ]
    for sent in answers:
        assert sent[0]["status"] == 200
        answer = json.loads(b"".join(message.get("body", b"") for message in sent))
        assert len(answer["items"]) == 2
        assert answer["revision"] == 1
    posted = await drive(service, "POST", path, chunks(json.dumps(component("b")).encode(), 9))
    assert posted[0]["status"] == 200
    assert (await service.http.get(f"{PUSH}/sets")).json()["sets"][0]["itemCount"] == 3


@pytest.mark.spec("push.one-transaction")
async def test_a_client_that_hangs_up_in_the_middle_of_a_put_changes_nothing(
    service: Service,
) -> None:
    await service.push("first", component("a"), component("b"))
    before = (await service.http.get(f"{PUSH}/sets/first")).json()
    body = body_of(*(component(f"c{number}") for number in range(100)))
    for end in (0, 1, len(body) // 2, len(body) - 1, len(body)):
        received = chunks(body[:end], 1_000, complete=False)
        sent = await drive(
            service, "PUT", f"{PUSH}/sets/first", received, content_length=str(len(body))
        )
        assert sent == []
        assert (await service.http.get(f"{PUSH}/sets/first")).json() == before
    assert (await service.push("first", component("a"))).json()["revision"] == 2


@pytest.mark.slow
@pytest.mark.spec("limits.body-is-413")
async def test_a_chunked_body_is_refused_as_soon_as_it_is_too_large(service: Service) -> None:
    pulled = 0

    def endless() -> Iterable[Message]:
        nonlocal pulled
        while True:
            pulled += 1
            yield {"type": "http.request", "body": bytes(64 * 1024**2), "more_body": True}

    sent = await drive(service, "PUT", f"{PUSH}/sets/first", endless())
    assert sent[0]["status"] == 413
    assert pulled == 2
    announced = await drive(
        service, "PUT", f"{PUSH}/sets/first", [], content_length=str(128_000_001)
    )
    assert announced[0]["status"] == 413


@pytest.mark.slow
@pytest.mark.spec("response.is-streamed")
async def test_the_answer_to_a_large_push_is_sent_in_pieces(service: Service) -> None:
    items = [component(f"c{number}", definition="x" * 2_000) for number in range(1_500)]
    put = await drive(service, "PUT", f"{PUSH}/sets/first", chunks(body_of(*items), 1024**2))
    read = await drive(service, "GET", f"{PUSH}/sets/first", [])
    for sent in (put, read):
        pieces = [message["body"] for message in sent[1:]]
        assert len(pieces) > 1
        whole = b"".join(pieces)
        assert len(whole) > 6_000_000
        assert max(map(len, pieces)) <= len(whole) * 0.75
        assert b"content-length" not in dict(sent[0]["headers"])
        assert len(json.loads(whole)["items"]) == 1_500
    assert max(len(message["body"]) for message in put[1:]) < 512 * 1024
