"""A past for entities: rows of history as collections have written them, and what tools tell."""

import json
from collections.abc import AsyncIterator, Iterable, Mapping
from typing import Any

from factbook.facts import store
from factbook.facts.datasource import DataSource
from factbook.facts.freshness import Observation
from factbook.storage import Transaction
from tests.service import Service
from tests.storage.evaluating import evaluating
from tests.tools.checks import structured
from tests.tools.sources import COVERAGE

HISTORY = "get-fact-history"
CHANGES = "get-changed-facts"
PAYMENTS = "component:default/payments"
ORDERS = "component:default/orders"
ALL = {"since": "1970-01-01"}

ROW = ("source_id", "entity_id", "written_at", "facts", "reasons", "version")


async def id_of(service: Service, ref: str) -> int:
    found = await service.state.database.one("SELECT id FROM entities WHERE ref = ?", (ref,))
    assert found is not None, ref
    return int(found[0])


async def fail(
    service: Service,
    ref: str,
    values: Mapping[str, object],
    missing: Mapping[str, str],
    source: DataSource = COVERAGE,
) -> None:
    """Store what a collection at this moment brings that could not ask for all."""
    now, passing = service.time(), frozenset(missing)
    observed = Observation(await id_of(service, ref), values, missing, passing)
    await service.state.database.write(
        evaluating(lambda tx: store.record_facts(tx, source, [observed], now))
    )


async def write(
    service: Service, rows: Iterable[tuple[str, int, int, Mapping[str, object]]]
) -> None:
    """Rows of source, entity id, time and facts, all at once."""
    given = [
        (source, entity_id, time, json.dumps(facts), "{}", "1.0.0")
        for source, entity_id, time, facts in rows
    ]

    def insert(transaction: Transaction) -> None:
        transaction.insert("facts_history", ROW, given)

    await service.state.database.write(insert)


async def answered(service: Service, tool: str, **arguments: Any) -> dict[str, Any]:
    """What a tool answers, checked against its schema."""
    return structured(tool, await service.ask(tool, **arguments))


async def rows(service: Service, **arguments: Any) -> list[dict[str, Any]]:
    """The first page of the history of payments."""
    found = await answered(service, HISTORY, name="payments", **arguments)
    listed: list[dict[str, Any]] = found["history"]
    return listed


async def changes(service: Service, **arguments: Any) -> list[dict[str, Any]]:
    """The changes of a page that is the only one; without arguments, of all times."""
    found = await answered(service, CHANGES, **(arguments or ALL))
    assert "nextCursor" not in found
    listed: list[dict[str, Any]] = found["changes"]
    return listed


async def pages(service: Service, tool: str, **arguments: Any) -> AsyncIterator[dict[str, Any]]:
    """Every page that a tool gives, following nextCursor; each is checked against its schema."""
    cursor: dict[str, str] = {}
    for _ in range(200):
        page = await answered(service, tool, **arguments, **cursor)
        yield page
        if "nextCursor" not in page:
            return
        cursor = {"cursor": page["nextCursor"]}
    raise AssertionError("the pages do not end")
