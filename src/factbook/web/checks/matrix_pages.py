"""Matrix of a scorecard: its checks for each entity; and levels as CSV."""

from collections.abc import Sequence
from typing import Final, NamedTuple
from urllib.parse import quote

from factbook.auth.permissions import CATALOG_READ, CHECK_READ
from factbook.checks import scorecard_figures, state
from factbook.checks.definitions.definition_versions import check_store
from factbook.checks.definitions.scorecard import NO_LEVEL_TITLE, NO_LEVEL_WORD, Scorecard
from factbook.checks.results import result_queries
from factbook.checks.scorecard_figures import LevelFilter, MatrixFilter, ScorecardInEffect
from factbook.errors import InputError
from factbook.http import csv_lines
from factbook.http.requests import Reply
from factbook.web.checks import check_page, scorecard_page, shares
from factbook.web.data_sources.fact_across import Address
from factbook.web.site import formats
from factbook.web.site.endpoint import PageRoute
from factbook.web.site.page_context import PageContext

_ROWS: Final = 50
MOST_COLUMNS: Final = 50
_FILTERS: Final = ("owner", "team", "level", "state")
# Told of by a link to what the result rests on.
_TELLING: Final = frozenset({"fail", "unknown", "exempt"})


class MatrixColumn(NamedTuple):
    """A check of a matrix with the title of its level."""

    id: str
    title: str
    level: str
    path: str


class MatrixCell(NamedTuple):
    """A state, or a share with the state that it comes to; `path` leads to what it rests on."""

    word: str
    path: str | None
    text: str = ""


class MatrixLine(NamedTuple):
    """An entity or a team with its level, and a cell for each check."""

    title: str
    path: str
    owner: str
    level: str
    score: int | None
    cells: list[MatrixCell]
    is_child: bool = False


async def entities(visit: PageContext) -> Reply:
    """Matrix of the entities of a scorecard and its checks."""
    shown, given = await scorecard_page.in_effect(visit)
    address = check_page.filter_address(
        visit, shares.scorecard_path(shown.card.id, "entities"), (*_FILTERS, "columns")
    )
    columns = await columns_of(visit, given.card)
    start = first_column(visit)
    wanted = MatrixFilter(await _levels(visit, given), check_page.state_asked(visit))
    chosen = columns[start : start + MOST_COLUMNS]
    ids = [one.id for one in chosen]
    after, database = check_page.place(visit), visit.state.database
    page = await scorecard_figures.read_matrix_page(database, given, ids, wanted, after, _ROWS)
    return visit.page(
        "scorecard-matrix.html",
        current="entities",
        card=given.card,
        columns=chosen,
        lines=[_entity(given.card, ids, row) for row in page.rows],
        address=address,
        chosen=[(name, address.query[name]) for name in _FILTERS if name in address.query],
        levels=[("", "Any"), *_level_choices(given.card)],
        states=check_page.STATES,
        asked={name: visit.query(name) for name in _FILTERS},
        before=address.to() if after else None,
        after=address.to(after=str(page.next)) if page.next else None,
        column_pages=column_pages(address, columns, start),
        age=await result_queries.read_age_of_checks(database, given.card.checks, visit.now),
        export=address._replace(path=shares.scorecard_path(given.card.id, "export")).to(
            state=None, columns=None
        ),
    )


async def export(visit: PageContext) -> Reply:
    """The levels of the entities as CSV."""
    _, given = await scorecard_page.in_effect(visit)
    return Reply(
        csv_lines.level_lines(visit.state.database, given, await _levels(visit, given), visit.now),
        headers=csv_lines.attachment(given.card.id),
        content_type=csv_lines.CONTENT_TYPE,
    )


async def columns_of(visit: PageContext, card: Scorecard) -> list[MatrixColumn]:
    """The checks of a scorecard by level, those that count for the score alone last."""
    stored = await check_store.everything(visit.state.database)
    titles = {one.id: one.title for one in stored}
    last = len(card.levels) + 1
    return [
        MatrixColumn(
            one.check,
            titles.get(one.check, one.check),
            scorecard_page.level_title(card, one.level),
            shares.check_path(one.check),
        )
        for one in sorted(card.entries, key=lambda one: card.rank(one.level) or last)
    ]


async def _levels(visit: PageContext, given: ScorecardInEffect) -> LevelFilter:
    owners = await check_page.owner_choices(visit)
    return scorecard_figures.filter_by_level(given.card, visit.query("level") or None, owners)


def _level_choices(card: Scorecard) -> list[tuple[str, str]]:
    found = [(level.id, level.title) for level in reversed(card.levels)]
    return [*found, (NO_LEVEL_WORD, NO_LEVEL_TITLE)] if found else []


def _entity(
    card: Scorecard, check_ids: Sequence[str], row: scorecard_figures.MatrixRow
) -> MatrixLine:
    query = f"?entity={quote(row.ref, safe='')}"
    cells = []
    for id_, byte in zip(check_ids, row.states, strict=True):
        word = state.name_state(byte)
        cells.append(MatrixCell(word, shares.check_path(id_) + query if word in _TELLING else None))
    return MatrixLine(
        formats.short_ref(row.ref),
        formats.entity_path(row.ref),
        row.owner,
        scorecard_page.rank_title(card, row.graded.level),
        row.graded.score,
        cells,
    )


def first_column(visit: PageContext) -> int:
    """The place of the first check that is shown."""
    text = visit.query("columns")
    if text and not (text.isascii() and text.isdigit() and len(text) <= 3):
        raise InputError("The address of this page is incomplete.")
    return int(text or 0)


def column_pages(
    address: Address, columns: Sequence[MatrixColumn], start: int
) -> list[tuple[str, str, bool]]:
    """(words, path, whether it is shown) of each part of the checks, if they are many."""
    if len(columns) <= MOST_COLUMNS:
        return []
    return [
        (
            f"{first + 1} to {min(first + MOST_COLUMNS, len(columns))}",
            address.to(columns=str(first)),
            first == start,
        )
        for first in range(0, len(columns), MOST_COLUMNS)
    ]


_NEEDS: Final = (CATALOG_READ, CHECK_READ)

SCORECARD_MATRICES: Sequence[PageRoute] = (
    PageRoute("GET", "/scorecards/{id}/entities", entities, _NEEDS),
    PageRoute("GET", "/scorecards/{id}/export", export, _NEEDS),
)
