"""Results of several checks, page by page: by check, and of each by reference."""

from collections import defaultdict
from collections.abc import AsyncIterator, Sequence
from typing import Final, NamedTuple

from factbook.checks.maintenance.check_set import CheckCache
from factbook.checks.results import result_queries
from factbook.checks.results.result_queries import CheckedRow, ResultFilter
from factbook.checks.rules import language
from factbook.checks.versions.check_store import check_store
from factbook.facts import latest_rows
from factbook.storage import Database

# Checks that a page looks at: with a filter that few results meet it holds few.
_MOST_CHECKS: Final = 20
_PORTION: Final = 1_000


class ResultPlace(NamedTuple):
    """A place among results: a check, and the reference of the last entity that was read."""

    check_id: str = ""
    ref: str = ""


class CheckResultPage(NamedTuple):
    """Results with the ids of their checks, and the place after them; None at the end."""

    rows: list[tuple[str, CheckedRow]]
    next: ResultPlace | None


async def page(
    database: Database, only: Sequence[str], wanted: ResultFilter, place: ResultPlace, limit: int
) -> CheckResultPage:
    """Up to `limit` results from a place on; those of every check in effect if `only` is empty."""
    ids = [id_ for id_ in await _ids(database, only) if id_ >= place.check_id]
    rows: list[tuple[str, CheckedRow]] = []
    for looked, id_ in enumerate(ids):
        if looked == _MOST_CHECKS or len(rows) == limit:
            return CheckResultPage(rows, ResultPlace(id_))
        after = place.ref if id_ == place.check_id else ""
        room = limit - len(rows)
        found = await result_queries.of_check(database, id_, wanted, room + 1, after)
        rows += [(id_, row) for row in await _marked(database, id_, found[:room])]
        if len(found) > room:
            return CheckResultPage(rows, ResultPlace(id_, found[room - 1].ref))
    return CheckResultPage(rows, None)


async def everything(
    database: Database, only: Sequence[str], wanted: ResultFilter
) -> AsyncIterator[list[tuple[str, CheckedRow]]]:
    """All results, in portions."""
    place: ResultPlace | None = ResultPlace()
    while place is not None:
        rows, place = await page(database, only, wanted, place, _PORTION)
        yield rows


async def _marked(
    database: Database, check_id: str, rows: Sequence[CheckedRow]
) -> list[CheckedRow]:
    """The rows, stale where a value that the check reads could not be renewed."""
    known = await database.remembered.of(CheckCache).loaded(database)
    compiled = next((one.compiled for one in known.checks if one.id == check_id), None)
    reads = defaultdict[str, set[str]](set)
    for _, rule in compiled.check.rules() if compiled else ():
        for fact in language.walk_references(rule):
            reads[fact.source].add(fact.fact)
    ids = [row.entity_id for row in rows]
    stale = await latest_rows.stale_of(database, reads, ids)
    return [row._replace(stale=True) if row.entity_id in stale else row for row in rows]


async def _ids(database: Database, only: Sequence[str]) -> list[str]:
    stored = await check_store.everything(database)
    return [one.id for one in stored if one.slot is not None and (not only or one.id in only)]
