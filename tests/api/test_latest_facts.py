"""`/api/tech-insights/v1/facts/{id}`: reading the latest facts of a source."""

import pytest

from tests.api.defining import API, FACTS, WEB, item, latest, push, refusal
from tests.service import Service

ON_SQLITE = pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)


@pytest.mark.both_databases
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
async def test_a_question_for_the_latest_facts_that_makes_no_sense_is_refused(
    covered: Service, subtests: pytest.Subtests
) -> None:
    cases: list[tuple[str, dict[str, str], int]] = [
        ("coverage", {"entity": "component:nobody"}, 404),
        ("techdocs", {"entity": "component:nobody"}, 404),
        ("coverage", {"entity": "nobody"}, 400),
        ("coverage", {"limit": "0"}, 400),
        ("coverage", {"limit": "1001"}, 400),
        ("coverage", {"cursor": "x" * 641}, 400),
        ("nothing", {}, 404),
    ]
    for path, query, status in cases:
        with subtests.test(path=path, query=query):
            answer = await covered.http.get(f"{FACTS}/{path}", params=query)
            assert refusal(answer, status)
