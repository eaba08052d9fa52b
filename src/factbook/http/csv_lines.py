"""CSV (RFC 4180) safe from formula injection: lines, fact values, and levels."""

import re
from collections.abc import AsyncIterator, Iterable
from typing import Any, Final

import msgspec

from factbook.checks import scorecard_figures
from factbook.checks.results import result_queries
from factbook.checks.scorecard_figures import LevelFilter, ScorecardInEffect
from factbook.clock import iso, iso_or_none
from factbook.facts import across
from factbook.facts.across import ValueQuery
from factbook.storage import Database

CSV: Final = "text/csv"
CONTENT_TYPE: Final = b"text/csv; charset=utf-8; header=present"

# Characters that start a formula in spreadsheets, including their full-width forms.
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
    """Render one line with its line ending; None is an empty cell.

    Text that could be a formula is prefixed with an apostrophe, as is each part that could become
    one if a spreadsheet splits lines at semicolons, bars or tabs. Numbers are unchanged.
    """
    return ",".join(map(_render_csv_cell, cells)) + "\r\n"


def make_attachment_headers(name: str) -> dict[str, str]:
    """Header that makes browsers save the answer as a file with this name."""
    safe = re.sub(r"[^A-Za-z0-9._-]+", "-", name)
    return {"content-disposition": f'attachment; filename="{safe}.csv"'}


async def stream_level_lines(
    database: Database, given: ScorecardInEffect, wanted: LevelFilter, now: int
) -> AsyncIterator[bytes]:
    """Stream the entities of a scorecard with their levels as CSV lines."""
    yield render_csv_line(_LEVELS).encode()
    as_of = iso((await result_queries.read_age_of_checks(database, given.card.checks, now)).as_of)
    async for page in scorecard_figures.read_all_ranked(database, given, wanted):
        rows = ((ref, *given.words(one), one.score, one.coverage, as_of) for ref, one in page)
        yield "".join(map(render_csv_line, rows)).encode()


async def stream_value_lines(database: Database, asked: ValueQuery) -> AsyncIterator[bytes]:
    """Stream entities with their values of a fact as CSV lines, by reference."""
    yield render_csv_line(_HEADER).encode()
    async for rows in across.list_all_values(database, asked):
        lines = []
        for row in rows:
            kept = None if row.value is None else ("true" if row.kept else "false")
            value, time = render_plain_cell(row.value), iso_or_none(row.at)
            lines.append(render_csv_line((row.ref, value, row.reason, time, kept, kept)))
        yield "".join(lines).encode()


def render_plain_cell(value: Any) -> object:
    """Convert a fact value to a CSV cell; booleans, lists and objects become JSON."""
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
    """Insert an apostrophe wherever a formula would start: at the start or after a separator."""
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
