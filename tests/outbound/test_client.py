"""Asking a host."""

import logging
from typing import Any

import httpx2
import msgspec
import pytest

from factbook.clock import MINUTE, SECOND
from factbook.outbound.client import Credential, Governor
from factbook.outbound.outcomes import Answer, Outcome
from tests.outbound.asking import BASE, Host, Sleeps, asking, json
from tests.service import NOON, Time

SECRET = "ghp_averysecrettoken"
TOKEN = Credential.fixed("acme", {"Authorization": f"Bearer {SECRET}"})


async def test_a_target_is_appended_to_the_base_url_with_its_query() -> None:
    host = Host(json(200, {"a": 1}))
    answer = await asking(host).get("/repos/a/b", query={"per_page": 1, "state": "open closed"})
    assert str(host.last.url) == f"{BASE}/repos/a/b?per_page=1&state=open+closed"
    assert (answer.ok, answer.status, answer.data, answer.detail) == (True, 200, {"a": 1}, "")


async def test_a_question_may_be_posted_as_json() -> None:
    host = Host(json(200, {}))
    await asking(host).post("graphql", {"query": "{ viewer }"})
    assert host.last.method == "POST"
    assert host.last.content == b'{"query":"{ viewer }"}'
    assert host.last.headers["content-type"] == "application/json"


class Form(msgspec.Struct):
    """What a test wants to read."""

    number: int


@pytest.mark.parametrize(
    ("host", "read"),
    [
        (json(200, {"number": 7, "more": []}), Form(7)),
        (json(200, {"number": "7"}), {"number": "7"}),
        (json(200, [7]), [7]),
        (json(404, {"message": "Not here"}), {"message": "Not here"}),
    ],
)
async def test_json_that_fits_a_form_is_decoded_as_it_and_other_json_plainly(
    host: Any, read: object
) -> None:
    answer = await asking(Host(host)).get("x", form=Form)
    assert answer.data == read


async def test_headers_of_the_request_go_before_the_clients_and_the_credentials() -> None:
    host = Host(json(200, {}))
    client = asking(host, credential=TOKEN, headers={"Accept": "a/b", "X-Version": "1"})
    await client.get("x", headers={"accept": "c/d", "Authorization": "Bearer other"})
    assert host.last.headers["accept"] == "c/d"
    assert host.last.headers["x-version"] == "1"
    assert host.last.headers.get_list("authorization") == ["Bearer other"]
    await client.get("x")
    assert host.last.headers["authorization"] == f"Bearer {SECRET}"


@pytest.mark.parametrize(
    "broken", [json(502, None), httpx2.ConnectError("refused"), httpx2.ReadTimeout("")]
)
async def test_what_is_transient_is_tried_again(broken: Any) -> None:
    host = Host(broken, broken, json(200, {"a": 1}))
    answer = await asking(host).get("x")
    assert (answer.data, len(host.requests)) == ({"a": 1}, 3)


async def test_tries_end_with_the_last_answer() -> None:
    host = Host(json(502, None))
    client = asking(host)
    answer = await client.get("x")
    assert (answer.outcome, answer.status, len(host.requests)) == (Outcome.TRANSIENT, 502, 3)
    assert answer.missing.reason == "upstream-error: api.example.com: answered 502"
    assert (await client.get("x", attempts=1)).status == 502
    assert len(host.requests) == 4


async def test_what_another_try_would_not_change_is_asked_once(subtests: pytest.Subtests) -> None:
    for status in (400, 401, 403, 404, 410, 422, 501):
        with subtests.test(status=status):
            host = Host(json(status, {}))
            await asking(host).get("x")
            assert len(host.requests) == 1


async def test_a_good_answer_without_json_is_transient(subtests: pytest.Subtests) -> None:
    bodies = [b"<html>", b'{"a":', b"", b"[" * 100_000, b'"\xff"', b"\xef\xbb\xbf{}"]
    for body in bodies:
        with subtests.test(body=body):
            answer = await asking(Host(httpx2.Response(200, content=body))).get("x")
            assert answer.outcome is Outcome.TRANSIENT
            assert answer.detail == "api.example.com: answered 200 with a body that is not JSON"


async def test_an_answer_that_broke_off_is_asked_for_again() -> None:
    host = Host(httpx2.Response(200, content=b'{"a":'), json(200, {"a": 1}))
    assert (await asking(host).get("x")).data == {"a": 1}


async def test_a_body_that_need_not_be_json_is_left_as_it_is() -> None:
    host = Host(httpx2.Response(200, content=b"<xml/>"))
    answer = await asking(host).get("x", decode=False)
    assert (answer.ok, answer.body, answer.data) == (True, b"<xml/>", None)


async def test_an_answer_without_content_is_good() -> None:
    assert (await asking(Host(httpx2.Response(204))).get("x")).ok


async def test_a_short_limit_is_waited_for() -> None:
    time = Time()
    host = Host(json(429, {}, retry_after="5"), json(200, {}))
    sleeps = Sleeps(time)
    answer = await asking(host, time, sleep=sleeps).get("x")
    assert (answer.ok, sleeps.slept, len(host.requests)) == (True, [5.0], 2)


async def test_a_long_limit_ends_in_an_answer_that_says_when_to_go_on() -> None:
    host = Host(json(429, {}, retry_after="600"), json(200, {}))
    client = asking(host)
    answer = await client.get("x")
    assert (answer.outcome, answer.retry_at) == (Outcome.RATE_LIMITED, NOON + 600 * SECOND)
    assert answer.detail == "api.example.com: no call before 2026-11-21T12:10:00.000+00:00"
    assert answer.missing.passing


async def test_nothing_is_sent_while_a_limit_lasts() -> None:
    time = Time()
    host = Host(json(429, {}, retry_after="600"), json(200, {}))
    client = asking(host, time)
    await client.get("x")
    held = await client.get("y")
    assert (held.outcome, held.status, held.retry_at) == (Outcome.RATE_LIMITED, 0, NOON + 600_000)
    assert (len(host.requests), client.health.held) == (1, 1)
    assert client.health.resumes_at == NOON + 600 * SECOND
    time.advance(600 * SECOND)
    assert (await client.get("y")).ok


async def test_calls_stop_at_the_reserve_before_the_host_refuses() -> None:
    left = 520

    def spend(_: httpx2.Request) -> httpx2.Response:
        nonlocal left
        left -= 1
        reset = str((NOON + 30 * MINUTE) // SECOND)
        return json(
            200,
            {},
            x_ratelimit_limit="5000",
            x_ratelimit_remaining=str(left),
            x_ratelimit_reset=reset,
        )

    client = asking(Host(spend))
    answers = [await client.get("x", budget="core") for _ in range(40)]
    assert left == 500
    assert [answer.ok for answer in answers] == [True] * 20 + [False] * 20
    assert answers[-1].retry_at == NOON + 30 * MINUTE
    assert client.health.allowances["core"].remaining == 500


async def test_clients_of_one_credential_share_what_is_known_of_its_limits() -> None:
    time = Time()
    governor = Governor(clock=time)
    host = Host(json(403, {"message": "You have exceeded a secondary rate limit"}))
    assert (await asking(host, time, governor=governor).get("x")).retry_at == NOON + MINUTE
    assert (await asking(host, time, governor=governor).get("y")).status == 0
    assert len(host.requests) == 1


async def test_urgent_calls_go_past_others_and_keep_to_the_same_limits() -> None:
    time = Time()
    governor = Governor(clock=time)
    limited = json(403, {"message": "You have exceeded a secondary rate limit"})
    host = Host(json(200, {}), limited)
    client = asking(host, time, governor=governor).urgent()
    async with governor.turn():
        assert (await client.get("x")).ok
        assert (await client.get("x")).retry_at == NOON + MINUTE
        assert (await client.get("x")).status == 0
    assert len(host.requests) == 2


async def test_a_credential_that_cannot_be_had_ends_the_request_with_its_reason() -> None:
    async def authorize() -> Answer:
        return Answer(Outcome.DENIED, 401, detail="the app is suspended")

    host = Host(json(200, {}))
    answer = await asking(host, credential=Credential("app", "app 7", authorize)).get("x")
    assert (answer.outcome, answer.detail) == (Outcome.DENIED, "the app is suspended")
    assert host.requests == []


async def test_a_credential_may_ask_the_same_host_for_a_token_first() -> None:
    time = Time()
    governor = Governor(clock=time)
    host = Host(json(201, {"token": "t"}), json(200, {}))
    minter = asking(host, time, governor=governor)

    async def authorize() -> dict[str, str]:
        answer = await minter.post("token", {})
        return {"Authorization": f"Bearer {answer.data['token']}"}

    client = asking(host, time, governor=governor, credential=Credential("app", "7", authorize))
    assert (await client.get("x")).ok
    assert host.last.headers["authorization"] == "Bearer t"


async def test_the_health_tells_of_calls_errors_and_the_credentials_end() -> None:
    expiring = {"github-authentication-token-expiration": "2026-12-01 14:00:00 +0200"}
    host = Host(httpx2.Response(200, json={}, headers=expiring), json(500, {}), json(200, {}))
    client = asking(host)
    await client.get("x")
    before = client.health
    await client.get("x", attempts=1)
    assert (before.calls, before.last_error) == (1, "")
    assert before.credential_expires_at == NOON + 10 * 24 * 60 * MINUTE
    health = client.health
    assert (health.calls, health.last_error) == (2, "api.example.com: answered 500")
    assert (health.last_error_at, health.credential_expires_at) == (
        NOON,
        before.credential_expires_at,
    )


@pytest.mark.parametrize("end", ["9999-12-31 23:59:59 -2359", "0001-01-01 00:00:00 +0100", "soon"])
async def test_a_credential_may_end_at_a_time_that_is_none(end: str) -> None:
    client = asking(
        Host(httpx2.Response(200, json={}, headers={"github-authentication-token-expiration": end}))
    )
    assert (await client.get("x")).ok
    assert client.health.credential_expires_at is None


ECHOED = f"Bad token {SECRET}"


@pytest.mark.parametrize(
    "answer",
    [
        json(401, {"message": ECHOED}, www_authenticate=ECHOED),
        json(500, {"message": ECHOED}),
        httpx2.Response(200, text=ECHOED),
        json(301, {}, location=f"https://evil.example/{SECRET}"),
        httpx2.LocalProtocolError(ECHOED),
        httpx2.InvalidURL(ECHOED),
        UnicodeEncodeError("ascii", ECHOED, 0, 1, ""),
    ],
)
async def test_a_credential_is_in_no_text_and_no_log(
    answer: Any, caplog: pytest.LogCaptureFixture, capsys: pytest.CaptureFixture[str]
) -> None:
    caplog.set_level(logging.DEBUG)
    client = asking(Host(answer), credential=TOKEN)
    found = await client.get("x", follow=True)
    shown = f"{found!r} {found.missing} {client.health!r} {client!r} {TOKEN!r} {vars(client)!r}"
    assert SECRET not in shown
    assert SECRET not in caplog.text
    assert SECRET not in "".join(capsys.readouterr())


async def test_a_token_with_a_letter_that_cannot_be_sent_is_not_repeated() -> None:
    host = Host(json(200, {}))
    answer = await asking(host, credential=Credential.fixed("x", {"a": "tökén"})).get("x")
    assert answer.outcome is Outcome.TRANSIENT
    assert "tökén" not in answer.detail
