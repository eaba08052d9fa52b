"""Columns of the catalog that a person chooses: facts of data sources, levels of scorecards."""

from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

import msgspec

from factbook.auth.permissions import SOURCE_READ
from factbook.catalog.store import by_ref
from factbook.catalog.store.browse import EntityRow
from factbook.checks.definitions.scorecard import NO_LEVEL_TITLE
from factbook.checks.levels import level_store
from factbook.checks.levels.grader import decoded
from factbook.checks.scorecards.scorecard_figures import ScorecardInEffect
from factbook.facts import key_values
from factbook.facts.datasource import DataSource
from factbook.facts.entity_filter import Matcher
from factbook.facts.freshness import Latest, reason_of
from factbook.facts.reasons import NEVER_COLLECTED
from factbook.facts.schema import Fact
from factbook.http.requests import offloaded
from factbook.integrations import catalog
from factbook.storage import Database
from factbook.web.site import fact_display, formats
from factbook.web.site.formats import segment
from factbook.web.site.page_context import PageContext

# Begins the name of a column with levels; no source has a colon in its id.
_LEVELS: Final = "scorecard:"
_CHOICES: Final = 200


class FactOfSource(NamedTuple):
    """A fact of a source; `bit` is the one that holds it where the catalog itself knows it."""

    source: DataSource
    fact: Fact
    bit: int | None


class CatalogColumn(NamedTuple):
    """A column: `name` as in the address, and what it shows."""

    name: str
    title: str
    shows: FactOfSource | ScorecardInEffect


class ColumnValue(NamedTuple):
    """The value about an entity, or the stored reason for none; neither if nothing tells of it."""

    value: Any = None
    reason: str | None = None
    stale: bool = False


class ColumnCell(NamedTuple):
    """A value in words or the reason in short, with the path of the page about it."""

    text: str
    reason: str
    path: str
    stale: bool = False


class ChosenColumns(NamedTuple):
    """The columns, and what is to be said of those that are none."""

    columns: list[CatalogColumn]
    hints: list[str]


_Found = Mapping[int, Mapping[str, Latest]]


async def chosen(
    visit: PageContext, names: Sequence[str], cards: Sequence[ScorecardInEffect]
) -> ChosenColumns:
    """The columns with these names that the person may see."""
    columns, hints = list[CatalogColumn](), list[str]()
    sources = await _sources(visit) if names else {}
    for name in names:
        column = _levels(name, cards) if name.startswith(_LEVELS) else _fact(name, sources)
        if column is None:
            hints.append(f"There is no column {name}.")
        else:
            columns.append(column)
    return ChosenColumns(columns, hints)


async def choices(visit: PageContext, cards: Sequence[ScorecardInEffect]) -> list[tuple[str, str]]:
    """Names and titles of columns: the levels, and the facts of the first sources."""
    found = [(f"{_LEVELS}{card.id}", f"Level of {card.title}") for card, _ in cards]
    for source in (await _sources(visit)).values():
        found += [
            (f"{source.id}/{fact.name}", f"{fact_display.title(fact)} · {source.title}")
            for fact in source.schema
        ]
        if len(found) >= _CHOICES:
            break
    return found[:_CHOICES]


async def values(
    database: Database, columns: Sequence[CatalogColumn], rows: Sequence[EntityRow]
) -> list[list[ColumnValue]]:
    """The values of the entities, row by row."""
    if not columns:
        return [[] for _ in rows]
    ids = [row.id for row in rows]
    facts = [one.shows for one in columns if isinstance(one.shows, FactOfSource)]
    sources = sorted({one.source.id for one in facts if one.bit is None})
    latest = await key_values.latest_of_entities(database, sources, ids)
    has_bits, has_levels = any(one.bit for one in facts), len(facts) < len(columns)
    bits = await by_ref.compliance_of_ids(database, ids) if has_bits else {}
    levels = await level_store.of_entities(database, ids) if has_levels else {}
    found: list[list[ColumnValue]] = await offloaded(_values, columns, rows, latest, bits, levels)
    return found


def cells(
    columns: Sequence[CatalogColumn], row: EntityRow, found: Sequence[ColumnValue]
) -> list[ColumnCell]:
    """The cells of an entity."""
    path = formats.entity_path(row.ref)
    return [_cell(path, column, one) for column, one in zip(columns, found, strict=True)]


async def _sources(visit: PageContext) -> Mapping[str, DataSource]:
    if not visit.may(SOURCE_READ):
        return {}
    return (await visit.state.registry.current()).sources


def _fact(name: str, sources: Mapping[str, DataSource]) -> CatalogColumn | None:
    source_id, _, fact_name = name.partition("/")
    source = sources.get(source_id)
    fact = next((one for one in source.schema if one.name == fact_name), None) if source else None
    if source is None or fact is None:
        return None
    shows = FactOfSource(source, fact, catalog.bit(source_id, fact_name))
    return CatalogColumn(name, fact_display.title(fact), shows)


def _levels(name: str, cards: Sequence[ScorecardInEffect]) -> CatalogColumn | None:
    wanted = name.removeprefix(_LEVELS)
    found = (CatalogColumn(name, one.card.title, one) for one in cards if one.card.id == wanted)
    return next(found, None)


def _values(
    columns: Sequence[CatalogColumn],
    rows: Sequence[EntityRow],
    latest: _Found,
    bits: Mapping[int, int],
    levels: Mapping[int, bytes],
) -> list[list[ColumnValue]]:
    return [
        [
            _of_fact(one.shows, row, latest.get(row.id, {}), bits.get(row.id, 0))
            if isinstance(one.shows, FactOfSource)
            else _of_level(one.shows, levels.get(row.id, b""))
            for one in columns
        ]
        for row in rows
    ]


def _of_fact(
    shows: FactOfSource, row: EntityRow, latest: Mapping[str, Latest], bits: int
) -> ColumnValue:
    source, fact, bit = shows
    if bit is not None:
        return ColumnValue(bool(bits & bit))
    known = latest.get(source.id)
    if known is None:
        matcher = Matcher(msgspec.json.decode(row.document))
        is_asked = matcher.lets_through(source.selection)
        return ColumnValue(reason=NEVER_COLLECTED if is_asked else None)
    value = known.facts.get(fact.name)
    if value is None:
        return ColumnValue(reason=reason_of(fact.name, known.reasons) or NEVER_COLLECTED)
    return ColumnValue(value, stale=fact.name in known.kept)


def _of_level(given: ScorecardInEffect, levels: bytes) -> ColumnValue:
    graded = decoded(levels, given.slot)
    if graded is None or graded.coverage is None:
        return ColumnValue()
    titles = [NO_LEVEL_TITLE, *(level.title for level in given.card.levels)]
    return ColumnValue(titles[graded.level])


def _cell(path: str, column: CatalogColumn, found: ColumnValue) -> ColumnCell:
    if not isinstance(column.shows, FactOfSource):
        return ColumnCell(found.value or "", "", f"{path}#checks")
    source, fact, _ = column.shows
    text = "" if found.value is None else fact_display.in_words(fact, found.value) or "empty"
    reason = "" if found.reason is None else fact_display.plain(found.reason).short
    fact_path = f"{path}/facts/{segment(source.id)}/{segment(fact.name)}"
    return ColumnCell(text, reason, fact_path, found.stale)
