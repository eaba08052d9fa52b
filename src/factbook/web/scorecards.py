"""Scorecard pages: the list, each scorecard, and its entity and team matrices."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple
from urllib.parse import quote

from factbook.audit.trail import AuditEntry
from factbook.auth.permissions import (
    CATALOG_READ,
    CHECK_READ,
    CHECK_WRITE,
    SCORECARD_WRITE,
    SOURCE_READ,
)
from factbook.catalog.store import related_entities
from factbook.checks import scorecard_figures, state
from factbook.checks.definitions import definition_writes, exemption_store, publications, scorecard
from factbook.checks.definitions.definition_versions import (
    StoredCheck,
    StoredScorecard,
    check_store,
    scorecard_store,
)
from factbook.checks.definitions.definition_writes import Adoption
from factbook.checks.definitions.exemption_store import ExemptionFilter
from factbook.checks.definitions.scorecard import (
    NO_LEVEL_TITLE,
    NO_LEVEL_WORD,
    Scorecard,
    ScorecardEntry,
)
from factbook.checks.results import level_store, result_queries, state_store
from factbook.checks.results.grader import NO_TALLY, GroupHierarchy, LevelTally
from factbook.checks.results.result_queries import ResultAge, ResultAges
from factbook.checks.results.state_store import StateCounts
from factbook.checks.scorecard_figures import (
    LevelFilter,
    MatrixFilter,
    RollupGroup,
    ScorecardInEffect,
)
from factbook.clock import DAY
from factbook.errors import NotFoundError
from factbook.http.csv_lines import CONTENT_TYPE, make_attachment_headers, stream_level_lines
from factbook.http.requests import Reply
from factbook.storage import Database, Transaction
from factbook.web import checks, formats, shares
from factbook.web.charts import draw_line_chart, draw_sparkline
from factbook.web.checks import find_chosen_team, read_current_scorecard
from factbook.web.pages import PageContext, PageRoute
from factbook.web.shares import (
    Address,
    ResultFigures,
    Share,
    describe_populations,
    make_filter_address,
    make_trend_points,
)

SCORECARDS_PATH: Final = "/scorecards"
_SCORECARDS_ON_PAGE: Final = 20
_DAYS: Final = 90
_MOST_WORST: Final = 3
_MOST_SHOWN: Final = 99


class ScorecardSummary(NamedTuple):
    """A row in the scorecard list; `card` is None if this release cannot read the scorecard."""

    stored: StoredScorecard
    card: Scorecard | None
    tally: LevelTally
    figures: ResultFigures
    levels: Sequence[Share]
    worst: Sequence[Share]
    trend: Any
    age: ResultAge | None = None

    @property
    def is_draft(self) -> bool:
        """True if it was never published."""
        return self.stored.newest is None


async def show_scorecards(visit: PageContext) -> Reply:
    """Show the scorecard list."""
    database = visit.state.database
    found = await scorecard_store.everything(database)
    after = visit.query("after")
    rest = [one for one in found if one.id > after]
    cards = [
        card
        for one in rest[:_SCORECARDS_ON_PAGE]
        if (card := read_current_scorecard(one)) is not None
    ]
    ids = {entry.check for card in cards for entry in card.entries}
    counts = await state_store.count_totals(database, sorted(ids))
    titles = {one.id: one.title for one in await check_store.everything(database)}
    waiting = await exemption_store.list_exemptions(
        database, ExemptionFilter("requested"), _MOST_SHOWN + 1
    )
    ages = await result_queries.read_result_age(database, visit.now)
    return visit.page(
        "scorecards.html",
        summaries=[
            await _summarize_scorecard(visit, one, ages, counts, titles)
            for one in rest[:_SCORECARDS_ON_PAGE]
        ],
        number=len(found),
        before=SCORECARDS_PATH if after else None,
        after=f"{SCORECARDS_PATH}?after={rest[_SCORECARDS_ON_PAGE - 1].id}"
        if len(rest) > _SCORECARDS_ON_PAGE
        else None,
        waiting=len(waiting),
        most=_MOST_SHOWN,
        may_adopt=visit.may(CHECK_WRITE, SCORECARD_WRITE, SOURCE_READ),
        may_write=checks.may_create_definition(visit, SCORECARD_WRITE),
    )


async def adopt_starter_drafts(visit: PageContext) -> Reply:
    """Create the starter drafts: a scorecard, and the checks that current sources support."""
    known = await visit.state.registry.latest()
    wanted, now = definition_writes.list_starter_documents(known.sources.values()), visit.now
    [card] = [one.document["id"] for one in wanted if one.kind == "scorecard"]

    def work(transaction: Transaction) -> Adoption:
        publications.lock_definitions(transaction)
        return definition_writes.adopt_starter(transaction, wanted, visit.person.ref, now)

    def about(made: Adoption) -> AuditEntry:
        return AuditEntry("scorecard.create", card, {"drafts": list(made.made)})

    made = await visit.writing(about)(work)
    words = (
        f"{len(made.made)} drafts were created. Review them, and publish the scorecard with them."
    )
    kept = f" {len(made.kept)} existed already and are unchanged." if made.kept else ""
    return visit.redirect(SCORECARDS_PATH, words + kept)


def sum_result_figures(card: Scorecard, counts: Mapping[str, StateCounts]) -> ResultFigures:
    """Add up the results of all non-advisory checks, over all entities."""
    total = StateCounts()
    for entry in card.entries:
        if not entry.advisory:
            total = total.plus(counts.get(entry.check, StateCounts()))
    return ResultFigures(total)


async def _summarize_scorecard(
    visit: PageContext,
    stored: StoredScorecard,
    ages: ResultAges,
    counts: Mapping[str, StateCounts],
    titles: Mapping[str, str],
) -> ScorecardSummary:
    database, now, card = visit.state.database, visit.now, read_current_scorecard(stored)
    if card is None or stored.slot is None:
        return ScorecardSummary(stored, card, NO_TALLY, ResultFigures(StateCounts()), [], [], None)
    tally = await level_store.count_all_levels(database, stored.slot)
    given = ScorecardInEffect(card, stored.slot)
    found = await scorecard_figures.read_trend(
        database, given, None, now // DAY - _DAYS, now, tally=tally
    )
    return ScorecardSummary(
        stored,
        card,
        tally,
        sum_result_figures(card, counts),
        shares.make_level_shares(card, tally),
        _list_worst_checks(card, counts, titles),
        draw_sparkline(
            make_trend_points(found),
            "Mean score, 90 days",
            notes=describe_populations(found),
            ident=f"trend-{card.id}",
        )
        if found
        else None,
        ages.of(card.checks),
    )


def _list_worst_checks(
    card: Scorecard, counts: Mapping[str, StateCounts], titles: Mapping[str, str]
) -> list[Share]:
    """The checks with the most failing entities, worst first."""
    failing = {one.check: counts.get(one.check, StateCounts()).failing for one in card.entries}
    worst = sorted((id_ for id_ in failing if failing[id_]), key=lambda id_: (-failing[id_], id_))
    return [
        Share(
            titles.get(id_, id_), failing[id_], 0, shares.make_check_path(id_, state="fail"), "bad"
        )
        for id_ in worst[:_MOST_WORST]
    ]


SCORECARD_LIST: Sequence[PageRoute] = (
    PageRoute("GET", SCORECARDS_PATH, show_scorecards, (CATALOG_READ, CHECK_READ)),
    PageRoute(
        "POST",
        f"{SCORECARDS_PATH}/-/starter",
        adopt_starter_drafts,
        (CHECK_WRITE, SCORECARD_WRITE, SOURCE_READ),
    ),
)


_TEAMS_ON_PAGE: Final = 50


class OpenedScorecard(NamedTuple):
    """The scorecard of a page; `given` is None until it is published and graded."""

    stored: StoredScorecard
    card: Scorecard
    given: ScorecardInEffect | None


class EntryRow(NamedTuple):
    """A check in a scorecard; `level` is the title of its level, `title` the check's title.

    `draft_tag` is the tag of the draft if the check was never published.
    """

    entry: ScorecardEntry
    level: str
    title: str
    draft_tag: str | None
    figures: ResultFigures
    query: Mapping[str, str]

    def path(self, word: str) -> str:
        """Path of the check page, filtered to the entities in a state."""
        return shares.make_check_path(self.entry.check, **self.query, state=word)


class TeamRow(NamedTuple):
    """A team including subteams; `entities` links to its entities, `path` to its subteams.

    `query` filters other pages to the team.
    """

    name: str
    title: str
    is_child: bool
    path: str | None
    entities: str
    tally: LevelTally
    levels: list[Share]
    query: Mapping[str, str]


async def show_scorecard(visit: PageContext) -> Reply:
    """Show the scorecard page."""
    shown = await find_opened_scorecard(visit)
    card, given, database = shown.card, shown.given, visit.state.database
    stored = {one.id: one for one in await check_store.everything(database)}
    team = checks.find_chosen_team(visit)
    owners = await checks.list_chosen_owners(visit) if team else None
    counts = await _count_scorecard_states(visit, card, owners)
    query = {"team": team} if team else {}
    entries = [_make_entry_row(card, one, stored, counts, query) for one in card.entries]
    common: dict[str, Any] = {
        "shown": shown,
        "card": card,
        "entries": sorted(
            entries, key=lambda row: card.rank(row.entry.level) or len(card.levels) + 1
        ),
        "drafts": [(row.entry.check, row.draft_tag) for row in entries if row.draft_tag],
        "may_write": await checks.may_write_definition(visit, shown.stored, SCORECARD_WRITE),
        "may_publish": visit.may(SCORECARD_WRITE, CHECK_WRITE),
        "seen": definition_writes.make_tag(shown.stored),
    }
    if given is None:
        return visit.page("scorecard.html", tally=None, team=None, **common)
    tally = await level_store.count_all_levels(database, given.slot, owners)
    rows, has_more = await list_team_rows(visit, given, team, _TEAMS_ON_PAGE)
    address = make_filter_address(visit, shares.make_scorecard_path(card.id), ("team",))
    number = visit.page_number()
    return visit.page(
        "scorecard.html",
        tally=tally,
        figures=sum_result_figures(card, counts),
        levels=shares.make_level_shares(card, tally, **query),
        target=_describe_target(card, tally),
        age=await result_queries.read_age_of_checks(database, card.checks, visit.now),
        chart=await _draw_score_chart(visit, given, team, tally),
        team=team,
        teams=rows,
        before=_number_teams(address, number - 1) if number > 1 else None,
        after=_number_teams(address, number + 1) if has_more else None,
        all_path=shares.make_scorecard_path(card.id),
        server=visit.server,
        **common,
    )


async def find_opened_scorecard(visit: PageContext) -> OpenedScorecard:
    """Find the scorecard in the URL; NotFoundError if missing or unreadable by this release."""
    id_ = checks.get_definition_id(visit, "scorecard")
    stored = await scorecard_store.existing(visit.state.database, id_)
    card = read_current_scorecard(stored)
    if card is None:
        raise NotFoundError(
            f"The scorecard {id_} was written by another release, and this one cannot read it."
        )
    is_graded = stored.slot is not None and stored.published is not None
    given = ScorecardInEffect(card, stored.slot or 0) if is_graded else None
    return OpenedScorecard(stored, card, given)


async def find_graded_scorecard(visit: PageContext) -> tuple[OpenedScorecard, ScorecardInEffect]:
    """Find the scorecard in the URL; raises NotFoundError if it has no results yet."""
    shown = await find_opened_scorecard(visit)
    if shown.given is None:
        raise NotFoundError(f"The scorecard {shown.stored.id} has no results yet.")
    return shown, shown.given


def get_level_title(card: Scorecard, level: str | None) -> str:
    """Title of a check's level; '' if the check counts only toward the score."""
    return next((one.title for one in card.levels if one.id == level), "")


def get_rank_title(card: Scorecard, rank: int) -> str:
    """Title of an entity's level; '' below the first level."""
    return card.levels[rank - 1].title if rank else ""


def _make_entry_row(
    card: Scorecard,
    entry: ScorecardEntry,
    stored: Mapping[str, StoredCheck],
    counts: Mapping[str, StateCounts],
    query: Mapping[str, str],
) -> EntryRow:
    found = stored.get(entry.check)
    return EntryRow(
        entry,
        get_level_title(card, entry.level),
        found.title if found else entry.check,
        definition_writes.make_tag(found) if found is not None and found.is_draft else None,
        ResultFigures(counts.get(entry.check, StateCounts())),
        query,
    )


async def _count_scorecard_states(
    visit: PageContext, card: Scorecard, owners: Sequence[str] | None
) -> Mapping[str, StateCounts]:
    """Count the states of each check, over the entities of these owners or all entities."""
    if owners is None:
        return await state_store.count_totals(
            visit.state.database, [one.check for one in card.entries]
        )
    return await state_store.count_of_owners(visit.state.database, owners)


def _describe_target(card: Scorecard, tally: LevelTally) -> dict[str, Any] | None:
    """Progress toward the target level and day; None without a target."""
    if card.target is None:
        return None
    rank = card.rank(card.target.level)
    reached = sum(count for one, count in tally.levels.items() if one >= rank)
    return {
        "title": get_level_title(card, card.target.level),
        "day": scorecard.format_day(card.target.by),
        "reached": reached,
        "percent": formats.format_share(reached, tally.total),
        "ends_at": card.target.ends_at,
    }


async def _draw_score_chart(
    visit: PageContext, given: ScorecardInEffect, team: str | None, tally: LevelTally
) -> Any:
    now = visit.now
    first = now // DAY - _DAYS
    found = await scorecard_figures.read_trend(
        visit.state.database, given, team, first, now, tally=tally
    )
    points = make_trend_points(found)
    if all(value is None for _, value in points):
        return None
    return draw_line_chart(
        points,
        title="Mean score",
        unit="%",
        start=first * DAY,
        end=now,
        notes=describe_populations(found),
        ident="trend-chart",
    )


async def list_team_rows(
    visit: PageContext, given: ScorecardInEffect, team: str | None, most: int
) -> tuple[list[TeamRow], bool]:
    """List a page of teams, each followed by its direct subteams, and true if there are more.

    Starts with `team`, or with the top-level teams.
    """
    found = await scorecard_figures.roll_up_scorecard(visit.state.database, given, "owner", team)
    rows = list(_flatten_groups(given.card, found))
    start = (visit.page_number() - 1) * most
    return rows[start : start + most], len(rows) > start + most


def _flatten_groups(
    card: Scorecard, groups: Sequence[RollupGroup], *, is_child: bool = False
) -> Iterator[TeamRow]:
    for one in groups:
        yield _make_team_row(card, one, is_child=is_child)
        yield from _flatten_groups(card, one.children, is_child=True)


def _make_team_row(card: Scorecard, group: RollupGroup, *, is_child: bool) -> TeamRow:
    is_group = group.name.startswith("group:")
    query = {"team": group.name} if is_group else {"owner": group.name or "-"}
    path = shares.make_scorecard_path(card.id, team=group.name) if is_group else None
    return TeamRow(
        group.name,
        formats.shorten_owner(group.name) or "without an owner",
        is_child,
        path,
        shares.make_scorecard_path(card.id, "entities", **query),
        group.tally,
        shares.make_level_shares(card, group.tally, **query),
        query,
    )


def _number_teams(address: Address, number: int) -> str:
    return f"{address.to(page=str(number))}#teams"


SCORECARD_PAGE: Sequence[PageRoute] = (
    PageRoute("GET", "/scorecards/{id}", show_scorecard, (CATALOG_READ, CHECK_READ)),
)


_MATRIX_ROWS: Final = 50
MOST_COLUMNS: Final = 50
_MATRIX_FILTERS: Final = ("owner", "team", "level", "state")
# States whose cells link to the evidence.
_LINKED_STATES: Final = frozenset({"fail", "unknown", "exempt"})


class MatrixColumn(NamedTuple):
    """A check in a matrix, with the title of its level."""

    id: str
    title: str
    level: str
    path: str


class MatrixCell(NamedTuple):
    """A state, or a team's worst state with its count; `path` links to the evidence."""

    word: str
    path: str | None
    text: str = ""


class MatrixLine(NamedTuple):
    """A matrix row: an entity with its level, or a team, and a cell for each check."""

    title: str
    path: str
    owner: str
    level: str
    score: int | None
    cells: list[MatrixCell]
    is_child: bool = False


async def show_entity_matrix(visit: PageContext) -> Reply:
    """Show the matrix of entities and checks."""
    shown, given = await find_graded_scorecard(visit)
    address = make_filter_address(
        visit, shares.make_scorecard_path(shown.card.id, "entities"), (*_MATRIX_FILTERS, "columns")
    )
    columns = await list_matrix_columns(visit, given.card)
    start = visit.query_number("columns", 0)
    wanted = MatrixFilter(await _get_level_filter(visit, given), checks.get_chosen_state(visit))
    chosen = columns[start : start + MOST_COLUMNS]
    ids = [one.id for one in chosen]
    after, database = visit.query_number("after", 0), visit.state.database
    page = await scorecard_figures.read_matrix_page(
        database, given, ids, wanted, after, _MATRIX_ROWS
    )
    return visit.page(
        "scorecard-matrix.html",
        current="entities",
        card=given.card,
        columns=chosen,
        lines=[_make_entity_line(given.card, ids, row) for row in page.rows],
        address=address,
        chosen=[(name, address.query[name]) for name in _MATRIX_FILTERS if name in address.query],
        levels=[
            ("", "Any"),
            *((level.id, level.title) for level in reversed(given.card.levels)),
            *([(NO_LEVEL_WORD, NO_LEVEL_TITLE)] if given.card.levels else []),
        ],
        states=checks.STATE_CHOICES,
        asked={name: visit.query(name) for name in _MATRIX_FILTERS},
        before=address.to() if after else None,
        after=address.to(after=str(page.next)) if page.next else None,
        column_pages=list_column_pages(address, columns, start),
        age=await result_queries.read_age_of_checks(database, given.card.checks, visit.now),
        export=address._replace(path=shares.make_scorecard_path(given.card.id, "export")).to(
            state=None, columns=None
        ),
    )


async def download_levels(visit: PageContext) -> Reply:
    """Download the entity levels as CSV."""
    _, given = await find_graded_scorecard(visit)
    return Reply(
        stream_level_lines(
            visit.state.database, given, await _get_level_filter(visit, given), visit.now
        ),
        headers=make_attachment_headers(given.card.id),
        content_type=CONTENT_TYPE,
    )


async def list_matrix_columns(visit: PageContext, card: Scorecard) -> list[MatrixColumn]:
    """List the checks of a scorecard by level; score-only checks come last."""
    stored = await check_store.everything(visit.state.database)
    titles = {one.id: one.title for one in stored}
    last = len(card.levels) + 1
    return [
        MatrixColumn(
            one.check,
            titles.get(one.check, one.check),
            get_level_title(card, one.level),
            shares.make_check_path(one.check),
        )
        for one in sorted(card.entries, key=lambda one: card.rank(one.level) or last)
    ]


async def _get_level_filter(visit: PageContext, given: ScorecardInEffect) -> LevelFilter:
    owners = await checks.list_chosen_owners(visit)
    return scorecard_figures.filter_by_level(given.card, visit.query("level") or None, owners)


def _make_entity_line(
    card: Scorecard, check_ids: Sequence[str], row: scorecard_figures.MatrixRow
) -> MatrixLine:
    query = f"?entity={quote(row.ref, safe='')}"
    cells = []
    for id_, byte in zip(check_ids, row.states, strict=True):
        word = state.name_state(byte)
        cells.append(
            MatrixCell(
                word, shares.make_check_path(id_) + query if word in _LINKED_STATES else None
            )
        )
    return MatrixLine(
        formats.shorten_ref(row.ref),
        formats.make_entity_path(row.ref),
        row.owner,
        get_rank_title(card, row.graded.level),
        row.graded.score,
        cells,
    )


def list_column_pages(
    address: Address, columns: Sequence[MatrixColumn], start: int
) -> list[tuple[str, str, bool]]:
    """List (label, path, is current) per group of columns; empty if all columns fit."""
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
    PageRoute("GET", "/scorecards/{id}/entities", show_entity_matrix, _NEEDS),
    PageRoute("GET", "/scorecards/{id}/export", download_levels, _NEEDS),
)


# Each row sums a team and its subteams, so pages are short.
_TEAM_MATRIX_ROWS: Final = 25


async def show_team_matrix(visit: PageContext) -> Reply:
    """Show the matrix of checks and teams: top-level teams or one team, with direct subteams."""
    shown, given = await find_graded_scorecard(visit)
    database, path = visit.state.database, shares.make_scorecard_path(shown.card.id, "teams")
    address = make_filter_address(visit, path, ("team", "columns"))
    columns = await list_matrix_columns(visit, given.card)
    start, number = visit.query_number("columns", 0), visit.page_number()
    chosen = columns[start : start + MOST_COLUMNS]
    rows, has_more = await list_team_rows(visit, given, find_chosen_team(visit), _TEAM_MATRIX_ROWS)
    tree = GroupHierarchy(await related_entities.read_group_parents(database))
    sums = await _sum_teams(database, {row.name: tree.within(row.name) for row in rows})
    lines = []
    for row in rows:
        leads = address._replace(query={"team": row.name}).to()
        has_below = row.name in tree.children and row.name != find_chosen_team(visit)
        counts = sums[row.name]
        cells = [_make_team_cell(one.id, row, counts.get(one.id, StateCounts())) for one in chosen]
        row_path = leads if has_below else row.entities
        lines.append(MatrixLine(row.title, row_path, "", "", None, cells, row.is_child))
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
        column_pages=list_column_pages(address, columns, start),
    )


async def _sum_teams(
    database: Database, teams: Mapping[str, set[str]]
) -> dict[str, Mapping[str, StateCounts]]:
    """The counts of each team by check, including subteams.

    A large team reuses the sums of its subteams, which avoids reading a group twice.
    """
    found: dict[str, Mapping[str, StateCounts]] = {}
    for name in sorted(teams, key=lambda name: len(teams[name])):
        rest, parts = set(teams[name]), []
        for other in reversed(found):
            if teams[other] <= rest:
                rest -= teams[other]
                parts.append(found[other])
        found[name] = _add_counts(
            [*parts, await state_store.count_of_owners(database, sorted(rest))]
        )
    return found


def _add_counts(parts: Sequence[Mapping[str, StateCounts]]) -> dict[str, StateCounts]:
    nothing = StateCounts()
    checks = {check_id for part in parts for check_id in part}
    return {
        check_id: StateCounts(
            *map(sum, zip(*(part.get(check_id, nothing) for part in parts), strict=True))
        )
        for check_id in checks
    }


def _make_team_cell(check_id: str, row: TeamRow, counts: StateCounts) -> MatrixCell:
    """A cell with the team's worst state and its count."""
    found = ResultFigures(counts)
    if not found.total:
        word = "exempt" if counts.exempt else "not-applicable"
        return MatrixCell(word, None)
    by_state = {"fail": counts.failing, "unknown": counts.undecided, "pass": counts.passing}
    word = next(word for word, number in by_state.items() if number)
    text = f"{by_state[word]} of {found.total}"
    return MatrixCell(word, shares.make_check_path(check_id, **row.query, state=word), text)


TEAM_MATRIX: Sequence[PageRoute] = (
    PageRoute("GET", "/scorecards/{id}/teams", show_team_matrix, (CATALOG_READ, CHECK_READ)),
)
