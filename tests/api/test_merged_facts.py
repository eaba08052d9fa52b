"""Pushes that leave facts out: merged or not, with reasons for what the pusher doesn't know."""

from pathlib import Path
from typing import Any

import msgspec
import pytest
import yaml

from factbook.clock import DAY, HOUR
from tests.api.defining import API, FACTS, WEB, define, history, item, latest, push, pushed
from tests.service import Service, component
from tests.web.visiting import signed_in, words

NAMES = ("page", "entity", "values", "tool")
REPORTS = Path(__file__).parents[1] / "data" / "reports"
GROUPED = {name: {"type": "integer"} for name in ("size", "build.time", "build.steps", "tests.run")}


def merged(entity: str = WEB, timestamp: str | None = None, **facts: Any) -> dict[str, Any]:
    return item(entity, timestamp, **facts) | {"merge": True}


async def entity_facts(service: Service, source: str, name: str = "web") -> dict[str, Any]:
    return await service.facts("get-entity-facts", name=name, dataSourceId=source)


async def test_facts_never_sent_have_one_reason_of_their_own(covered: Service) -> None:
    await define(covered, pushed("grouped", schema=GROUPED))
    await push(covered, item() | {"facts": {"build.time": 4}}, to="grouped")
    found = await entity_facts(covered, "grouped")
    assert (found["facts"], found["unknownReasons"]) == ({"build.time": 4}, {"*": "not-sent"})
    await push(covered, item(size=None) | {"timestamp": "2026-11-21T12:01:00Z"}, to="grouped")
    found = await entity_facts(covered, "grouped")
    reasons = {"size": "not-applicable: no value was given", "*": "not-sent"}
    assert (found["facts"], found["unknownReasons"]) == ({}, reasons)


async def test_a_merged_item_keeps_the_values_that_it_leaves_out(covered: Service) -> None:
    await push(covered, item(lines=80, tool="cov"), item(API, tool="cov"))
    covered.time.advance(HOUR)
    answer = await push(covered, merged(lines=81), merged(API, lines=7))
    assert [one["stored"] for one in answer["items"]] == [["lines"], ["lines"]]
    both = {API: {"lines": 7, "tool": "cov"}, WEB: {"lines": 81, "tool": "cov"}}
    assert await latest(covered) == both
    assert [row["facts"] for row in await history(covered)] == [
        {"lines": 81, "tool": "cov"},
        {"lines": 80, "tool": "cov"},
    ]
    covered.time.advance(HOUR)
    await push(covered, item(lines=82))
    assert (await latest(covered))[WEB] == {"lines": 82}


@pytest.mark.both_databases
async def test_scripts_that_merge_at_the_same_time_leave_each_other_alone(
    covered: Service,
) -> None:
    built = "2026-11-21T11:00:00Z"
    await push(covered, item(WEB, "2026-11-21T10:00:00Z", lines=1, tool="old"))
    await push(covered, merged(WEB, built, lines=80), merged(WEB, built, tool="cov"))
    assert await latest(covered) == {WEB: {"lines": 80, "tool": "cov"}}
    again = await push(covered, merged(WEB, built, lines=80))
    assert (again["items"][0]["accepted"], again["items"][0]["problems"]) == (True, [])
    other = await push(covered, merged(WEB, built, lines=79))
    assert other["items"][0]["problems"][0]["path"] == "items[0].timestamp"
    assert await latest(covered) == {WEB: {"lines": 80, "tool": "cov"}}


@pytest.mark.both_databases
async def test_an_item_of_an_earlier_time_is_merged_into_what_was_known_then(
    covered: Service,
) -> None:
    await push(covered, item(WEB, "2026-11-21T09:00:00Z", lines=9, tool="nine"))
    await push(covered, item(WEB, "2026-11-21T11:00:00Z", lines=11, tool="eleven"))
    answer = await push(covered, merged(WEB, "2026-11-21T10:00:00Z", lines=10))
    assert answer["items"][0]["latest"] is False
    assert await latest(covered) == {WEB: {"lines": 11, "tool": "eleven"}}
    assert [row["facts"] for row in await history(covered)] == [
        {"lines": 11, "tool": "eleven"},
        {"lines": 10, "tool": "nine"},
        {"lines": 9, "tool": "nine"},
    ]


async def test_a_merged_item_can_take_a_value_away_and_keeps_reasons(covered: Service) -> None:
    await push(covered, item(lines=80) | {"reasons": {"tool": "forbidden: no access"}})
    covered.time.advance(HOUR)
    await push(covered, merged(lines=None))
    assert (await entity_facts(covered, "coverage"))["unknownReasons"] == {
        "lines": "not-applicable: no value was given",
        "tool": "forbidden: no access",
    }


async def test_a_script_can_say_why_it_does_not_know_a_fact(
    service: Service, subtests: pytest.Subtests
) -> None:
    folder = REPORTS / "41-inconclusive-result"
    body = msgspec.json.decode((folder / "facts.json").read_bytes())
    await service.push("all", component("checkout"))
    await define(service, yaml.safe_load((folder / "source.yaml").read_text()))
    for text, stored in [
        ("forbidden: the token may not read branches", None),
        ("rate-limited", None),
        ("the check was inconclusive", "upstream-error: the check was inconclusive"),
    ]:
        with subtests.test(text=text):
            service.time.advance(HOUR)
            body["items"][0]["reasons"] = {"codeReview": text}
            assert (await push(service, *body["items"], to="ossf"))["items"][0]["problems"] == []
            found = await entity_facts(service, "ossf", "checkout")
            reasons = {"codeReview": stored or text, "*": "not-sent"}
            assert (found["facts"], found["unknownReasons"]) == ({}, reasons)


async def test_reasons_that_make_no_sense_are_listed(
    covered: Service, subtests: pytest.Subtests
) -> None:
    cases: list[tuple[dict[str, Any], str, str]] = [
        ({"reasons": {"nope": "forbidden"}}, "reasons.nope", "declares no such fact"),
        ({"reasons": {"lines": "forbidden"}}, "reasons.lines", "the fact has a value"),
        ({"reasons": {"tool": " "}}, "reasons.tool", "1 to 300 characters"),
        ({"reasons": {"tool": "x" * 301}}, "reasons.tool", "1 to 300 characters"),
        ({"facts": {}, "reasons": {}}, "facts", "has no facts"),
    ]
    for change, path, expected in cases:
        with subtests.test(change=change):
            [one] = (await push(covered, item(lines=1) | change))["items"]
            [problem] = one["problems"]
            assert problem["path"] == f"items[0].{path}"
            assert expected in problem["message"]
    assert await latest(covered) == {WEB: {"lines": 1}}


async def test_whole_numbers_with_a_point_and_plain_dates_are_values(service: Service) -> None:
    report = REPORTS / "32-whole-numbers-with-a-point" / "fact.json"
    await service.push("all", component("checkout"))
    schema = {"codeReview": {"type": "integer"}, "released": {"type": "datetime"}}
    await define(service, pushed("ossf", schema=schema))
    items = msgspec.json.decode(report.read_bytes())["items"]
    items[0]["facts"]["released"] = "2026-11-29"
    assert (await push(service, *items, to="ossf"))["items"][0]["problems"] == []
    answer = await service.http.get(f"{FACTS}/ossf", params={"entity": items[0]["entity"]})
    facts = answer.json()["entities"][0]["facts"]
    assert msgspec.json.encode(facts) == b'{"codeReview":9,"released":"2026-11-29T00:00:00Z"}'


@pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)
async def test_the_page_says_that_a_fact_was_not_sent(covered: Service) -> None:
    await push(covered, item(lines=80))
    visitor = await signed_in(covered)
    text = words(await visitor.text("/catalog/component/default/web/facts/coverage"))
    assert "unknown not sent Tool Facts of this source are pushed, and no push sent" in text
    assert "Nothing needs to be done" not in text


@pytest.mark.both_databases
async def test_a_value_that_an_item_leaves_out_is_stale_by_the_lifecycle_alone(
    covered: Service, subtests: pytest.Subtests
) -> None:
    await define(covered, pushed("dated", lifecycle={"timeToLive": {"days": 7}}))
    await push(covered, item(lines=80, tool="cov"), to="dated")

    async def is_stale() -> dict[str, bool]:
        page = (await covered.http.get(f"{FACTS}/dated")).json()["entities"]
        one = (await covered.http.get(f"{FACTS}/dated", params={"entity": WEB})).json()["entities"]
        rows = (await covered.http.get(f"{FACTS}/dated/values", params={"fact": "tool"})).json()
        return {
            "page": page[0].get("stale", False),
            "entity": one[0].get("stale", False),
            "values": next(
                row.get("stale", False) for row in rows["entities"] if row["entityRef"] == WEB
            ),
            "tool": (await entity_facts(covered, "dated")).get("stale", False),
        }

    for days, expected in [(1, False), (5, False), (2, True)]:
        with subtests.test(days=days):
            covered.time.advance(days * DAY)
            await push(covered, merged(lines=80 + days), to="dated")
            assert set((await is_stale()).values()) == {expected}
    assert (await entity_facts(covered, "dated"))["staleFacts"] == ["tool"]
    await push(covered, merged(tool="cov"), to="dated")
    assert await is_stale() == dict.fromkeys(NAMES, False)
