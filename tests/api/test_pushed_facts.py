"""`/api/tech-insights/v1/facts/{id}`: pushing facts to a source."""

from typing import Any

import pytest

from factbook.clock import HOUR, SECOND
from tests.api.defining import API, FACTS, WEB, define, history, item, latest, push, pushed
from tests.service import Service, component

NOON = "2026-11-21T12:00:00.000+00:00"


@pytest.mark.both_databases
@pytest.mark.spec("facts.pushed-facts")
async def test_pushed_facts_are_the_latest_for_the_next_read(covered: Service) -> None:
    answer = await push(covered, item(lines=80, tool="cov"), item(API, lines=7))
    assert answer == {
        "dataSourceId": "coverage",
        "version": "1.0.0",
        "acceptedItems": 2,
        "items": [
            {
                "entity": ref,
                "timestamp": NOON,
                "accepted": True,
                "stored": stored,
                "latest": True,
                "problems": [],
            }
            for ref, stored in ((WEB, ["lines", "tool"]), (API, ["lines"]))
        ],
    }
    assert await latest(covered) == {API: {"lines": 7}, WEB: {"lines": 80, "tool": "cov"}}
    found = await covered.facts("get-entity-facts", name="web", dataSourceId="coverage")
    assert found["facts"] == {"lines": 80, "tool": "cov"}
    assert found["timestamp"] == NOON
    every = await covered.facts("get-all-entities-facts", dataSourceId="coverage", kind="*")
    assert {one["entityRef"]: one["facts"] for one in every["entities"]} == await latest(covered)


@pytest.mark.spec("sources.custom-facts-by-their-names")
async def test_facts_have_the_names_that_their_author_gave(covered: Service) -> None:
    names = {"Code coverage (%)": {"type": "float"}, "größe": {"type": "integer"}}
    await define(covered, pushed("odd", schema=names))
    values = {"Code coverage (%)": 81.5, "größe": 3}
    answer = await push(covered, {"entity": WEB, "facts": values}, to="odd")
    assert answer["items"][0]["stored"] == list(values)
    found = await covered.facts("get-entity-facts", name="web", dataSourceId="odd")
    assert found["facts"] == values
    discovered = await covered.facts("get-data-source-discovery")
    [schema] = [one["schema"] for one in discovered["dataSources"] if one["id"] == "odd"]
    assert {name: fact["metadata"]["key"] for name, fact in schema.items()} == {
        name: name for name in names
    }


@pytest.mark.both_databases
@pytest.mark.spec("facts.types-are-checked")
async def test_values_of_every_type_come_back_as_they_were_sent(covered: Service) -> None:
    values = {
        "integer": 2**70,
        "float": 0.5,
        "string": 'quote " nul \0 and ü',
        "boolean": False,
        "datetime": "2026-11-21T12:00:00+01:00",
        "set": ["a", 1],
        "object": {"deep": [None, {"x": 1}]},
    }
    schema = {name: {"type": name} for name in values}
    await define(covered, pushed("every", schema=schema))
    await push(covered, {"entity": WEB, "facts": values}, to="every")
    assert await latest(covered, "every") == {WEB: values}
    [row] = await history(covered)
    assert row["facts"] == values


@pytest.mark.spec("facts.latest-is-one-row", "facts.timestamp-is-the-last-good-write")
async def test_a_push_replaces_what_is_known_of_the_entity(covered: Service) -> None:
    await push(covered, item(lines=80, tool="cov"))
    covered.time.advance(HOUR)
    await push(covered, item(lines=81))
    assert await latest(covered) == {WEB: {"lines": 81}}
    answer = await covered.http.get(f"{FACTS}/coverage", params={"entity": WEB})
    assert answer.json()["entities"] == [
        {
            "entityRef": WEB,
            "facts": {"lines": 81},
            "reasons": {"": "not-sent"},
            "timestamp": "2026-11-21T13:00:00.000+00:00",
        }
    ]
    covered.time.advance(HOUR)
    answered = await push(covered, item(lines=None))
    assert (answered["items"][0]["accepted"], answered["items"][0]["problems"]) == (True, [])
    assert await latest(covered) == {}


@pytest.mark.spec("sources.draft-facts-are-marked")
async def test_facts_of_a_draft_are_marked(covered: Service) -> None:
    await define(covered, pushed("new"), publish=False)
    answer = await push(covered, item(lines=1), to="new")
    assert answer["version"] == "0.0.0"
    read = (await covered.http.get(f"{FACTS}/new")).json()
    assert read["draft"] is True
    assert [row["draft"] for row in await history(covered)] == [True]
    found = await covered.facts("get-entity-facts", name="web", dataSourceId="new")
    assert found["draft"] is True
    await define(covered, pushed("new"))
    covered.time.advance(SECOND)
    await push(covered, item(lines=2), to="new")
    assert "draft" not in (await covered.http.get(f"{FACTS}/new")).json()
    assert ["draft" in row for row in await history(covered)] == [False, True]


@pytest.mark.both_databases
@pytest.mark.slow
async def test_a_thousand_items_go_in_at_once(service: Service) -> None:
    entities = [component(f"part-{number:04}") for number in range(1_000)]
    assert (await service.push("all", *entities)).status_code == 200
    await define(service, pushed())
    items = [item(f"component:part-{number:04}", lines=number) for number in range(1_000)]
    assert (await push(service, *items))["acceptedItems"] == 1_000
    found: dict[str, Any] = {}
    cursor: dict[str, str] = {}
    for _ in range(4):
        answer = await service.http.get(f"{FACTS}/coverage", params={"limit": "300", **cursor})
        page = answer.json()
        found |= {one["entityRef"]: one["facts"]["lines"] for one in page["entities"]}
        cursor = {"cursor": page.get("nextCursor", "")}
    assert "nextCursor" not in page
    assert found == {f"component:default/part-{number:04}": number for number in range(1_000)}
