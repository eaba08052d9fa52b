"""A page of entities costs the same wherever it is: its position enters an index of SQLite."""

import itertools
import sqlite3
from contextlib import closing

import pytest
from msgspec.structs import replace

from factbook.catalog.store.conditions import Has
from factbook.catalog.store.entity_query import Place, Query, SortField
from tests.service import Service, component

ENTITIES = 3_000
# Instructions of SQLite's machine that are counted as one.
PIECE = 20
NAME = SortField("metadata.name")
COMPONENTS = Has("kind", ["component"])


def ref(number: int) -> str:
    return f"component:n-{number:05}/app"


@pytest.fixture
async def file(service: Service) -> str:
    """The database of a service with entities of one name."""
    items = [component("app") for _ in range(ENTITIES)]
    for number, item in enumerate(items):
        item["metadata"]["namespace"] = f"n-{number:05}"
    assert (await service.push("all", *items)).status_code == 200
    return service.state.settings.database_url.removeprefix("sqlite:///")


def cost(file: str, query: Query, place: Place) -> int:
    """The pieces of work of a page after a position; it has to be full."""
    count = 0

    def counted() -> None:
        nonlocal count
        count += 1

    with closing(sqlite3.connect(file)) as database:
        database.set_progress_handler(counted, PIECE)
        rows = database.execute(*replace(query, after=place).sql("e.ref")).fetchall()
    assert len(rows) == query.limit
    return count


@pytest.mark.slow
@pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)
async def test_a_page_costs_the_same_wherever_it_is(subtests: pytest.Subtests, file: str) -> None:
    queries = {
        "all": Query(),
        "a kind": Query(COMPONENTS),
        "one name": Query(order=[NAME]),
        "one name of a kind": Query(COMPONENTS, [NAME]),
    }
    for (name, query), backward in itertools.product(queries.items(), (False, True)):
        with subtests.test(name, backward=backward):
            asked = replace(query, limit=20, backward=backward)
            first, middle, last = (
                cost(file, asked, ["app", ref(number)] if query.order else [ref(number)])
                for number in (30, ENTITIES // 2, ENTITIES - 31)
            )
            assert max(first, middle, last) < 1.5 * min(first, middle, last)
