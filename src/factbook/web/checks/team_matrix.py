"""Matrix of a scorecard by team: its checks over a team with all groups below it."""

from collections.abc import Mapping, Sequence
from typing import Final

from factbook.auth.permissions import CATALOG_READ, CHECK_READ
from factbook.catalog.store import related_entities
from factbook.checks.results import result_queries, state_store
from factbook.checks.results.grader import GroupHierarchy
from factbook.checks.results.state_store import StateCounts
from factbook.http.requests import Reply
from factbook.storage import Database
from factbook.web.checks import check_page, matrix_pages, scorecard_page, shares
from factbook.web.checks.matrix_pages import MOST_COLUMNS, MatrixCell, MatrixColumn, MatrixLine
from factbook.web.checks.scorecard_page import TeamRow
from factbook.web.checks.shares import ResultFigures
from factbook.web.site.endpoint import PageRoute
from factbook.web.site.page_context import PageContext

# Each row is a sum over all that is below it.
_ROWS: Final = 25


async def teams(visit: PageContext) -> Reply:
    """Matrix of the teams at the top, or of one, with those right below, and the checks."""
    shown, given = await scorecard_page.in_effect(visit)
    database, path = visit.state.database, shares.scorecard_path(shown.card.id, "teams")
    address = check_page.filter_address(visit, path, ("team", "columns"))
    columns = await matrix_pages.columns_of(visit, given.card)
    start, number = matrix_pages.first_column(visit), check_page.page_number(visit)
    chosen = columns[start : start + MOST_COLUMNS]
    rows, has_more = await scorecard_page.team_rows(visit, given, check_page.team(visit), _ROWS)
    tree = GroupHierarchy(await related_entities.read_group_parents(database))
    sums = await _sums(database, {row.name: tree.within(row.name) for row in rows})
    lines = []
    for row in rows:
        leads = address._replace(query={"team": row.name}).to()
        has_below = row.name in tree.children and row.name != check_page.team(visit)
        lines.append(_line(row, leads if has_below else row.entities, chosen, sums[row.name]))
    return visit.page(
        "scorecard-matrix.html",
        current="teams",
        card=given.card,
        age=await result_queries.read_age_of_checks(database, given.card.checks, visit.now),
        columns=chosen,
        lines=lines,
        address=address,
        chosen=[("team", address.query["team"])] if "team" in address.query else [],
        before=address.to(page=str(number - 1)) if number > 1 else None,
        after=address.to(page=str(number + 1)) if has_more else None,
        column_pages=matrix_pages.column_pages(address, columns, start),
    )


async def _sums(
    database: Database, teams: Mapping[str, set[str]]
) -> dict[str, Mapping[str, StateCounts]]:
    """The counts of each team by check, over all groups within it.

    A large team is summed from the smaller ones in it, so that no group is read twice for both.
    """
    found: dict[str, Mapping[str, StateCounts]] = {}
    for name in sorted(teams, key=lambda name: len(teams[name])):
        rest, parts = set(teams[name]), []
        for other in reversed(found):
            if teams[other] <= rest:
                rest -= teams[other]
                parts.append(found[other])
        found[name] = _added([*parts, await state_store.count_of_owners(database, sorted(rest))])
    return found


def _added(parts: Sequence[Mapping[str, StateCounts]]) -> dict[str, StateCounts]:
    nothing = StateCounts()
    checks = {check_id for part in parts for check_id in part}
    return {
        check_id: StateCounts(
            *map(sum, zip(*(part.get(check_id, nothing) for part in parts), strict=True))
        )
        for check_id in checks
    }


def _line(
    row: TeamRow, path: str, columns: Sequence[MatrixColumn], counts: Mapping[str, StateCounts]
) -> MatrixLine:
    cells = [_share(one.id, row, counts.get(one.id, StateCounts())) for one in columns]
    return MatrixLine(row.title, path, "", "", None, cells, row.is_child)


def _share(check_id: str, row: TeamRow, counts: StateCounts) -> MatrixCell:
    """The number of a team in the worst state that there is."""
    found = ResultFigures(counts)
    if not found.total:
        word = "exempt" if counts.exempt else "not-applicable"
        return MatrixCell(word, None)
    by_state = {"fail": counts.failing, "unknown": counts.undecided, "pass": counts.passing}
    word = next(word for word, number in by_state.items() if number)
    text = f"{by_state[word]} of {found.total}"
    return MatrixCell(word, shares.check_path(check_id, **row.query, state=word), text)


TEAM_MATRIX: Sequence[PageRoute] = (
    PageRoute("GET", "/scorecards/{id}/teams", teams, (CATALOG_READ, CHECK_READ)),
)
