"""What the client raises: refusals, answers of something else, failed connections, bad settings."""

from importlib import import_module

import httpx2
import pytest

from factbook.client import (
    ApiError,
    Client,
    ConnectionFailed,
    UnexpectedAnswer,
    answers,
    calls,
)
from tests.cli.fake_server import TOOLS, FakeServer

SETS = "/api/catalog/factbook-entities/sets"


def test_a_refusal_keeps_status_name_message_and_details(
    server: FakeServer, client: Client
) -> None:
    problems = [{"path": "items[0].kind", "message": "is missing"}]
    server.refuse("PUT", f"{SETS}/s", 400, "1 problem", problems=problems)
    with pytest.raises(ApiError, match="1 problem") as caught:
        client.push("s", [])
    error = caught.value
    assert (error.status, error.name, error.details) == (400, "SomeError", {"problems": problems})


def test_a_refused_token_is_read_in_the_form_of_the_tool_endpoint(
    server: FakeServer, client: Client
) -> None:
    body = {"error": "invalid_token", "error_description": "The token has expired."}
    server.on("POST", TOOLS, body, 401)
    with pytest.raises(ApiError, match="expired") as caught:
        client.tools()
    assert (caught.value.status, caught.value.name) == (401, "invalid_token")


def test_an_error_of_a_proxy_is_told_by_its_status(subtests: pytest.Subtests) -> None:
    for body in ["<html>", "[1]", '{"error": 1}', ""]:
        with subtests.test(body=body):
            answer = httpx2.Response(502, text=body)
            transport = httpx2.MockTransport(lambda _, answer=answer: answer)
            with pytest.raises(ApiError, match="502 Bad Gateway") as caught:
                Client("http://factbook.test", transport=transport).sets()
            assert caught.value.status == 502


def test_an_answer_of_something_else_is_unexpected(subtests: pytest.Subtests) -> None:
    for body in ["<html>", '{"sets": 1}', "", "\xff", '{"a":' + "[" * 9_999]:
        with subtests.test(body=body):
            answer = httpx2.Response(200, content=body.encode("latin1"))
            transport = httpx2.MockTransport(lambda _, answer=answer: answer)
            with pytest.raises(UnexpectedAnswer, match=r"GET http://factbook\.test"):
                Client("http://factbook.test", transport=transport).sets()


def test_a_redirect_names_the_address_to_use() -> None:
    moved = httpx2.Response(308, headers={"location": "https://factbook.test"})
    transport = httpx2.MockTransport(lambda _: moved)
    with pytest.raises(UnexpectedAnswer, match=r"redirects to https://factbook\.test"):
        Client("http://factbook.test", transport=transport).sets()


@pytest.mark.parametrize(
    "error",
    [
        httpx2.ConnectError("refused"),
        httpx2.ReadTimeout("slow"),
        httpx2.RemoteProtocolError("cut off"),
        httpx2.ReadError("reset"),
    ],
)
def test_a_connection_that_fails_names_the_server(error: Exception) -> None:
    def fail(_: httpx2.Request) -> httpx2.Response:
        raise error

    with pytest.raises(ConnectionFailed, match=r"http://factbook\.test"):
        Client("http://factbook.test", transport=httpx2.MockTransport(fail)).sets()


def test_an_address_without_a_known_scheme_is_refused(subtests: pytest.Subtests) -> None:
    for server in ["", "factbook.test", "localhost:8000", "ftp://factbook.test"]:
        with subtests.test(server=server), pytest.raises(ValueError, match="http://"):
            Client(server)


def test_a_token_from_a_file_may_end_in_a_line_break(server: FakeServer) -> None:
    server.on("GET", SETS, {"sets": []})
    Client("http://factbook.test", "fbk_a\n", transport=httpx2.MockTransport(server)).sets()
    assert server.last.headers["authorization"] == "Bearer fbk_a"


def test_a_token_that_no_header_can_carry_is_refused_without_showing_it(
    subtests: pytest.Subtests,
) -> None:
    for token in ["a\nb", "a\tb", "a\u00e9"]:
        with subtests.test(token=token):
            with pytest.raises(ValueError, match="token") as caught:
                Client("http://factbook.test", token)
            assert token not in str(caught.value)


def test_modules_that_were_merged_are_imported_by_their_names(subtests: pytest.Subtests) -> None:
    for name in ("catalog_calls", "digest_calls", "event_calls", "source_calls", "tool_calls"):
        with subtests.test(name=name):
            assert import_module(f"factbook.client.{name}") is calls
    for name in ("errors", "responses"):
        with subtests.test(name=name):
            assert import_module(f"factbook.client.{name}") is answers
