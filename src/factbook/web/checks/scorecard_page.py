"""Page of a scorecard: its levels, trend and checks, and the teams with all below them."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

from factbook.auth.permissions import CATALOG_READ, CHECK_READ, CHECK_WRITE, SCORECARD_WRITE
from factbook.checks import scorecard_figures
from factbook.checks.definitions import definition_writes, scorecard
from factbook.checks.definitions.definition_versions import (
    StoredCheck,
    StoredScorecard,
    check_store,
    scorecard_store,
)
from factbook.checks.definitions.scorecard import Scorecard, ScorecardEntry
from factbook.checks.results import level_store, result_queries, state_store
from factbook.checks.results.grader import LevelTally
from factbook.checks.results.state_store import StateCounts
from factbook.checks.scorecard_figures import RollupGroup, ScorecardInEffect
from factbook.clock import DAY
from factbook.errors import NotFoundError
from factbook.http.requests import Reply
from factbook.web.charts import line_chart
from factbook.web.checks import authors, check_page, scorecard_list, shares
from factbook.web.checks.shares import ResultFigures
from factbook.web.data_sources.fact_across import Address, Share
from factbook.web.site import formats
from factbook.web.site.endpoint import PageRoute
from factbook.web.site.page_context import PageContext

NOUN: Final = "scorecard"
_DAYS: Final = 90
_TEAMS: Final = 50


class OpenedScorecard(NamedTuple):
    """A scorecard that a page is about; `given` is None before its first grading is done."""

    stored: StoredScorecard
    card: Scorecard
    given: ScorecardInEffect | None


class EntryRow(NamedTuple):
    """A check of a scorecard; `level` is the title of its level, `title` its own.

    `draft_tag` is the tag of a check that was never published.
    """

    entry: ScorecardEntry
    level: str
    title: str
    draft_tag: str | None
    figures: ResultFigures
    query: Mapping[str, str]

    def path(self, word: str) -> str:
        """The path of the entities with a state that are counted."""
        return shares.check_path(self.entry.check, **self.query, state=word)


class TeamRow(NamedTuple):
    """A team with all below it; `entities` is the path of those, `path` that of the teams below.

    `query` narrows other pages to the team.
    """

    name: str
    title: str
    is_child: bool
    path: str | None
    entities: str
    tally: LevelTally
    levels: list[Share]
    query: Mapping[str, str]


async def show(visit: PageContext) -> Reply:
    """Page of a scorecard."""
    shown = await of_address(visit)
    card, given, database = shown.card, shown.given, visit.state.database
    stored = {one.id: one for one in await check_store.everything(database)}
    team = check_page.team(visit)
    owners = await check_page.owner_choices(visit) if team else None
    counts = await _counts(visit, card, owners)
    query = {"team": team} if team else {}
    entries = [_entry(card, one, stored, counts, query) for one in card.entries]
    common: dict[str, Any] = {
        "shown": shown,
        "card": card,
        "entries": sorted(
            entries, key=lambda row: card.rank(row.entry.level) or len(card.levels) + 1
        ),
        "drafts": [(row.entry.check, row.draft_tag) for row in entries if row.draft_tag],
        "may_write": await authors.may_write(visit, shown.stored, SCORECARD_WRITE),
        "may_publish": visit.may(SCORECARD_WRITE, CHECK_WRITE),
        "seen": definition_writes.make_tag(shown.stored),
    }
    if given is None:
        return visit.page("scorecard.html", tally=None, team=None, **common)
    tally = await level_store.count_all_levels(database, given.slot, owners)
    rows, has_more = await team_rows(visit, given, team, _TEAMS)
    address = check_page.filter_address(visit, shares.scorecard_path(card.id), ("team",))
    number = check_page.page_number(visit)
    return visit.page(
        "scorecard.html",
        tally=tally,
        figures=scorecard_list.figures(card, counts),
        levels=shares.of_levels(card, tally, **query),
        target=_target(card, tally),
        age=await result_queries.read_age_of_checks(database, card.checks, visit.now),
        chart=await _chart(visit, given, team, tally),
        team=team,
        teams=rows,
        before=_numbered(address, number - 1) if number > 1 else None,
        after=_numbered(address, number + 1) if has_more else None,
        all_path=shares.scorecard_path(card.id),
        server=visit.server,
        **common,
    )


async def of_address(visit: PageContext) -> OpenedScorecard:
    """The scorecard in the address; raises NotFoundError, also if this release cannot read it."""
    id_ = check_page.definition_id(visit, NOUN)
    stored = await scorecard_store.existing(visit.state.database, id_)
    card = scorecard_list.read(stored)
    if card is None:
        raise NotFoundError(f"The scorecard {id_} was made by another release, which reads it.")
    is_graded = stored.slot is not None and stored.published is not None
    given = ScorecardInEffect(card, stored.slot or 0) if is_graded else None
    return OpenedScorecard(stored, card, given)


async def in_effect(visit: PageContext) -> tuple[OpenedScorecard, ScorecardInEffect]:
    """The same, with results; raises NotFoundError before there are any."""
    shown = await of_address(visit)
    if shown.given is None:
        raise NotFoundError(f"The scorecard {shown.stored.id} has no results yet.")
    return shown, shown.given


def level_title(card: Scorecard, level: str | None) -> str:
    """The title of a level of a check; '' of one that counts for the score alone."""
    return next((one.title for one in card.levels if one.id == level), "")


def rank_title(card: Scorecard, rank: int) -> str:
    """The title of the level of an entity, "" below the first."""
    return card.levels[rank - 1].title if rank else ""


def _entry(
    card: Scorecard,
    entry: ScorecardEntry,
    stored: Mapping[str, StoredCheck],
    counts: Mapping[str, StateCounts],
    query: Mapping[str, str],
) -> EntryRow:
    found = stored.get(entry.check)
    return EntryRow(
        entry,
        level_title(card, entry.level),
        found.title if found else entry.check,
        definition_writes.make_tag(found) if found is not None and found.is_draft else None,
        ResultFigures(counts.get(entry.check, StateCounts())),
        query,
    )


async def _counts(
    visit: PageContext, card: Scorecard, owners: Sequence[str] | None
) -> Mapping[str, StateCounts]:
    """The counts of the checks, over the entities of some owners or of all."""
    if owners is None:
        return await state_store.count_totals(
            visit.state.database, [one.check for one in card.entries]
        )
    return await state_store.count_of_owners(visit.state.database, owners)


def _target(card: Scorecard, tally: LevelTally) -> dict[str, Any] | None:
    """The number that have reached the level that all should have by a day."""
    if card.target is None:
        return None
    rank = card.rank(card.target.level)
    reached = sum(count for one, count in tally.levels.items() if one >= rank)
    return {
        "title": level_title(card, card.target.level),
        "day": scorecard.format_day(card.target.by),
        "reached": reached,
        "percent": formats.percent(reached, tally.total),
        "ends_at": card.target.ends_at,
    }


async def _chart(
    visit: PageContext, given: ScorecardInEffect, team: str | None, tally: LevelTally
) -> Any:
    now = visit.now
    first = now // DAY - _DAYS
    found = await scorecard_figures.read_trend(
        visit.state.database, given, team, first, now, tally=tally
    )
    points = scorecard_list.points(found)
    if all(value is None for _, value in points):
        return None
    return line_chart(
        points,
        title="Mean score",
        unit="%",
        start=first * DAY,
        end=now,
        notes=scorecard_list.populations(found),
        ident="trend-chart",
    )


async def team_rows(
    visit: PageContext, given: ScorecardInEffect, team: str | None, most: int
) -> tuple[list[TeamRow], bool]:
    """A page of the teams below one, or of those at the top, each with those right below it."""
    found = await scorecard_figures.roll_up_scorecard(visit.state.database, given, "owner", team)
    rows = list(_flat(given.card, found))
    start = (check_page.page_number(visit) - 1) * most
    return rows[start : start + most], len(rows) > start + most


def _flat(
    card: Scorecard, groups: Sequence[RollupGroup], *, is_child: bool = False
) -> Iterator[TeamRow]:
    for one in groups:
        yield _team(card, one, is_child=is_child)
        yield from _flat(card, one.children, is_child=True)


def _team(card: Scorecard, group: RollupGroup, *, is_child: bool) -> TeamRow:
    is_group = group.name.startswith("group:")
    query = {"team": group.name} if is_group else {"owner": group.name or "-"}
    path = shares.scorecard_path(card.id, team=group.name) if is_group else None
    return TeamRow(
        group.name,
        formats.short_owner(group.name) or "without an owner",
        is_child,
        path,
        shares.scorecard_path(card.id, "entities", **query),
        group.tally,
        shares.of_levels(card, group.tally, **query),
        query,
    )


def _numbered(address: Address, number: int) -> str:
    return f"{address.to(page=str(number))}#teams"


SCORECARD_PAGE: Sequence[PageRoute] = (
    PageRoute("GET", "/scorecards/{id}", show, (CATALOG_READ, CHECK_READ)),
)
