"""`/api/tech-insights/v1/facts/{id}`: pushing facts to a source, and reading the latest."""

import asyncio
from typing import Any

import pytest

from factbook.clock import HOUR, SECOND
from tests.api.defining import (
    FACTS,
    WEB,
    define,
    history,
    item,
    latest,
    of_entities,
    push,
    pushed,
    refusal,
)
from tests.service import Service, component, resource

ON_SQLITE = pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)
NOON = "2026-11-21T12:00:00.000+00:00"
API = "component:default/api"


@pytest.fixture
async def covered(service: Service) -> Service:
    """A service with three entities, and a source to push to."""
    pushed_set = await service.push("all", component("web"), component("api"), resource("db"))
    assert pushed_set.status_code == 200
    await define(service, pushed())
    return service


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


@pytest.mark.spec(
    "facts.pushed-problems-are-listed",
    "facts.types-are-checked",
    "facts.wrong-type-is-no-value-with-a-reason",
)
async def test_unknown_facts_and_wrong_types_are_listed_and_the_rest_is_stored(
    covered: Service,
) -> None:
    answer = await push(
        covered,
        item(lines="many", tool="cov", colour="red"),
        item(API, lines=True),
        item("component:nobody", lines=1),
        item("resource:db", lines=2),
    )
    assert [one["stored"] for one in answer["items"]] == [["tool"], [], [], ["lines"]]
    assert [one["accepted"] for one in answer["items"]] == [True, False, False, True]
    found = {one["path"]: one["message"] for each in answer["items"] for one in each["problems"]}
    assert found == {
        "items[0].facts.lines": "expected an integer, not this string",
        "items[0].facts.colour": "coverage declares no such fact",
        "items[1].facts.lines": "expected an integer, not a boolean",
        "items[2].entity": "there is no entity component:default/nobody",
    }
    assert await latest(covered) == {WEB: {"tool": "cov"}, "resource:default/db": {"lines": 2}}
    one = (await covered.http.get(f"{FACTS}/coverage", params={"entity": WEB})).json()
    assert one["entities"][0]["reasons"] == {
        "lines": "upstream-error: expected an integer, not this string"
    }


ODD: list[tuple[dict[str, Any], str, str]] = [
    ({"timestamp": "yesterday"}, "timestamp", "has to be an ISO 8601"),
    ({"timestamp": "2026-11-21T12:00:00"}, "timestamp", "has to be an ISO 8601"),
    ({"timestamp": "2026-13-21T12:00:00Z"}, "timestamp", "has to be an ISO 8601"),
    ({"timestamp": "1969-12-31T23:59:59Z"}, "timestamp", "has to be an ISO 8601"),
    ({"timestamp": "0001-01-01T00:00:00+14:00"}, "timestamp", "has to be an ISO 8601"),
    ({"timestamp": ""}, "timestamp", "has to be an ISO 8601"),
    ({"timestamp": "2026-11-21T12:05:00.001Z"}, "timestamp", "is in the future"),
    ({"timestamp": "9999-12-31T23:59:59-12:00"}, "timestamp", "is in the future"),
    ({"entity": "web"}, "entity", "lacks a kind"),
    ({"entity": ""}, "entity", "not of the form"),
    ({"entity": "component:a\0b"}, "entity", "not of the form"),
    ({"entity": "component:" + "x" * 9999}, "entity", "longer than any entity"),
    ({"facts": {}}, "facts", "has no facts"),
    ({"facts": {"lines": None, "nope": 1}}, "facts.nope", "declares no such fact"),
    ({"facts": {"tool": "x" * 70_000}}, "facts", "is larger than 64 KiB"),
    ({"facts": {"nope\0": 1}}, "facts.nope\0", "declares no such fact"),
]


@ON_SQLITE
@pytest.mark.spec("facts.pushed-problems-are-listed")
@pytest.mark.parametrize(("change", "path", "words"), ODD)
async def test_what_is_wrong_with_an_item_is_told_and_keeps_no_other_back(
    covered: Service, change: dict[str, Any], path: str, words: str
) -> None:
    answer = await push(covered, item(lines=1) | change, item(API, lines=2))
    first, second = answer["items"]
    [problem] = first["problems"]
    assert problem["path"] == f"items[0].{path}"
    assert words in problem["message"]
    assert first["stored"] == []
    assert (second["stored"], second["problems"]) == (["lines"], [])
    assert (await latest(covered))[API] == {"lines": 2}


DEEP = b'{"items": [{"entity": "component:web", "facts": {"it": ' + b"[" * 70 + b"]" * 70 + b"}}]}"


@ON_SQLITE
async def test_a_fact_that_is_nested_too_deeply_is_told(covered: Service) -> None:
    await define(covered, pushed("deep", schema={"it": {"type": "object"}}))
    answer = await covered.http.post(f"{FACTS}/deep", content=DEEP)
    [one] = answer.json()["items"]
    assert one["problems"] == [{"path": "items[0].facts", "message": "is nested more than 64 deep"}]


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


@ON_SQLITE
@pytest.mark.spec("facts.pushes-are-bounded")
@pytest.mark.parametrize(
    ("body", "status", "words"),
    [
        ({}, 400, "required field `items`"),
        ({"items": []}, 400, "length >= 1"),
        ({"items": [item(lines=1)] * 1001}, 400, "length <= 1000"),
        ({"items": [{"entity": WEB}]}, 400, "required field `facts`"),
        ({"items": [{"facts": {}}]}, 400, "required field `entity`"),
        ({"items": [item(lines=1) | {"when": 1}]}, 400, "unknown field `when`"),
        ({"items": [item(lines=1) | {"timestamp": 7}]}, 400, "$.items[0].timestamp"),
        ({"items": [{"entity": 7, "facts": {}}]}, 400, "$.items[0].entity"),
        ({"items": [{"entity": WEB, "facts": [1]}]}, 400, "$.items[0].facts"),
        ([], 400, "Expected `object`"),
        ({"items": [item(tool="x" * 9 * 1024 * 1024)]}, 413, "larger than"),
    ],
)
async def test_a_body_that_is_no_push_is_refused_whole(
    covered: Service, body: Any, status: int, words: str
) -> None:
    answer = await covered.http.post(f"{FACTS}/coverage", json=body)
    assert words in refusal(answer, status)
    assert await latest(covered) == {}


@ON_SQLITE
@pytest.mark.spec("facts.pushed-to-push-sources-alone")
@pytest.mark.parametrize(
    ("id_", "status", "words"),
    [
        ("techdocs", 409, "techdocs is builtin: nobody can push facts to it."),
        ("owners", 409, "owners is of type entity: its facts are collected."),
        ("nothing", 404, 'There is no data source "nothing".'),
        ("%00", 404, "There is no data source"),
    ],
)
async def test_only_sources_of_type_push_take_facts(
    covered: Service, id_: str, status: int, words: str
) -> None:
    await define(covered, of_entities())
    answer = await covered.http.post(f"{FACTS}/{id_}", json={"items": [item(lines=1)]})
    assert words in refusal(answer, status)
    assert await history(covered) == []


@pytest.mark.spec("facts.older-pushes-are-history-alone")
async def test_an_item_that_is_older_than_the_latest_goes_into_history_alone(
    covered: Service,
) -> None:
    await push(covered, item(timestamp="2026-11-21T11:00:00Z", lines=5))
    answer = await push(covered, item(timestamp="2026-11-21T10:00:00+00:00", lines=4))
    [one] = answer["items"]
    assert (one["accepted"], one["latest"], one["stored"]) == (True, False, ["lines"])
    assert await latest(covered) == {WEB: {"lines": 5}}
    answer = await push(covered, item(timestamp="2026-11-21T12:00:00+00:30", lines=6))
    assert (answer["items"][0]["timestamp"], answer["items"][0]["latest"]) == (
        "2026-11-21T11:30:00.000+00:00",
        True,
    )
    assert await latest(covered) == {WEB: {"lines": 6}}
    assert [row["facts"]["lines"] for row in await history(covered)] == [6, 5, 4]


async def test_of_several_items_about_an_entity_the_newest_is_the_latest(covered: Service) -> None:
    times = [f"2026-11-21T{hour:02}:00:00Z" for hour in (9, 11, 10)]
    answer = await push(
        covered, *(item(timestamp=time, lines=number) for number, time in enumerate(times))
    )
    assert [one["latest"] for one in answer["items"]] == [False, True, False]
    assert await latest(covered) == {WEB: {"lines": 1}}
    assert [row["facts"]["lines"] for row in await history(covered)] == [1, 2, 0]


@pytest.mark.spec("facts.pushes-can-be-repeated")
async def test_a_push_that_is_repeated_changes_nothing(covered: Service) -> None:
    items = (item(timestamp="2026-11-21T11:00:00Z", lines=5), item(API, lines=6, tool="cov"))
    first = await push(covered, *items)
    rows = await history(covered), await history(covered, API)
    assert await push(covered, *items) == first
    assert await push(covered, *items, *items) == first | {
        "acceptedItems": 4,
        "items": first["items"] * 2,
    }
    assert (await history(covered), await history(covered, API)) == rows
    assert list(map(len, rows)) == [1, 1]


@pytest.mark.spec("facts.pushes-can-be-repeated", "facts.history-is-append-only")
async def test_other_facts_of_a_time_that_history_has_are_refused(covered: Service) -> None:
    time = "2026-11-21T11:00:00Z"
    await push(covered, item(timestamp=time, lines=5))
    answer = await push(covered, item(timestamp=time, lines=6), item(API, time, lines=7))
    first, second = answer["items"]
    assert (first["accepted"], first["stored"], first["latest"]) == (False, [], False)
    assert first["problems"] == [
        {"path": "items[0].timestamp", "message": "other facts of this time are stored already"}
    ]
    assert second["accepted"] is True
    assert await latest(covered) == {WEB: {"lines": 5}, API: {"lines": 7}}
    assert [row["facts"] for row in await history(covered)] == [{"lines": 5}]


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
            "reasons": {"tool": "not-applicable: the push left it out"},
            "timestamp": "2026-11-21T13:00:00.000+00:00",
        }
    ]
    covered.time.advance(HOUR)
    answered = await push(covered, item(lines=None))
    assert (answered["items"][0]["accepted"], answered["items"][0]["problems"]) == (True, [])
    assert await latest(covered) == {}


@pytest.mark.spec("filter.as-json-string", "facts.tracked")
@pytest.mark.parametrize(
    "entity_filter", [[{"kind": "component"}], '[{"kind": ["Component", "api"]}]']
)
async def test_facts_about_an_entity_that_the_filter_leaves_out_are_refused(
    covered: Service, entity_filter: Any
) -> None:
    await define(covered, pushed("some", entityFilter=entity_filter))
    answer = await push(covered, item(lines=1), item("resource:db", lines=2), to="some")
    assert [one["accepted"] for one in answer["items"]] == [True, False]
    assert answer["items"][1]["problems"] == [
        {
            "path": "items[1].entity",
            "message": "the entityFilter of some leaves resource:default/db out",
        }
    ]
    assert await latest(covered, "some") == {WEB: {"lines": 1}}


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


async def test_pushes_at_once_lose_nothing_and_the_newest_is_the_latest(covered: Service) -> None:
    def of(second: int) -> list[dict[str, Any]]:
        time = f"2026-11-21T11:00:{second:02}Z"
        # In opposite orders, so that writers that wait for each other would be seen.
        items = [item(time_of, time, lines=second) for time_of in (WEB, API, "resource:db")]
        return items if second % 2 else items[::-1]

    answers = await asyncio.gather(*(push(covered, *of(second)) for second in range(20)))
    assert sum(answer["acceptedItems"] for answer in answers) == 60
    assert set(map(str, (await latest(covered)).values())) == {"{'lines': 19}"}
    rows = await history(covered, API)
    assert [row["facts"]["lines"] for row in rows] == list(range(19, -1, -1))


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


@pytest.mark.spec("facts.latest-facts-over-rest", "facts.never-collected-is-empty")
async def test_the_latest_facts_of_any_source_are_read(covered: Service) -> None:
    await push(covered, item(lines=80))
    own = await latest(covered, "entity-metadata")
    assert own[WEB]["hasOwner"] is True
    assert list(own) == [API, WEB, "resource:default/db"]
    assert await latest(covered, "entity-metadata", entity="Component:Web") == {WEB: own[WEB]}
    page = (await covered.http.get(f"{FACTS}/entity-metadata", params={"limit": 1})).json()
    assert (page["nextCursor"], list(page["entities"][0])) == (
        API,
        ["entityRef", "facts", "timestamp"],
    )
    never = (await covered.http.get(f"{FACTS}/coverage", params={"entity": API})).json()
    assert never["entities"] == [{"entityRef": API, "facts": {}, "reasons": {}}]


@ON_SQLITE
@pytest.mark.parametrize(
    ("path", "query", "status"),
    [
        ("coverage", {"entity": "component:nobody"}, 404),
        ("techdocs", {"entity": "component:nobody"}, 404),
        ("coverage", {"entity": "nobody"}, 400),
        ("coverage", {"entity": ""}, 400),
        ("coverage", {"limit": "0"}, 400),
        ("coverage", {"limit": "1001"}, 400),
        ("coverage", {"cursor": "x" * 641}, 400),
        ("nothing", {}, 404),
    ],
)
async def test_a_question_for_the_latest_facts_that_makes_no_sense_is_refused(
    covered: Service, path: str, query: dict[str, str], status: int
) -> None:
    refusal(await covered.http.get(f"{FACTS}/{path}", params=query), status)
