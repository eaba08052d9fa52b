"""Queries that ask for more than anybody writes by hand are refused, and never break anything."""

import base64
import json
from typing import Any

import pytest

from tests.api.querying import QUERY, page, posted, refusal
from tests.service import Service, component


def cursor(**parts: Any) -> str:
    """A cursor that nobody was given."""
    whole = {"orderFields": [], "orderFieldValues": ["component:default/c1"]} | parts
    return base64.b64encode(json.dumps(whole).encode()).decode()


@pytest.mark.spec("catalog.by-query")
async def test_a_text_is_looked_for_in_twenty_paths_at_most(service: Service) -> None:
    paths = [f"spec.part{number}" for number in range(21)]
    term = {"term": "c", "fields": paths}
    assert "<= 20" in await refusal(service, {"fullTextFilter": term})
    query = {"fullTextFilterTerm": "c", "fullTextFilterFields": ",".join(paths)}
    answer = await service.http.get(QUERY, params=query)
    assert (answer.status_code, "20 paths" in answer.text) == (400, True)
    found = await posted(service, fullTextFilter={"term": "c", "fields": paths[:20]})
    assert found["totalItems"] == 0


@pytest.mark.spec("catalog.by-query")
async def test_a_cursor_that_was_written_by_hand_is_bounded_as_questions_are(
    service: Service, subtests: pytest.Subtests
) -> None:
    cases: list[dict[str, Any]] = [
        {
            "orderFields": [{"field": f"spec.part{number}"} for number in range(11)],
            "orderFieldValues": ["x"] * 12,
        },
        {"fullTextFilter": {"term": "c", "fields": ["spec.x"] * 21}},
        {"fullTextFilter": {"term": "c" * 201}},
        {"totalItems": -1},
        {"totalItems": 10**30},
    ]
    for parts in cases:
        with subtests.test(parts=parts):
            answer = await service.http.get(QUERY, params={"cursor": cursor(**parts)})
            assert answer.status_code == 400, answer.text
            assert "not a cursor" in answer.json()["error"]["message"]


@pytest.mark.spec("catalog.by-query-post")
@pytest.mark.parametrize("part", ["type", "targetRef"])
async def test_types_and_targets_of_relations_count_as_conditions(
    service: Service, part: str
) -> None:
    wanted = {part: {"$in": [f"x{number}" for number in range(501)]}}
    told = await refusal(service, {"query": {"relations": {"$contains": wanted}}})
    assert "500 conditions" in told


@pytest.mark.spec("catalog.by-query-post")
async def test_as_many_conditions_on_relations_as_there_may_be_are_answered(
    service: Service,
) -> None:
    await service.push("some", component("app", owner="team-7"), component("other", owner="none"))
    wanted = [
        {"relations": {"$contains": {"targetRef": f"group:default/team-{number}"}}}
        for number in range(240)
    ]
    found = await posted(service, query={"$any": wanted})
    assert [item["metadata"]["name"] for item in found["items"]] == ["app"]


@pytest.mark.spec("catalog.by-query")
async def test_behind_the_last_entity_the_total_is_still_the_total(service: Service) -> None:
    await service.push("some", *map(component, "abc"))
    assert (await page(service, offset="3"))["totalItems"] == 3
    assert (await page(service, filter="kind=api"))["totalItems"] == 0
