"""Pushed facts that are refused: single facts, items and whole pushes."""

from typing import Any

import pytest

from tests.api.defining import (
    API,
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
from tests.service import Service

ON_SQLITE = pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)


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
        "lines": "bad-definition: schema.lines.type: expected an integer, not this string"
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
    ({"facts": {"lines": 1}, "merge": True, "timestamp": ""}, "timestamp", "has to be an ISO"),
    ({"facts": {"lines": None, "nope": 1}}, "facts.nope", "declares no such fact"),
    ({"facts": {"tool": "x" * 70_000}}, "facts", "is larger than 64 KiB"),
    ({"facts": {"nope\0": 1}}, "facts.nope\0", "declares no such fact"),
]


@ON_SQLITE
@pytest.mark.spec("facts.pushed-problems-are-listed")
async def test_what_is_wrong_with_an_item_is_told_and_keeps_no_other_back(
    covered: Service, subtests: pytest.Subtests
) -> None:
    for number, (change, path, words) in enumerate(ODD):
        with subtests.test(change=change):
            sound = item(API, f"2026-11-21T11:{number:02}:00Z", lines=number)
            answer = await push(covered, item(lines=1) | change, sound)
            first, second = answer["items"]
            [problem] = first["problems"]
            assert problem["path"] == f"items[0].{path}"
            assert words in problem["message"]
            assert first["stored"] == []
            assert (second["stored"], second["problems"]) == (["lines"], [])
            assert (await latest(covered))[API] == {"lines": number}


DEEP = b'{"items": [{"entity": "component:web", "facts": {"it": ' + b"[" * 70 + b"]" * 70 + b"}}]}"


@ON_SQLITE
async def test_a_fact_that_is_nested_too_deeply_is_told(covered: Service) -> None:
    await define(covered, pushed("deep", schema={"it": {"type": "object"}}))
    answer = await covered.http.post(f"{FACTS}/deep", content=DEEP)
    [one] = answer.json()["items"]
    assert one["problems"] == [{"path": "items[0].facts", "message": "is nested more than 64 deep"}]


@ON_SQLITE
@pytest.mark.spec("facts.pushes-are-bounded")
async def test_a_body_that_is_no_push_is_refused_whole(
    covered: Service, subtests: pytest.Subtests
) -> None:
    cases: list[tuple[Any, int, str]] = [
        ({}, 400, "required field `items`"),
        ({"items": []}, 400, "length >= 1"),
        ({"items": [item(lines=1)] * 1001}, 400, "length <= 1000"),
        ({"items": [{"facts": {}}]}, 400, "required field `entity`"),
        ({"items": [item(lines=1) | {"when": 1}]}, 400, "unknown field `when`"),
        ({"items": [item(lines=1) | {"timestamp": 7}]}, 400, "$.items[0].timestamp"),
        ({"items": [{"entity": 7, "facts": {}}]}, 400, "$.items[0].entity"),
        ({"items": [{"entity": WEB, "facts": [1]}]}, 400, "$.items[0].facts"),
        ([], 400, "Expected an object"),
        ({"items": [item(tool="x" * 9 * 1024 * 1024)]}, 413, "larger than"),
    ]
    for body, status, words in cases:
        with subtests.test(body=body):
            answer = await covered.http.post(f"{FACTS}/coverage", json=body)
            assert words in refusal(answer, status)
            assert await latest(covered) == {}


@ON_SQLITE
@pytest.mark.spec("facts.pushed-to-push-sources-alone")
async def test_only_sources_of_type_push_take_facts(
    covered: Service, subtests: pytest.Subtests
) -> None:
    await define(covered, of_entities())
    for id_, status, words in [
        ("techdocs", 409, "techdocs is built in: facts cannot be pushed to it."),
        ("owners", 409, "owners is of type entity: its facts are collected."),
        ("nothing", 404, 'There is no data source "nothing".'),
        ("%00", 404, "There is no data source"),
    ]:
        with subtests.test(id_=id_):
            answer = await covered.http.post(f"{FACTS}/{id_}", json={"items": [item(lines=1)]})
            assert words in refusal(answer, status)
            assert await history(covered) == []


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
