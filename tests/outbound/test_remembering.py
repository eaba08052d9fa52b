"""Answers that are kept."""

import httpx2
import pytest

from factbook.outbound.cache import LARGEST_KEPT, AnswerCaches
from factbook.outbound.client import Credential
from factbook.outbound.outcomes import Outcome
from tests.outbound.asking import Host, Keeper, asking, json

SECRET = "ghp_averysecrettoken"
TOKEN = Credential.fixed("acme", {"Authorization": f"Bearer {SECRET}"})


async def test_an_answer_that_still_holds_comes_from_memory_and_costs_nothing() -> None:
    host = Host(json(200, {"a": 1}, etag='"1"'), httpx2.Response(304, headers={"etag": '"1"'}))
    client, memory = asking(host, credential=TOKEN), Keeper()
    first = await client.get("x", memory=memory)
    again = await client.get("x", memory=memory)
    assert (first.remembered, again.remembered) == (False, True)
    assert (again.ok, again.status, again.data) == (True, 200, {"a": 1})
    assert host.last.headers["if-none-match"] == '"1"'
    assert (client.health.calls, client.health.not_modified) == (2, 1)


async def test_a_changed_answer_takes_the_place_of_the_one_in_memory() -> None:
    host = Host(json(200, 1, etag='"1"'), json(200, 2, etag='"2"'), httpx2.Response(304))
    client, memory = asking(host), Keeper()
    found = [(await client.get("x", memory=memory)).data for _ in range(3)]
    assert found == [1, 2, 2]
    assert host.last.headers["if-none-match"] == '"2"'
    assert len(memory.values) == 1


async def test_a_date_serves_where_there_is_no_tag() -> None:
    date = "Sat, 21 Nov 2026 11:00:00 GMT"
    host = Host(json(200, 1, last_modified=date), httpx2.Response(304))
    client, memory = asking(host), Keeper()
    await client.get("x", memory=memory)
    assert (await client.get("x", memory=memory)).data == 1
    assert host.last.headers["if-modified-since"] == date


async def test_another_credential_is_never_given_an_answer_that_was_kept() -> None:
    host = Host(json(200, "private", etag='"1"'), json(404, {}))
    memory = Keeper()
    await asking(host, credential=TOKEN).get("x", memory=memory)
    other = Credential.fixed("acme", {"Authorization": "Bearer other"})
    answer = await asking(host, credential=other).get("x", memory=memory)
    assert "if-none-match" not in host.last.headers
    assert answer.outcome is Outcome.NOT_FOUND


async def test_the_cache_of_a_batch_answers_only_calls_that_read_an_answer_alike() -> None:
    host = Host(json(200, {"a": 1}))
    client = asking(host).caching(AnswerCaches().open("batch", now=0))
    parsed = await client.get("x")
    raw = await client.get("x", headers={"accept": "application/raw+json"}, decode=False)
    again = await client.get("x")
    assert (parsed.data, raw.data, again.data) == ({"a": 1}, None, {"a": 1})
    assert len(host.requests) == 2


async def test_an_answer_in_one_form_does_not_stand_for_another_form() -> None:
    host, memory = Host(json(200, 1, etag='"1"')), Keeper()
    await asking(host).get("x", memory=memory)
    await asking(host).get("x", memory=memory, headers={"accept": "application/raw+json"})
    assert "if-none-match" not in host.last.headers


async def test_an_answer_too_large_to_keep_is_read_all_the_same() -> None:
    memory = Keeper()
    large = json(200, "a" * LARGEST_KEPT, etag='"1"')
    assert (await asking(Host(large)).get("x", memory=memory)).ok
    assert memory.values == {}


async def test_no_credential_is_kept_in_memory() -> None:
    memory = Keeper()
    await asking(Host(json(200, 1, etag='"1"')), credential=TOKEN).get("x", memory=memory)
    assert SECRET not in repr(memory.values)


@pytest.mark.parametrize(
    "answer", [json(404, {}, etag='"1"'), json(200, 1), json(201, 1, etag="1")]
)
async def test_only_a_good_answer_with_a_validator_is_kept(answer: httpx2.Response) -> None:
    memory = Keeper()
    await asking(Host(answer)).get("x", memory=memory)
    assert memory.values == {}


async def test_memory_that_cannot_be_read_is_as_good_as_none() -> None:
    host, memory = Host(json(200, 1, etag='"1"')), Keeper()
    client = asking(host)
    await client.get("x", memory=memory)
    memory.values = dict.fromkeys(memory.values, b"from another version")
    assert (await client.get("x", memory=memory)).data == 1
    assert "if-none-match" not in host.last.headers


async def test_a_304_that_nobody_asked_for_is_transient() -> None:
    assert (await asking(Host(httpx2.Response(304))).get("x")).outcome is Outcome.TRANSIENT
