"""Sources of type http, from what is asked for to what is stored, as the collector runs them."""

from pathlib import Path

import pytest
import yaml

from factbook.clock import HOUR, MINUTE
from factbook.datasources.custom.sources import SourceConnection
from tests.datasources.asking import BUILD, CI, KEY, PASSED, Api, built, collecting, definition
from tests.fakes.faults import saying
from tests.service import NOON, Service, component

FACTS = {"ok": ("boolean", "ok"), "seconds": ("integer", "took"), "tags": ("set", "tags")}


async def test_facts_come_from_what_the_connection_answers(service: Service) -> None:
    api = Api()
    api.answers["/api/jobs/b%2F1/last"] = PASSED
    world = collecting(service, api, definition(path=f"/jobs/{BUILD}/last", facts=FACTS))
    await world.run(built("web", "b/1"), built("none"))
    found = await world.latest("web")
    assert found.facts == {"ok": True, "seconds": 7, "tags": ["x", "y"]}
    assert (found.reasons, found.written_at, found.version) == ({}, NOON, "1.0.0")
    run = await world.last()
    assert (run.state, run.covered, run.skipped, run.calls) == ("done", 1, 1, 1)


async def test_an_entity_without_the_value_is_told_which_one_it_lacks(service: Service) -> None:
    api = Api()
    world = collecting(service, api, definition(path=f"/jobs/{BUILD}"))
    await world.run(built("none"), component("bare"))
    for name in ("none", "bare"):
        found = await world.latest(name)
        reason = f'no-annotation: the entity has no metadata.annotations."{KEY}"'
        assert (found.facts, found.reasons) == ({}, {"": reason})
    assert api.asked == []


async def test_what_does_not_fit_is_told_and_the_rest_stored(service: Service) -> None:
    api = Api()
    api.answers["/api/x"] = {"ok": "yes", "took": 1.5, "tags": ["x"], "deep": {"a": [1]}}
    facts = {
        **FACTS,
        "deep": ("object", "deep"),
        "gone": ("string", "nowhere"),
        "sum": ("integer", "sum(tags)"),
    }
    world = collecting(service, api, definition(path="/x", facts=facts))
    await world.run(component("web"))
    found = await world.latest("web")
    assert found.facts == {"tags": ["x"], "deep": {"a": [1]}}
    assert found.reasons == {
        "ok": "bad-definition: schema.ok.type: expected a boolean, not this string",
        "seconds": "bad-definition: schema.seconds.type: expected an integer, not this number",
        "gone": "not-applicable: the document has no such value",
        "sum": "bad-definition: schema.sum.extract: the expression does not fit the document",
    }
    for _ in range(2):
        service.time.advance(MINUTE)
        await world.collector.drain()
    assert (await world.last()).state == "partial"  # an expression that does not fit it


@pytest.mark.slow
@pytest.mark.parametrize(
    ("format_", "body", "extract"),
    [
        ("yaml", b"version: 1.10\nok: true", "ok"),
        ("text", b"build 17\nstatus: green\n", r"/^status: green$/"),
        ("json", b'{"status": "green"}', r'/"status":"green"/'),
    ],
)
async def test_an_answer_is_read_as_its_format_says(
    service: Service, format_: str, body: bytes, extract: str
) -> None:
    api = Api()
    api.answers["/api/x"] = body
    facts = {"ok": ("boolean", extract)}
    world = collecting(service, api, definition(path="/x", facts=facts, format=format_))
    await world.run(component("web"))
    assert (await world.latest("web")).facts == {"ok": True}


async def test_entities_that_ask_the_same_share_one_request(service: Service) -> None:
    api = Api()
    api.answers["/api/jobs/b1"] = PASSED
    world = collecting(service, api, definition(path=f"/jobs/{BUILD}"))
    await world.run(*(built(f"part-{i}", "b1") for i in range(7)), built("web", "b2"))
    assert api.requests == {"/api/jobs/b1": 1, "/api/jobs/b2": 1}
    assert (await world.latest("part-6")).facts == {"ok": True}
    assert (await world.latest("web")).reasons == {"": "not-found: ci.test: answered 404"}


async def test_a_request_is_made_as_the_source_says(service: Service) -> None:
    api = Api()
    api.answers["/api/search"] = PASSED
    source = definition(
        method="POST",
        path="/search?fixed=1",
        query={"q": f"id:{BUILD}", "kind": "{{ kind }}"},
        headers={"X-Build": BUILD, "Accept": "application/vnd.acme+json"},
        body={"ids": [BUILD, 7], "nested": {"live": None}},
    )
    posting = SourceConnection(base_url=CI.base_url, headers=CI.headers, methods=("GET", "POST"))
    world = collecting(service, api, source, ci=posting)
    await world.run(built("web", "a b&c=/?"))
    [asked] = api.asked
    assert (asked.method, asked.path) == ("POST", "/api/search")
    assert asked.query == {"fixed": "1", "q": "id:a b&c=/?", "kind": "Component"}
    assert asked.headers["x-build"] == "a b&c=/?"
    assert asked.headers["accept"] == "application/vnd.acme+json"
    assert asked.headers["content-type"] == "application/json"
    assert asked.body == {"ids": ["a b&c=/?", 7], "nested": {"live": None}}
    assert (await world.latest("web")).facts == {"ok": True}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("status", "word"),
    [(403, "forbidden"), (404, "not-found"), (410, "not-found")],
)
async def test_what_the_host_says_counts_at_once(service: Service, status: int, word: str) -> None:
    api = Api()
    api.answers["/api/x"] = PASSED
    world = collecting(service, api, definition(path="/x"))
    await world.run(component("web"))
    api.fail("/api/x", saying({"message": "of no concern"}, status), times=9)
    await world.next_run()
    found = await world.latest("web")
    assert (found.facts, found.reasons) == ({}, {"": f"{word}: ci.test: answered {status}"})
    assert api.requests["/api/x"] == 2


async def test_at_a_rate_limit_the_last_values_are_kept(service: Service) -> None:
    api = Api()
    api.answers["/api/jobs/b1"] = PASSED
    world = collecting(service, api, definition(path=f"/jobs/{BUILD}"))
    await world.run(built("web", "b1"))
    limited = saying({}, 429, {"retry-after": "7200"})
    for build in ("b1", "b2"):
        api.fail(f"/api/jobs/{build}", limited, times=9)
    await service.push("all", built("web", "b1"), built("new", "b2"))
    await world.next_run()
    kept, new = await world.latest("web"), await world.latest("new")
    assert (kept.facts, kept.reasons, kept.written_at) == ({"ok": True}, {}, NOON)
    assert new.facts == {}
    assert new.reasons[""].startswith("rate-limited: ci.test: no call before 2026-11-21T1")
    assert api.requests.total() == 2  # the second call of the run was not made
    service.time.now += 3 * HOUR
    api.recover()
    await world.next_run()
    assert (await world.latest("web")).written_at > NOON


async def test_a_failing_host_is_asked_again_and_then_told(service: Service) -> None:
    api = Api()
    api.fail("/api/x", saying({}, 503), times=99)
    timeout = {"timeout": {"seconds": 20}}
    world = collecting(service, api, definition(path="/x", members=timeout))
    await world.run(component("web"))
    assert (await world.latest("web")).reasons == {"": "upstream-error: ci.test: answered 503"}
    run = await world.last()
    assert (run.state, run.calls, run.error) == (
        "failed",
        2,
        "upstream-error: ci.test: answered 503",
    )


async def test_a_rating_that_a_vendor_answers_as_text_is_a_whole_number(service: Service) -> None:
    folder = Path(__file__).parents[1] / "data" / "vendors"
    schema = yaml.safe_load((folder / "10-integer-from-1.0.yaml").read_text())["schema"]
    text = schema["securityRating"]["extract"]["jmespath"]
    api = Api()
    measures = [{"metric": "security_rating", "value": "1.0"}]
    api.answers["/api/x"] = {"component": {"measures": measures}}
    world = collecting(
        service, api, definition(path="/x", facts={"securityRating": ("integer", text)})
    )
    await world.run(component("web"))
    found = await world.latest("web")
    assert (found.facts, found.reasons) == ({"securityRating": 1}, {})
    measures[0]["value"] = "1.5"
    await world.next_run()
    assert (await world.latest("web")).reasons == {
        "securityRating": "bad-definition: schema.securityRating.type: "
        "expected an integer, not this number"
    }
