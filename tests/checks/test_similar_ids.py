"""Checks whose ids differ in nothing but case, and names that only look alike."""

from functools import partial
from typing import Any

import pytest

from factbook.checks import state
from factbook.checks.definitions.definition_versions import check_store
from factbook.checks.results import evaluator, result_queries, state_store
from factbook.checks.results.result_queries import ResultFilter
from factbook.checks.results.state_store import StateCounts
from factbook.storage import Database
from tests.checks.catalog import CheckedCatalog, a_check, leaf
from tests.checks.making import problems
from tests.checks.scorecards import document, put
from tests.service import Time

pytestmark = pytest.mark.both_databases

UPPER = a_check("A", leaf("on", "equal", value=True))
LOWER = a_check("a", leaf("on", "equal", value=False))
READER = a_check("reader", leaf("A", "equal", "pass", source="checks"))
RULE = leaf("on", "isKnown")


@pytest.fixture
async def catalog(database: Database) -> CheckedCatalog:
    """A component for which one of two checks passes, and the other fails."""
    catalog = CheckedCatalog(database, Time())
    await catalog.push(shop="red")
    await catalog.record("shop", on=True)
    await catalog.publish(UPPER, LOWER, READER)
    return catalog


async def words(catalog: CheckedCatalog) -> dict[str, str]:
    found = await result_queries.read_entity_results(
        catalog.database, "component:default/shop", catalog.time()
    )
    assert found is not None
    return {one.check.id: state.name_state(one.state) for one in found.results}


async def test_checks_whose_ids_differ_in_case_stay_apart(catalog: CheckedCatalog) -> None:
    database = catalog.database
    assert await words(catalog) == {"A": "pass", "a": "fail", "reader": "pass"}
    await catalog.record("shop", on=False)
    assert await words(catalog) == {"A": "fail", "a": "pass", "reader": "fail"}
    assert await state_store.count_totals(database) == {
        "A": StateCounts(failing=1),
        "a": StateCounts(passing=1),
        "reader": StateCounts(failing=1),
    }
    failing = ResultFilter(states=["fail"])
    assert len(await result_queries.list_check_rows(database, "A", failing, 10)) == 1
    assert await result_queries.list_check_rows(database, "a", failing, 10) == []
    await database.write(partial(check_store.delete, id_="a"))
    await evaluator.finish_publications(database, catalog.time)
    assert await words(catalog) == {"A": "fail", "reader": "fail"}
    [change] = await database.all(
        "SELECT DISTINCT check_id FROM check_changes WHERE check_id <> ?", ("reader",)
    )
    assert change == ("A",)


async def test_scorecards_whose_ids_differ_in_case_stay_apart(catalog: CheckedCatalog) -> None:
    for id_, entry in (("Ready", "A"), ("ready", "a")):
        await put(catalog.database, document(id_, entries=[entry]))
    stored = await catalog.database.all("SELECT id, draft FROM scorecards")
    assert {id_: '"entries":["A"]' in draft for id_, draft in stored} == {
        "Ready": True,
        "ready": False,
    }


def test_ids_and_labels_that_look_like_others_are_refused(subtests: pytest.Subtests) -> None:
    cases: list[tuple[dict[str, Any], str]] = [
        ({"id": "x" * 101}, "id"),
        ({"id": ""}, "id"),
        ({"id": "\u0430"}, "id"),  # Cyrillic
        ({"id": "ﬁx"}, "id"),
        ({"id": "a/b"}, "id"),
        ({"id": "a\n"}, "id"),
        ({"id": ".."}, "id"),
        ({"id": "-a"}, "id"),
        ({"id": "\u0661"}, "id"),
        ({"title": "a\u202eb"}, "title"),
        ({"title": "a\u200bb"}, "title"),
        ({"labels": ["pro\u00add"]}, "labels[0]"),
        ({"labels": ["prod", "pro\u200bd"]}, "labels[1]"),
        ({"labels": ["x" * 201]}, "labels[0]"),
    ]
    for members, path in cases:
        with subtests.test(members=members):
            assert set(problems(RULE, **members)) == {path}
