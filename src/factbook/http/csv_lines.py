"""CSV (RFC 4180) that no spreadsheet takes for formulas: lines, values of a fact, and levels."""

import re
from collections.abc import AsyncIterator, Iterable
from typing import Any, Final

import msgspec

from factbook.checks.scorecards import level_pages
from factbook.checks.scorecards.level_pages import LevelFilter
from factbook.checks.scorecards.scorecard_figures import ScorecardInEffect
from factbook.clock import iso_or_none
from factbook.facts import entity_values
from factbook.facts.entity_values import EntityValue, ValueQuery
from factbook.storage import Database

CSV: Final = "text/csv"
CONTENT_TYPE: Final = b"text/csv; charset=utf-8; header=present"

# What spreadsheets take for the start of a formula, also in the width of East Asian characters.
# Some drop blanks and marks of order before it.
_DROPPED: Final = "\ufeff"
_FORMULA: Final = tuple("=+-@\t\r\n\uff1d\uff0b\uff0d\uff20")
_QUOTED: Final = frozenset('",\r\n')
_LEVELS: Final = ("entity", "level", "levelIfKnown", "score", "coverage")
_HEADER: Final = ("entityRef", "value", "unknownReason", "collectedAt", "kept")


def line(cells: Iterable[object]) -> str:
    """One line with its end; None is an empty cell.

    A text that could be a formula begins with an apostrophe; a number stays as it is.
    """
    return ",".join(map(_cell, cells)) + "\r\n"


def attachment(name: str) -> dict[str, str]:
    """The header by which a browser saves an answer under this name."""
    safe = re.sub(r"[^A-Za-z0-9._-]+", "-", name)
    return {"content-disposition": f'attachment; filename="{safe}.csv"'}


async def of_levels(
    database: Database, given: ScorecardInEffect, wanted: LevelFilter
) -> AsyncIterator[bytes]:
    """The entities with their levels of a scorecard, in pieces."""
    yield line(_LEVELS).encode()
    async for page in level_pages.everything(database, given, wanted):
        rows = ((ref, *given.named(one), one.score, one.coverage) for ref, one in page)
        yield "".join(map(line, rows)).encode()


async def of_values(database: Database, asked: ValueQuery) -> AsyncIterator[bytes]:
    """The entities with their values of a fact, by reference, in pieces."""
    yield line(_HEADER).encode()
    async for rows in entity_values.everything(database, asked):
        yield "".join(line(_cells(row)) for row in rows).encode()


def _cells(row: EntityValue) -> tuple[object, ...]:
    kept = None if row.value is None else ("true" if row.kept else "false")
    return row.ref, plain(row.value), row.reason, iso_or_none(row.at), kept


def plain(value: Any) -> object:
    """A value of a fact as a cell: booleans and what has parts as JSON."""
    if isinstance(value, bool | list | dict):
        return msgspec.json.encode(value).decode()
    return value


def _begins_late(text: str) -> bool:
    return text.lstrip().lstrip(_DROPPED).lstrip().startswith(_FORMULA)


def _cell(value: object) -> str:
    if value is None:
        return ""
    text = str(value)
    if isinstance(value, str) and (text.startswith(_FORMULA) or _begins_late(text)):
        text = f"'{text}"
    if _QUOTED.isdisjoint(text) and text == text.strip():
        return text
    return '"' + text.replace('"', '""') + '"'
