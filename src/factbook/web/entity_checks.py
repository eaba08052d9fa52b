"""Checks and scorecards of one entity, and of the contents of a team, system or domain."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Final, NamedTuple
from urllib.parse import quote

import msgspec
from markupsafe import Markup

from factbook.auth.permissions import CATALOG_READ, SOURCE_READ
from factbook.catalog.store import entity_query, related_entities
from factbook.catalog.store.related_entities import Belonging, BelongingEntity
from factbook.checks import scorecard_figures
from factbook.checks import state as states
from factbook.checks.definitions import scorecard
from factbook.checks.definitions.definition_versions import StoredScorecard, scorecard_store
from factbook.checks.definitions.scorecard import NO_LEVEL_WORD, Scorecard
from factbook.checks.results import grader, level_store, result_queries
from factbook.checks.results.entity_evaluation import CheckCache
from factbook.checks.results.grader import (
    NO_TALLY,
    GradedLevel,
    GroupHierarchy,
    LevelTally,
    Step,
    decode_level,
)
from factbook.checks.results.level_store import AtLevel
from factbook.checks.results.result_queries import CheckResult, FailingCounts, ResultAge
from factbook.checks.scorecard_figures import ScorecardInEffect, TrendPoint
from factbook.clock import DAY
from factbook.errors import FactbookError, InputError, NotFoundError
from factbook.facts import store
from factbook.facts.schema import Fact
from factbook.facts.store import KeyValue
from factbook.http.requests import Reply, run_offloaded
from factbook.storage import Database
from factbook.web import entity_view, formats, shares
from factbook.web.charts import draw_sparkline, make_ident
from factbook.web.entity_view import EntityView
from factbook.web.formats import Reason, quote_segment
from factbook.web.pages import PageContext, PageRoute
from factbook.web.shares import Share, describe_populations, make_filter_address

_MOST: Final = 200  # of a group
_MISSING: Final = 5  # checks listed per scorecard
_REASONS: Final = 3
_EXPLAINED: Final = frozenset({states.FAIL, states.UNKNOWN})


class ShownResult(NamedTuple):
    """A check result: its state, its message, and the fix.

    `reasons` explain an unknown state.
    """

    title: str
    path: str
    word: str
    message: str
    fix: str
    fix_link: str | None
    reasons: list[Reason]
    since: int | None
    is_flapping: bool
    is_stale: bool
    is_advisory: bool


class ResultGroups(NamedTuple):
    """The first results of an entity by state, and the count of each state."""

    failing: list[ShownResult]
    unknown: list[ShownResult]
    exempt: list[ShownResult]
    passing: list[ShownResult]
    numbers: Mapping[str, int]

    @property
    def total(self) -> int:
        """The number of checks that apply to the entity."""
        return sum(self.numbers.values()) - self.others

    @property
    def others(self) -> int:
        """The number of checks that don't apply."""
        return self.numbers["not-applicable"]


class EntityScorecard(NamedTuple):
    """A scorecard with an entity's level (None below the first) and the steps to the next.

    `missing` are the first checks that block the next level or, at the highest level, lower the
    score; `more` counts the others.
    """

    title: str
    path: str
    level: str | None
    next_level: str | None
    score: int | None
    coverage: int | None
    missing: list[ShownResult]
    more: int


class EntityChecks(NamedTuple):
    """The check results and scorecards of an entity."""

    results: ResultGroups
    scorecards: list[EntityScorecard]
    age: ResultAge


async def read_entity_checks(database: Database, ref: str, now: int) -> EntityChecks | None:
    """The checks of the entity with this reference; None if there are no checks at all."""
    known = await database.remembered.of(CheckCache).loaded(database)
    if known.is_empty:
        return None
    found = await result_queries.read_entity_results(database, ref, now, explained=_EXPLAINED)
    if found is None or not found.results:
        return None
    levels = await level_store.read_entity_levels(database, found.entity_id)
    stored = await scorecard_store.everything(database)
    cards = [
        card for one in stored if (card := _place_in_scorecard(one, levels, found.results, now))
    ]
    ids = [one.check.id for one in found.results if one.state in result_queries.ABOUT_ENTITY]
    age = await result_queries.read_age_of_checks(database, ids, now)
    return EntityChecks(_group_results(found.results), cards, age)


def _group_results(found: Iterable[CheckResult]) -> ResultGroups:
    by_word: dict[str, list[ShownResult]] = {name: [] for name in states.WORDS}
    for one in found:
        by_word[states.name_state(one.state)].append(_make_shown_result(one))
    for group in by_word.values():
        group.sort(key=lambda one: (one.is_advisory, formats.make_natural_key(one.title)))
    return ResultGroups(
        by_word["fail"][:_MOST],
        by_word["unknown"][:_MOST],
        by_word["exempt"][:_MOST],
        by_word["pass"][:_MOST],
        {word: len(shown) for word, shown in by_word.items()},
    )


def _make_shown_result(result: CheckResult) -> ShownResult:
    check, explanation = result.check, result.explanation
    return ShownResult(
        check.title,
        f"/checks/{quote_segment(check.id)}",
        states.name_state(result.state),
        (explanation and explanation.message) or check.description or "",
        (explanation and explanation.fix_instructions) or "",
        formats.get_external_url(explanation.fix_link) if explanation else None,
        [formats.explain_check_reason(one) for one in explanation.reasons[:_REASONS]]
        if explanation
        else [],
        result.since,
        result.is_flapping,
        result.is_stale,
        check.severity == "advisory",
    )


def _place_in_scorecard(
    stored: StoredScorecard, levels: bytes, found: Sequence[CheckResult], now: int
) -> EntityScorecard | None:
    """The entity's standing in a scorecard; None outside the scorecard or if no check counts."""
    if stored.slot is None or stored.published is None:
        return None
    graded = decode_level(levels, stored.slot)
    if graded is None or graded.coverage is None:
        return None
    try:
        card = scorecard.parse_scorecard(stored.published)
    except FactbookError:
        return None  # from a later release; the log reports it
    return _make_entity_scorecard(card, graded, scorecard_figures.list_next_steps(card, found, now))


def _make_entity_scorecard(
    card: Scorecard, graded: GradedLevel, steps: Sequence[tuple[Step, CheckResult]]
) -> EntityScorecard:
    titles = [None, *(level.title for level in card.levels)]
    is_highest = graded.level == len(card.levels)
    wanted = [
        _make_shown_result(result)
        for step, result in steps
        if is_highest or 0 < step.rank <= graded.level + 1
    ]
    return EntityScorecard(
        card.title,
        f"/scorecards/{quote_segment(card.id)}",
        titles[graded.level],
        None if is_highest else titles[graded.level + 1],
        graded.score,
        graded.coverage,
        wanted[:_MISSING],
        len(wanted[_MISSING:]),
    )


_SHOWN: Final = 5
_DAYS: Final = 30
_BELOW: Final = 20
# If more than one in this many entities has the level, probe entities until there are enough.
_FREQUENT: Final = 8
NO_QUERY: Final[Mapping[str, str]] = {}


class TeamScorecard(NamedTuple):
    """A scorecard over some entities: level bars, mean score, and the score's change in words.

    The mean covers only the `scored` entities.
    """

    title: str
    path: str
    entities: int
    scored: int
    score: str
    change: str
    line: Markup | None
    levels: list[Share]


class GroupBelow(NamedTuple):
    """A subgroup, including all groups below it.

    `scores` has for each scorecard: entities, entities with a score, and the mean score.
    """

    ref: str
    scores: list[tuple[int, int, str]]


class TeamStanding(NamedTuple):
    """The scorecards of a team, and its subgroups; `more` counts those not shown."""

    scorecards: list[TeamScorecard]
    below: list[GroupBelow]
    more: int
    age: ResultAge


async def list_scorecards_in_effect(database: Database) -> list[ScorecardInEffect]:
    """The scorecards that have results and that this release can read, by title."""
    found = []
    for stored in await scorecard_store.everything(database):
        if stored.slot is None or stored.published is None:
            continue
        try:
            found.append(
                ScorecardInEffect(scorecard.parse_scorecard(stored.published), stored.slot)
            )
        except FactbookError:
            continue  # from another release; the log reports it
    return sorted(found, key=lambda one: (formats.make_natural_key(one.card.title), one.card.id))


async def build_level_condition(
    database: Database, cards: Sequence[ScorecardInEffect], text: str
) -> AtLevel:
    """The condition for `scorecard/level`; raises InputError for an unknown level."""
    scorecard_id, _, level = text.partition("/")
    for card, slot in cards:
        if card.id == scorecard_id and (level == NO_LEVEL_WORD or level in card.ranks):
            rank = 0 if level == NO_LEVEL_WORD else card.rank(level)
            tally = await level_store.count_all_levels(database, slot)
            is_frequent = tally.levels.get(rank, 0) * _FREQUENT >= tally.total > 0
            return AtLevel(slot, rank, is_frequent)
    raise InputError("No scorecard with results has this level.")


async def read_scorecards_age(
    database: Database, given: Iterable[ScorecardInEffect], now: int
) -> ResultAge:
    """The age of these scorecards' figures."""
    checks = {id_ for one in given for id_ in one.card.checks}
    return await result_queries.read_age_of_checks(database, checks, now)


async def read_team_standing(database: Database, ref: str, now: int) -> TeamStanding | None:
    """The standing of a group, system or domain; None without scorecards."""
    in_effect = (await list_scorecards_in_effect(database))[:_SHOWN]
    if not in_effect:
        return None
    if ref.startswith("group:"):
        return await _read_group_standing(database, in_effect, ref, now)
    path = f"{formats.make_entity_path(ref)}/contents"
    cards = []
    for effective in in_effect:
        tallies = await level_store.count_levels_by_system(database, effective.slot)
        if ref.startswith("domain:"):
            domains = await related_entities.read_system_domains(database)
            tallies = grader.roll_up_domains(tallies, domains)
        card = _make_team_scorecard(effective.card, tallies.get(ref, NO_TALLY))
        cards.append(card._replace(path=path, levels=_link_levels(effective.card, card, path)))
    return TeamStanding(cards, [], 0, await read_scorecards_age(database, in_effect, now))


async def _read_group_standing(
    database: Database, given: Sequence[ScorecardInEffect], group: str, now: int
) -> TeamStanding:
    tree = GroupHierarchy(await related_entities.read_group_parents(database))
    below = sorted(tree.children.get(group, set()))
    rows: dict[str, list[tuple[int, int, str]]] = {child: [] for child in below[:_BELOW]}
    cards = []
    for one in given:
        own = await level_store.count_levels_by_owner(database, one.slot)
        tally = grader.roll_up_group(own, tree, group)
        points = await _list_trend_points(database, one.card, tally, group, now // DAY)
        cards.append(_make_team_scorecard(one.card, tally, {"team": group}, points))
        for child, found in rows.items():
            part = grader.roll_up_group(own, tree, child)
            found.append((part.total, part.scored, _format_score(part)))
    groups = [GroupBelow(child, found) for child, found in rows.items()]
    return TeamStanding(
        cards, groups, len(below[_BELOW:]), await read_scorecards_age(database, given, now)
    )


async def _list_trend_points(
    database: Database, card: Scorecard, tally: LevelTally, group: str, today: int
) -> list[TrendPoint]:
    """The last 30 days that have scores; today has the current figures."""
    first = today - _DAYS
    kept = await scorecard_figures.read_group_trend(database, card.id, group, first, today - 1)
    points = [*kept, TrendPoint(today, scorecard_figures.compute_figures(card, tally))]
    return [
        point
        for point in scorecard_figures.make_series(points, first, today)
        if point.figures.scored
    ]


def _make_team_scorecard(
    card: Scorecard,
    tally: LevelTally,
    query: Mapping[str, str] = NO_QUERY,
    points: Sequence[TrendPoint] = (),
) -> TeamScorecard:
    scores = [(one.day * DAY, one.figures.mean or 0.0) for one in points]
    return TeamScorecard(
        card.title,
        shares.make_scorecard_path(card.id, **query),
        tally.total,
        tally.scored,
        _format_score(tally),
        change(scores, _DAYS),
        draw_sparkline(
            [*scores],
            f"Score of {card.title} over {_DAYS} days",
            notes=describe_populations(points),
            ident=make_ident("team", card.id),
        )
        if len(scores) > 1
        else None,
        shares.make_level_shares(card, tally, **query),
    )


def _link_levels(card: Scorecard, shown: TeamScorecard, path: str) -> list[Share]:
    """The levels of a scorecard, each linked to its entities."""
    ids = [*(one.id for one in reversed(card.levels)), NO_LEVEL_WORD]
    return [
        share._replace(path=f"{path}?level={quote(f'{card.id}/{id_}', safe='')}")
        for share, id_ in zip(shown.levels, ids, strict=True)
    ]


def _format_score(tally: LevelTally) -> str:
    return "" if tally.mean is None else f"{tally.mean:.0f}%"


def change(scores: Sequence[tuple[int, float]], days: int) -> str:
    """The change of a mean score since the first day of its trend, in words."""
    if len(scores) < 2:
        return ""
    difference = round(scores[-1][1] - scores[0][1])
    if not difference:
        return f"as {days} days ago"
    sign = "+" if difference > 0 else "\N{MINUS SIGN}"
    return f"{sign}{formats.count_noun(abs(difference), 'point')} in {days} days"


ON_PAGE: Final = 50
_SCORECARDS: Final = 3  # with a column
_LONGEST: Final = 1_000  # characters of a place in an address
# Facts with a column, if a data source has them: incidents and security findings.
_COLUMN_FACTS: Final = (
    "incident.incidentMetrics.monthlyIncidents",
    "security.scannerIssues.critical",
    "security.scannerIssues.high",
    "security.dependencyAlerts.open",
)


class ShownLevel(NamedTuple):
    """The title of a level ("" below the first), or the score if the scorecard has no levels."""

    title: str
    score: int | None = None


class ContentsRow(NamedTuple):
    """An entity with its levels, check counts, and figures with their paths.

    A level is None if no check of the scorecard counts. A figure is None if no data source
    reports on the entity; its text is "" if unknown.
    """

    ref: str
    title: str
    kind: str
    levels: list[ShownLevel | None]
    counts: FailingCounts | None
    figures: list[tuple[str, str] | None]


class ContentsTable(NamedTuple):
    """A page of rows; `total` counts all pages, `after` is the start of the next page."""

    scorecards: list[Scorecard]
    figures: list[str]
    rows: list[ContentsRow]
    total: int
    after: str | None


async def find_contained(database: Database, found: EntityView) -> Belonging | None:
    """The contents of a group, system or domain; None for any other kind."""
    kind = found.ref.partition(":")[0]
    if kind == "group":
        tree = GroupHierarchy(await related_entities.read_group_parents(database))
        return Belonging("ownedBy", sorted(tree.within(found.ref)))
    if kind == "domain":
        domains = await related_entities.read_system_domains(database)
        systems = [system for system, domain in domains.items() if domain == found.ref]
        return Belonging("partOf", [found.ref, *sorted(systems)])
    return Belonging("partOf", [found.ref]) if kind == "system" else None


async def make_contents_table(
    visit: PageContext, about: Belonging, limit: int, after: str | None = None, level: str = ""
) -> ContentsTable:
    """Up to `limit` entities after a reference, only those at `scorecard/level` if given.

    Raises InputError for an unknown level.
    """
    database = visit.state.database
    cards = await list_scorecards_in_effect(database)
    also = [await build_level_condition(database, cards, level)] if level else []
    found = await related_entities.page_belonging(database, about, after, limit, also)
    shown = await make_contents_rows(visit, found.entities, cards[:_SCORECARDS])
    return shown._replace(
        total=found.total, after=found.entities[-1].ref if found.has_more else None
    )


async def make_contents_rows(
    visit: PageContext, entities: Sequence[BelongingEntity], cards: Sequence[ScorecardInEffect]
) -> ContentsTable:
    """The rows of these entities, in order, with a column for each scorecard."""
    database = visit.state.database
    ids = [one.id for one in entities]
    levels = await level_store.read_levels_of(database, ids) if cards else {}
    counts = await result_queries.count_failing(database, ids)
    facts = await _list_column_values(visit, ids)
    rows = [
        ContentsRow(
            one.ref,
            title,
            one.ref.partition(":")[0],
            [_make_shown_level(card, levels.get(one.id, b""), slot) for card, slot in cards],
            counts.get(one.id),
            [_make_contents_figure(one, name, facts[name].get(one.id)) for name in facts],
        )
        for one, title in zip(
            entities, await run_offloaded(_list_entity_titles, entities), strict=True
        )
    ]
    return ContentsTable(
        [card for card, _ in cards],
        [formats.get_fact_title(Fact(name, "integer")) for name in facts],
        rows,
        len(rows),
        None,
    )


async def show_contents(visit: PageContext, found: EntityView) -> Reply:
    """Page of everything that an entity owns or contains."""
    about = await find_contained(visit.state.database, found)
    if about is None:
        raise NotFoundError("Only groups, systems and domains have this page.")
    after = visit.query("after")
    if len(after) > _LONGEST or "\0" in after:
        raise InputError("The address of this page is incomplete.")
    level = visit.query("level")
    if level and found.ref.startswith("domain:"):
        # A domain's levels are those of the entities in its systems.
        about = about._replace(targets=about.targets[1:])
    shown = await make_contents_table(visit, about, ON_PAGE, after or None, level)
    address = make_filter_address(visit, f"{found.path}/contents", ("level",))
    return visit.page(
        "entity-contents.html",
        **entity_view.make_entity_frame(
            found, entity_view.CONTENT_TITLES[found.ref.partition(":")[0]]
        ),
        contents=shown,
        most=entity_query.COUNT_BOUND,
        first=address.to() if after else None,
        next=shown.after and address.to(after=shown.after),
        level=level,
        age=await result_queries.read_age_of_checks(visit.state.database, None, visit.now),
        all_path=address.path,
    )


async def _list_column_values(
    visit: PageContext, ids: Sequence[int]
) -> Mapping[str, Mapping[int, KeyValue]]:
    """For each fact with a column, the values by entity."""
    known = (await visit.state.registry.current()).sources
    having = {
        name: [id_ for id_, one in known.items() if any(fact.name == name for fact in one.schema)]
        for name in _COLUMN_FACTS
    }
    wanted = {name: sources for name, sources in having.items() if sources}
    return await store.list_key_values(visit.state.database, wanted, ids)


def _make_shown_level(card: Scorecard, levels: bytes, slot: int) -> ShownLevel | None:
    graded = decode_level(levels, slot)
    if graded is None or graded.coverage is None:
        return None
    if not card.levels:
        return ShownLevel("", graded.score)
    return ShownLevel(card.levels[graded.level - 1].title if graded.level else "")


def _make_contents_figure(
    one: BelongingEntity, name: str, found: KeyValue | None
) -> tuple[str, str] | None:
    if found is None:
        return None
    entity_path = formats.make_entity_path(one.ref)
    path = f"{entity_path}/facts/{quote_segment(found.source)}/{quote_segment(name)}"
    if found.value is None:
        return "", path
    text = formats.format_fact(Fact(name, "float"), found.value)
    return f"{text} (stale)" if found.stale else text, path


def _list_entity_titles(items: Sequence[BelongingEntity]) -> list[str]:
    found = []
    for one in items:
        metadata = msgspec.json.decode(one.document)["metadata"]
        found.append(metadata.get("title") or metadata["name"])
    return found


ENTITY_CONTENTS: Sequence[PageRoute] = (
    PageRoute(
        "GET",
        f"{entity_view.ENTITY_PATH}/contents",
        entity_view.handle_entity_page(show_contents),
        (CATALOG_READ, SOURCE_READ),
    ),
)
