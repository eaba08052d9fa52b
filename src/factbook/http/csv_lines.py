"""CSV (RFC 4180) that no spreadsheet takes for formulas: lines, values of a fact, and levels."""

import re
from collections.abc import AsyncIterator, Iterable
from typing import Any, Final

import msgspec

from factbook.checks import scorecard_figures
from factbook.checks.results import result_queries
from factbook.checks.scorecard_figures import LevelFilter, ScorecardInEffect
from factbook.clock import iso, iso_or_none
from factbook.facts import across
from factbook.facts.across import EntityValue, ValueQuery
from factbook.storage import Database

CSV: Final = "text/csv"
CONTENT_TYPE: Final = b"text/csv; charset=utf-8; header=present"

# What spreadsheets take for the start of a formula, also in the width of East Asian characters.
_FORMULA: Final = "=+-@\uff1d\uff0b\uff0d\uff20"
_FIRST: Final = tuple(f"\t\r\n{_FORMULA}")
# Depending on the language and the last import, spreadsheets split lines at one of these instead
# of commas. Quotes don't help then: the quote of a cell isn't the first character of its part.
_SEPARATORS: Final = ";|\t\r\n"
# Separators, with blanks, invisible characters and quotes, which some spreadsheets drop.
_BEFORE_FORMULA: Final = re.compile(r'[\s\x00-\x20\ufeff\u200b-\u200f\u2060";|]+')
_QUOTED: Final = frozenset(f'",{_SEPARATORS}')
_LEVELS: Final = ("entity", "level", "levelIfKnown", "score", "coverage", "asOf")
_HEADER: Final = ("entityRef", "value", "unknownReason", "collectedAt", "kept", "stale")


def render_csv_line(cells: Iterable[object]) -> str:
    """One line with its end; None is an empty cell.

    A text that could be a formula begins with an apostrophe, and so does each part of it that could
    be one where lines are split at semicolons, bars or tabs. A number stays as it is.
    """
    return ",".join(map(_render_csv_cell, cells)) + "\r\n"


def make_attachment_headers(name: str) -> dict[str, str]:
    """The header by which a browser saves an answer under this name."""
    safe = re.sub(r"[^A-Za-z0-9._-]+", "-", name)
    return {"content-disposition": f'attachment; filename="{safe}.csv"'}


async def stream_level_lines(
    database: Database, given: ScorecardInEffect, wanted: LevelFilter, now: int
) -> AsyncIterator[bytes]:
    """The entities with their levels of a scorecard, in pieces."""
    yield render_csv_line(_LEVELS).encode()
    as_of = iso((await result_queries.read_age_of_checks(database, given.card.checks, now)).as_of)
    async for page in scorecard_figures.read_all_ranked(database, given, wanted):
        rows = ((ref, *given.words(one), one.score, one.coverage, as_of) for ref, one in page)
        yield "".join(map(render_csv_line, rows)).encode()


async def stream_value_lines(database: Database, asked: ValueQuery) -> AsyncIterator[bytes]:
    """The entities with their values of a fact, by reference, in pieces."""
    yield render_csv_line(_HEADER).encode()
    async for rows in across.list_all_values(database, asked):
        yield "".join(render_csv_line(_list_value_cells(row)) for row in rows).encode()


def _list_value_cells(row: EntityValue) -> tuple[object, ...]:
    kept = None if row.value is None else ("true" if row.kept else "false")
    return row.ref, render_plain_cell(row.value), row.reason, iso_or_none(row.at), kept, kept


def render_plain_cell(value: Any) -> object:
    """A value of a fact as a cell: booleans and what has parts as JSON."""
    if isinstance(value, bool | list | dict):
        return msgspec.json.encode(value).decode()
    return value


def _render_csv_cell(value: object) -> str:
    if value is None:
        return ""
    text = str(value)
    if isinstance(value, str):
        text = _disarm_formulas(text)
    if _QUOTED.isdisjoint(text) and text == text.strip():
        return text
    return '"' + text.replace('"', '""') + '"'


def _disarm_formulas(text: str) -> str:
    """The text with an apostrophe before it, and after separators in it, if a formula follows."""
    start = _BEFORE_FORMULA.match(text)
    is_formula = text.startswith(_FIRST) or _is_formula(text, start.end() if start else 0)

    def mark(found: re.Match[str]) -> str:
        before = found[0]
        part = max(map(before.rfind, _SEPARATORS)) + 1
        if part == 0 or not _is_formula(text, found.end()):
            return before
        return f"{before[:part]}'{before[part:]}"

    marked = _BEFORE_FORMULA.sub(mark, text)
    return f"'{marked}" if is_formula else marked


def _is_formula(text: str, place: int) -> bool:
    return text[place : place + 1] in _FORMULA and place < len(text)
