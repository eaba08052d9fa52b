"""Page of all scorecards: pass rate beside coverage, levels, trend, and what fails most."""

from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

from factbook.audit.trail import AuditEntry
from factbook.auth.permissions import (
    CATALOG_READ,
    CHECK_READ,
    CHECK_WRITE,
    SCORECARD_WRITE,
    SOURCE_READ,
)
from factbook.checks import scorecard_figures
from factbook.checks.definitions import definition_writes, exemption_store, publications, scorecard
from factbook.checks.definitions.definition_versions import (
    StoredScorecard,
    check_store,
    scorecard_store,
)
from factbook.checks.definitions.definition_writes import Adoption
from factbook.checks.definitions.exemption_store import ExemptionFilter
from factbook.checks.definitions.scorecard import Scorecard
from factbook.checks.results import level_store, result_queries, state_store
from factbook.checks.results.grader import NO_TALLY, LevelTally
from factbook.checks.results.result_queries import ResultAge, ResultAges
from factbook.checks.results.state_store import StateCounts
from factbook.checks.scorecard_figures import ScorecardInEffect, TrendPoint
from factbook.clock import DAY
from factbook.errors import FactbookError
from factbook.http.requests import Reply
from factbook.storage import Transaction
from factbook.web.charts import Point, sparkline
from factbook.web.checks import authors, shares
from factbook.web.checks.shares import ResultFigures
from factbook.web.data_sources.fact_across import Share
from factbook.web.site.endpoint import PageRoute
from factbook.web.site.page_context import PageContext

PATH: Final = "/scorecards"
_PAGE: Final = 20
_DAYS: Final = 90
_WORST: Final = 3
_MOST_SHOWN: Final = 99


class ScorecardSummary(NamedTuple):
    """A scorecard of the list; `card` is None of one that this release cannot read."""

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


async def show(visit: PageContext) -> Reply:
    """Page of the scorecards."""
    database = visit.state.database
    found = await scorecard_store.everything(database)
    after = visit.query("after")
    rest = [one for one in found if one.id > after]
    cards = [card for one in rest[:_PAGE] if (card := read(one)) is not None]
    ids = {entry.check for card in cards for entry in card.entries}
    counts = await state_store.count_totals(database, sorted(ids))
    titles = {one.id: one.title for one in await check_store.everything(database)}
    waiting = await exemption_store.list_exemptions(
        database, ExemptionFilter("requested"), _MOST_SHOWN + 1
    )
    ages = await result_queries.read_result_age(database, visit.now)
    return visit.page(
        "scorecards.html",
        summaries=[await _summary(visit, one, ages, counts, titles) for one in rest[:_PAGE]],
        number=len(found),
        before=PATH if after else None,
        after=f"{PATH}?after={rest[_PAGE - 1].id}" if len(rest) > _PAGE else None,
        waiting=len(waiting),
        most=_MOST_SHOWN,
        may_adopt=visit.may(CHECK_WRITE, SCORECARD_WRITE, SOURCE_READ),
        may_write=authors.may_define(visit, SCORECARD_WRITE),
    )


async def adopt(visit: PageContext) -> Reply:
    """Make drafts of the starter: a scorecard, and the checks that the sources can answer."""
    known = await visit.state.registry.latest()
    wanted, now = definition_writes.list_starter_documents(known.sources.values()), visit.now
    [card] = [one.document["id"] for one in wanted if one.kind == "scorecard"]

    def work(transaction: Transaction) -> Adoption:
        publications.lock_definitions(transaction)
        return definition_writes.adopt_starter(transaction, wanted, visit.person.ref, now)

    def about(made: Adoption) -> AuditEntry:
        return AuditEntry("scorecard.create", card, {"drafts": list(made.made)})

    made = await visit.writing(about)(work)
    words = f"{len(made.made)} drafts are made. Look at them, and publish the scorecard with them."
    kept = f" {len(made.kept)} were there before and are as they were." if made.kept else ""
    return visit.redirect(PATH, words + kept)


def read(stored: StoredScorecard) -> Scorecard | None:
    """The scorecard in effect, or what comes closest; None if this release cannot read it."""
    try:
        return scorecard.parse_scorecard(stored.current)
    except FactbookError:
        return None


def figures(card: Scorecard, counts: Mapping[str, StateCounts]) -> ResultFigures:
    """The results of the checks that count for a scorecard, over all entities."""
    total = StateCounts()
    for entry in card.entries:
        if not entry.advisory:
            total = total.plus(counts.get(entry.check, StateCounts()))
    return ResultFigures(total)


def points(found: Sequence[TrendPoint]) -> list[Point]:
    """The mean score day by day; None where nothing had one."""
    return [(point.day * DAY, point.figures.mean) for point in found]


def populations(found: Sequence[TrendPoint]) -> dict[int, str]:
    """The entities that had a score on each day, of all on that day, in words."""
    return {
        point.day * DAY: f"of {point.figures.scored:,} of {point.figures.total:,} entities"
        for point in found
    }


async def _summary(
    visit: PageContext,
    stored: StoredScorecard,
    ages: ResultAges,
    counts: Mapping[str, StateCounts],
    titles: Mapping[str, str],
) -> ScorecardSummary:
    database, now, card = visit.state.database, visit.now, read(stored)
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
        figures(card, counts),
        shares.of_levels(card, tally),
        _worst(card, counts, titles),
        sparkline(
            points(found),
            "Mean score, 90 days",
            notes=populations(found),
            ident=f"trend-{card.id}",
        )
        if found
        else None,
        ages.of(card.checks),
    )


def _worst(
    card: Scorecard, counts: Mapping[str, StateCounts], titles: Mapping[str, str]
) -> list[Share]:
    """The checks that fail for most entities."""
    failing = {one.check: counts.get(one.check, StateCounts()).failing for one in card.entries}
    worst = sorted((id_ for id_ in failing if failing[id_]), key=lambda id_: (-failing[id_], id_))
    return [
        Share(titles.get(id_, id_), failing[id_], 0, shares.check_path(id_, state="fail"), "bad")
        for id_ in worst[:_WORST]
    ]


SCORECARD_LIST: Sequence[PageRoute] = (
    PageRoute("GET", PATH, show, (CATALOG_READ, CHECK_READ)),
    PageRoute("POST", f"{PATH}/-/starter", adopt, (CHECK_WRITE, SCORECARD_WRITE, SOURCE_READ)),
)
