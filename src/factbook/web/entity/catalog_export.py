"""CSV of the entities that a filter of the catalog lets through, with the chosen columns."""

from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from typing import Final

from factbook.auth.permissions import CATALOG_READ
from factbook.catalog.store import browse
from factbook.catalog.store.broken_references import BrokenEntity
from factbook.catalog.store.browse import EntityRow, Filter
from factbook.facts.reasons import word
from factbook.http import csv_lines
from factbook.http.requests import Reply, offloaded
from factbook.storage import Database
from factbook.web.entity import catalog_columns, catalog_filter, entity_rows
from factbook.web.entity.catalog_columns import CatalogColumn, ColumnValue, FactOfSource
from factbook.web.entity.catalog_query import PATH, CatalogQuery
from factbook.web.site.endpoint import PageRoute
from factbook.web.site.page_context import PageContext

EXPORT = f"{PATH}/export"
_BROKEN: Final = ("dangling", "set", "pushedBy")


async def export(visit: PageContext) -> Reply:
    """The matching entities as CSV, by reference."""
    asked = await CatalogQuery.of(visit)
    cards = await catalog_filter.scorecards(visit)
    wanted, _ = await catalog_filter.of(visit, asked, cards)
    columns, _ = await catalog_columns.chosen(visit, asked.column, cards)
    return Reply(
        _lines(visit.state.database, asked, wanted, columns),
        headers=csv_lines.attachment("catalog"),
        content_type=csv_lines.CONTENT_TYPE,
    )


async def _lines(
    database: Database, asked: CatalogQuery, wanted: Filter, columns: Sequence[CatalogColumn]
) -> AsyncIterator[bytes]:
    yield csv_lines.line(
        [*entity_rows.EXPORTED, *(_BROKEN if asked.broken else ()), *_titles(columns)]
    ).encode()
    async for rows in browse.stream(database, wanted):
        values = await catalog_columns.values(database, columns, rows)
        broken = await catalog_filter.broken(database, asked, rows)
        yield await offloaded(_portion, rows, columns, values, broken)


def _portion(
    rows: Sequence[EntityRow],
    columns: Sequence[CatalogColumn],
    values: Sequence[Sequence[ColumnValue]],
    broken: Mapping[str, BrokenEntity] | None,
) -> bytes:
    lines = (
        csv_lines.line(
            [*entity_rows.exported(row), *_of_broken(row, broken), *_cells(columns, found)]
        )
        for row, found in zip(rows, values, strict=True)
    )
    return "".join(lines).encode()


def _of_broken(row: EntityRow, broken: Mapping[str, BrokenEntity] | None) -> Iterator[object]:
    if broken is not None:
        found = broken.get(row.ref)
        yield found and " ".join(f"{field}={target}" for field, target in found.references)
        yield found and found.set
        yield found and found.pushed_by


def _titles(columns: Sequence[CatalogColumn]) -> Iterator[str]:
    """The name of each column, and for a fact those beside it: why it is unknown, and stale."""
    for column in columns:
        yield column.name
        if isinstance(column.shows, FactOfSource):
            yield f"{column.name} unknownReason"
            yield f"{column.name} stale"


def _cells(columns: Sequence[CatalogColumn], found: Sequence[ColumnValue]) -> Iterator[object]:
    for column, one in zip(columns, found, strict=True):
        yield csv_lines.plain(one.value)
        if isinstance(column.shows, FactOfSource):
            yield one.reason and word(one.reason)
            yield None if one.value is None else ("true" if one.stale else "false")


CATALOG_EXPORT: Sequence[PageRoute] = (PageRoute("GET", EXPORT, export, (CATALOG_READ,)),)
