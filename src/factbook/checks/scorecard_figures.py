"""Scorecard figures for readers: rollups, trends, levels, matrix, next steps, badges.

Trends are stored per day and group, subgroups included. Pages of levels are sorted by entity id.
The matrix shows the check states of each entity. Next steps are the checks that keep an entity from
a level, cheapest first.

Badges use the character widths of a common font, so drawing them needs no font.
"""

from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from html import escape
from typing import Any, Final, NamedTuple

import msgspec

from factbook.catalog.store import related_entities, stored_entities
from factbook.checks import state
from factbook.checks.definitions import publications
from factbook.checks.definitions.definition_versions import check_store, scorecard_store
from factbook.checks.definitions.scorecard import (
    NO_LEVEL_TITLE,
    NO_LEVEL_WORD,
    Scorecard,
    parse_scorecard,
)
from factbook.checks.results import grader, level_store, result_queries, state_store
from factbook.checks.results.entity_evaluation import CheckCache
from factbook.checks.results.grader import (
    NO_TALLY,
    GradedLevel,
    Grader,
    GroupHierarchy,
    LevelTally,
    Step,
    decode_level,
)
from factbook.checks.results.result_queries import CheckResult
from factbook.checks.results.state_store import EntityStates
from factbook.clock import DAY, iso
from factbook.errors import InputError, NotFoundError, one_of
from factbook.storage import Database, Row, Transaction

EVERYBODY: Final = "*"
MOST_TREND_DAYS: Final = 1_000
ROLLUP_KEYS: Final = ("owner", "system", "domain", "kind")
MOST_DEPTH: Final = 5
_LABEL_PREFIX: Final = "label:"
# Entities read per page: with a selective filter, a page may hold few.
_LEVELS_LOOKED_AT: Final = 10_000
_LEVEL_PORTION: Final = 1_000
# Entities read per page: with a selective filter, a page may hold few.
_ROWS_LOOKED_AT: Final = 10_000
_MATRIX_PORTION: Final = 1_000
_READS: Final = 3  # attempts, if slots move meanwhile


class TrendFigures(NamedTuple):
    """Entities by level id, "" below the first; the score sum and the number of scores."""

    levels: Mapping[str, int]
    scored: int = 0
    score: int = 0

    @property
    def total(self) -> int:
        """The number of entities."""
        return sum(self.levels.values())

    @property
    def mean(self) -> float | None:
        """The mean score in percent of entities with a score."""
        return self.score / self.scored if self.scored else None

    def render(self) -> dict[str, Any]:
        """The figures as shown."""
        return {
            "total": self.total,
            "levels": {name: count for name, count in self.levels.items() if name},
            "noLevel": self.levels.get("", 0),
            "score": None if self.mean is None else round(self.mean, 1),
            "scored": self.scored,
        }


class TrendPoint(NamedTuple):
    """The figures at the end of a day; days are numbered from 1970-01-01."""

    day: int
    figures: TrendFigures

    def render(self) -> dict[str, Any]:
        """The point as shown."""
        return {"date": iso(self.day * DAY)[:10], **self.figures.render()}


NO_FIGURES: Final = TrendFigures({})


def make_series(
    points: Sequence[TrendPoint], first: int, last: int, step: int = 1
) -> list[TrendPoint]:
    """Points for every `step`-th day back from `last`, each with the latest figures stored by then.

    `points` are in order; days before the first point are left out.
    """
    found: list[TrendPoint] = []
    remaining = list(points)
    for day in range(last, first - 1, -step):
        while remaining and remaining[-1].day > day:
            remaining.pop()
        if not remaining:
            break
        found.append(TrendPoint(day, remaining[-1].figures))
    return found[::-1]


def compute_figures(card: Scorecard, tally: LevelTally) -> TrendFigures:
    """The figures of a tally, by level id."""
    names = ["", *(level.id for level in card.levels)]
    levels = {names[rank]: count for rank, count in sorted(tally.levels.items()) if count}
    return TrendFigures(levels, tally.scored, tally.score)


async def read_group_trend(
    database: Database, scorecard_id: str, owner: str, first: int, last: int
) -> list[TrendPoint]:
    """The stored points of an owner in effect from `first` to `last`, in order."""
    rows = await database.search(
        _OF_GROUP, (scorecard_id, owner) * 2 + (first, last, MOST_TREND_DAYS)
    )
    return [_make_trend_point(row) for row in reversed(rows)]


def record_trends(transaction: Transaction, now: int) -> int:
    """Store today's figures that differ from the latest stored ones; returns their number."""
    # When a grading ends, a slot may belong to another scorecard.
    publications.share_definitions(transaction)
    tree = GroupHierarchy(related_entities.read_group_parents_within(transaction))
    changed = 0
    for stored in scorecard_store.all_within(transaction):
        if stored.slot is not None and stored.published is not None:
            own = level_store.count_levels_by_owner_within(transaction, stored.slot)
            card = parse_scorecard(stored.published)
            found = {
                EVERYBODY: grader.add_tallies(own.values()),
                **grader.roll_up_groups(own, tree),
            }
            changed += _record_trend(transaction, card, found, now // DAY)
    return changed


def trim_trends(transaction: Transaction, before: int) -> int:
    """Delete figures from before a time, except the last ones; returns their number."""
    return transaction.run(_TRIM, (before // DAY,) * 2)


def _record_trend(
    transaction: Transaction, card: Scorecard, found: Mapping[str, LevelTally], day: int
) -> int:
    before = {
        row[0]: _make_trend_point(row[1:]).figures
        for row in transaction.all(_LAST, (card.id, day, card.id))
    }
    rows = []
    for owner in sorted(found.keys() | before.keys()):
        new = compute_figures(card, found.get(owner, NO_TALLY))
        if new != before.get(owner, NO_FIGURES):
            levels = msgspec.json.encode(new.levels).decode()
            rows.append((card.id, owner, day, levels, new.scored, new.score))
    transaction.many(_KEEP, rows)
    return len(rows)


def _make_trend_point(row: Row) -> TrendPoint:
    day, levels, scored, score = row
    return TrendPoint(day, TrendFigures(msgspec.json.decode(levels), scored, score))


class RollupGroup(NamedTuple):
    """An owner, system, domain, kind or label value with its figures; "" if entities have none.

    `own` excludes subgroups; it differs from `tally` only for groups.
    """

    name: str
    tally: LevelTally
    own: LevelTally
    children: tuple["RollupGroup", ...] = ()

    def render(self, names: Mapping[int, str]) -> dict[str, Any]:
        """The group as shown, with the names of the ranks."""
        shown = {"name": self.name or None, **self.tally.render(names)}
        if self.own != self.tally:
            shown["own"] = self.own.render(names)
        if self.children:
            shown["children"] = [child.render(names) for child in self.children]
        return shown


class ScorecardInEffect(NamedTuple):
    """A scorecard in effect and its slot."""

    card: Scorecard
    slot: int

    @property
    def names(self) -> dict[int, str]:
        """The ids of the levels by rank."""
        return {rank: level.id for rank, level in enumerate(self.card.levels, 1)}

    def named(self, graded: GradedLevel) -> tuple[str | None, str | None]:
        """The ids of the level and the level if known; None below the first."""
        names = self.names
        return names.get(graded.level), names.get(graded.level_if_known)

    def words(self, graded: GradedLevel) -> tuple[str | None, str | None]:
        """The same, but `none` below the first level; None if the scorecard has no levels."""
        below = NO_LEVEL_WORD if self.card.levels else None
        level, if_known = self.named(graded)
        return level or below, if_known or below


async def get_scorecard_in_effect(database: Database, scorecard_id: str) -> ScorecardInEffect:
    """The scorecard; raises NotFoundError if none is in effect yet."""
    stored = await scorecard_store.existing(database, scorecard_id)
    if stored.slot is None or stored.published is None:
        raise NotFoundError(f"The scorecard {scorecard_id} has no results yet.")
    return ScorecardInEffect(parse_scorecard(stored.published), stored.slot)


async def roll_up_scorecard(
    database: Database, given: ScorecardInEffect, by: str, group: str | None = None, depth: int = 1
) -> list[RollupGroup]:
    """The figures by owner, system, domain, kind or `label:NAME`, sorted by name.

    By owner, the result starts at `group`, or at the top groups, and has `depth` levels of
    subgroups. Raises InputError for any other `by`.
    """
    if by.startswith(_LABEL_PREFIX) and len(by) > len(_LABEL_PREFIX):
        label = by.removeprefix(_LABEL_PREFIX)
        return _flatten_tallies(await level_store.tally_labels(database, given.slot, label))
    if by == "owner":
        own = await level_store.count_levels_by_owner(database, given.slot)
        tree = GroupHierarchy(await related_entities.read_group_parents(database))
        return _make_rollup_groups(own, tree, group, depth)
    if by not in ROLLUP_KEYS:
        raise InputError(f"by: {one_of(by, ROLLUP_KEYS)}, or label: and the name of one.")
    if by == "kind":
        return _flatten_tallies(await level_store.count_levels_by_kind(database, given.slot))
    systems = await level_store.count_levels_by_system(database, given.slot)
    if by == "system":
        return _flatten_tallies(systems)
    return _flatten_tallies(
        grader.roll_up_domains(systems, await related_entities.read_system_domains(database))
    )


async def read_trend(
    database: Database,
    given: ScorecardInEffect,
    group: str | None,
    first: int,
    now: int,
    step: int = 1,
    tally: LevelTally | None = None,
) -> list[TrendPoint]:
    """The figures of a group, or of everyone, from a day on, with current figures for today.

    `tally` is today's, if the caller has it already.
    """
    today = now // DAY
    if tally is None:
        tally = await _tally_group(database, given, group)
    owner = EVERYBODY if group is None else group
    kept = await read_group_trend(database, given.card.id, owner, first, today - 1)
    points = [*kept, TrendPoint(today, compute_figures(given.card, tally))]
    return make_series(points, first, today, step)


async def _tally_group(
    database: Database, given: ScorecardInEffect, group: str | None
) -> LevelTally:
    owners = None
    if group is not None:
        tree = GroupHierarchy(await related_entities.read_group_parents(database))
        owners = sorted(tree.within(group))
    return await level_store.count_all_levels(database, given.slot, owners)


def _flatten_tallies(tallies: Mapping[str, LevelTally]) -> list[RollupGroup]:
    return [RollupGroup(name, tally, tally) for name, tally in sorted(tallies.items())]


def _make_rollup_groups(
    own: Mapping[str, LevelTally], tree: GroupHierarchy, group: str | None, depth: int
) -> list[RollupGroup]:
    tallies = grader.roll_up_groups(own, tree)

    def at(path: tuple[str, ...]) -> RollupGroup:
        name = path[-1]
        below: set[str] = set()
        if len(path) <= min(depth, MOST_DEPTH):
            # In a cycle, a group is not shown below itself.
            below = (tree.children.get(name, set()) & tallies.keys()) - set(path)
        children = tuple(at((*path, child)) for child in sorted(below))
        return RollupGroup(name, tallies.get(name, NO_TALLY), own.get(name, NO_TALLY), children)

    return [at((name,)) for name in ([group] if group is not None else tree.tops(tallies))]


class LevelFilter(NamedTuple):
    """A filter of entities by owner and level rank, 0 below the first."""

    owners: Sequence[str] = ()
    rank: int | None = None


def filter_by_level(card: Scorecard, level: str | None, owners: Sequence[str]) -> LevelFilter:
    """A filter by level id or the word for no level; raises InputError for anything else."""
    if level is None:
        return LevelFilter(owners)
    if level == NO_LEVEL_WORD:
        return LevelFilter(owners, 0)
    if level not in card.ranks:
        raise InputError(f"level {one_of(level, [*card.ranks, NO_LEVEL_WORD])}.")
    return LevelFilter(owners, card.rank(level))


class RankedEntity(NamedTuple):
    """An entity with its level."""

    ref: str
    graded: GradedLevel


class LevelPage(NamedTuple):
    """Entities, and the id of the last entity read; None at the end."""

    entities: list[RankedEntity]
    next: int | None


async def read_ranked_page(
    database: Database, given: ScorecardInEffect, wanted: LevelFilter, after: int, limit: int
) -> LevelPage:
    """Up to `limit` entities with ids above `after`."""
    found: list[tuple[int, GradedLevel]] = []
    for _ in range(_LEVELS_LOOKED_AT // _LEVEL_PORTION):
        rows = await level_store.read_level_page(
            database, given.slot, after, _LEVEL_PORTION, wanted.owners
        )
        for id_, graded in rows:
            if wanted.rank is None or graded.level == wanted.rank:
                if len(found) == limit:
                    return LevelPage(await _name_ranked(database, found), found[-1][0])
                found.append((id_, graded))
        if len(rows) < _LEVEL_PORTION:
            return LevelPage(await _name_ranked(database, found), None)
        after = rows[-1][0]
    return LevelPage(await _name_ranked(database, found), after)


async def read_all_ranked(
    database: Database, given: ScorecardInEffect, wanted: LevelFilter
) -> AsyncIterator[list[RankedEntity]]:
    """All matching entities, in batches."""
    after: int | None = 0
    while after is not None:
        entities, after = await read_ranked_page(database, given, wanted, after, _LEVEL_PORTION)
        yield entities


async def _name_ranked(
    database: Database, found: Sequence[tuple[int, GradedLevel]]
) -> list[RankedEntity]:
    refs = await stored_entities.read_refs_of_ids(database, [id_ for id_, _ in found])
    # Entities deleted meanwhile have no reference.
    return [RankedEntity(refs[id_], graded) for id_, graded in found if id_ in refs]


class EntityStanding(NamedTuple):
    """An entity in a scorecard, with results of its next steps; `graded` is None outside."""

    ref: str
    graded: GradedLevel | None
    steps: list[tuple[Step, CheckResult]]


async def read_standing(
    database: Database, given: ScorecardInEffect, ref: str, now: int
) -> EntityStanding | None:
    """The standing and next steps of an entity; None if it doesn't exist."""
    found = await result_queries.read_entity_results(database, ref, now, only=given.card.checks)
    if found is None:
        return None
    graded = decode_level(
        await level_store.read_entity_levels(database, found.entity_id), given.slot
    )
    if graded is None:
        return EntityStanding(ref, None, [])
    return EntityStanding(ref, graded, list_next_steps(given.card, found.results, now))


def list_next_steps(
    card: Scorecard, found: Iterable[CheckResult], now: int
) -> list[tuple[Step, CheckResult]]:
    """The next steps of an entity with these results, each with its result."""
    counted = {
        result.check.id: result
        for result in found
        if result.check.severity != "advisory" and (result.check.effective_from or 0) <= now
    }
    places = {id_: place for place, id_ in enumerate(counted, 1)}
    left = Grader(card, places).steps(bytes(one.state for one in counted.values()))
    return [(step, counted[step.check]) for step in left]


class MatrixFilter(NamedTuple):
    """A filter of entities: by level, and by the state of any shown check, as a word."""

    levels: LevelFilter = LevelFilter()
    state: str | None = None


class MatrixRow(NamedTuple):
    """An entity with its level, and the check states in order of the checks."""

    ref: str
    owner: str
    graded: GradedLevel
    states: tuple[int, ...]


class MatrixPage(NamedTuple):
    """Rows, and the id of the last entity read; None at the end."""

    rows: list[MatrixRow]
    next: int | None


class _FoundEntity(NamedTuple):
    id: int
    graded: GradedLevel
    owner: str
    states: tuple[int, ...]


async def read_matrix_page(
    database: Database,
    given: ScorecardInEffect,
    check_ids: Sequence[str],
    wanted: MatrixFilter,
    after: int,
    limit: int,
) -> MatrixPage:
    """Up to `limit` entities with ids above `after`; checks not in effect have no state."""
    cache = database.remembered.of(CheckCache)
    for _ in range(_READS):
        known = await cache.loaded(database)
        found = await _read_matrix_rows(
            database, given, [known.slots.get(id_, 0) for id_ in check_ids], wanted, after, limit
        )
        if await check_store.revision(database) == known.revision:
            break
    return found


async def _read_matrix_rows(
    database: Database,
    given: ScorecardInEffect,
    places: Sequence[int],
    wanted: MatrixFilter,
    after: int,
    limit: int,
) -> MatrixPage:
    found: list[_FoundEntity] = []
    for _ in range(_ROWS_LOOKED_AT // _MATRIX_PORTION):
        size = _MATRIX_PORTION if wanted.state or wanted.levels.rank is not None else limit + 1
        rows = await level_store.read_level_page(
            database, given.slot, after, size, wanted.levels.owners
        )
        for one in await _list_meeting_rows(database, rows, places, wanted):
            if len(found) == limit:
                return MatrixPage(await _name_matrix_rows(database, found), found[-1].id)
            found.append(one)
        if len(rows) < size:
            return MatrixPage(await _name_matrix_rows(database, found), None)
        after = rows[-1][0]
    return MatrixPage(await _name_matrix_rows(database, found), after)


async def _list_meeting_rows(
    database: Database,
    rows: Sequence[tuple[int, GradedLevel]],
    places: Sequence[int],
    wanted: MatrixFilter,
) -> list[_FoundEntity]:
    rank = wanted.levels.rank
    chosen = [(id_, graded) for id_, graded in rows if rank is None or graded.level == rank]
    states = await state_store.read_states_of(database, [id_ for id_, _ in chosen])
    width, none = max(places, default=0), EntityStates(0, "", b"", None)
    found = []
    for id_, graded in chosen:
        own = states.get(id_, none)
        vector = own.padded(width)
        picked = tuple(vector[place] for place in places)
        if wanted.state is None or wanted.state in map(state.name_state, picked):
            found.append(_FoundEntity(id_, graded, own.owner, picked))
    return found


async def _name_matrix_rows(database: Database, found: Sequence[_FoundEntity]) -> list[MatrixRow]:
    refs = await stored_entities.read_refs_of_ids(database, [one.id for one in found])
    # Entities deleted meanwhile have no reference.
    return [
        MatrixRow(refs[one.id], one.owner, one.graded, one.states)
        for one in found
        if one.id in refs
    ]


_OF_GROUP: Final = """
SELECT day, levels, scored, score FROM scorecard_days
WHERE scorecard_id = ? AND owner = ? AND day >= COALESCE((
    SELECT MAX(day) FROM scorecard_days WHERE scorecard_id = ? AND owner = ? AND day <= ?
), 0) AND day <= ? ORDER BY day DESC LIMIT ?
"""

_LAST: Final = """
SELECT d.owner, d.day, d.levels, d.scored, d.score FROM scorecard_days d JOIN (
    SELECT owner, MAX(day) AS day FROM scorecard_days WHERE scorecard_id = ? AND day <= ?
    GROUP BY owner
) last ON last.owner = d.owner AND last.day = d.day WHERE d.scorecard_id = ?
"""

# Rows superseded by a later day that is also before that time.
_TRIM: Final = """
DELETE FROM scorecard_days WHERE day < ? AND EXISTS (
    SELECT 1 FROM scorecard_days later WHERE later.scorecard_id = scorecard_days.scorecard_id
        AND later.owner = scorecard_days.owner AND later.day > scorecard_days.day
        AND later.day <= ?
)
"""

_KEEP: Final = """
INSERT INTO scorecard_days (scorecard_id, owner, day, levels, scored, score)
VALUES (?, ?, ?, ?, ?, ?)
ON CONFLICT (scorecard_id, owner, day) DO UPDATE SET levels = excluded.levels,
    scored = excluded.scored, score = excluded.score
"""


_LONGEST: Final = 60
_HEIGHT: Final = 20
_PADDING: Final = 6
# Tenths of a pixel at font size 11.
_NARROW: Final = dict.fromkeys("fijlrtI.,:;|!'()[] ", 40)
_WIDE: Final = dict.fromkeys("mwMW@%", 100)
_USUAL: Final = 67
_FULL: Final = 110
# East Asian and other characters from here on fill a square.
_FIRST_FULL: Final = "\u1100"
_GREY: Final = "#6e7781"
_RED: Final = "#b42318"
# From the lowest level to the highest.
_COLOURS: Final = ("#b35900", "#9a6700", "#4d7a17", "#1a7f37")


class Badge(NamedTuple):
    """A label, a message and the colour behind the message."""

    label: str
    message: str
    color: str


def make_level_badge(scorecard: Scorecard, graded: GradedLevel | None) -> Badge:
    """The badge of an entity; `graded` is None if the scorecard doesn't apply."""
    if graded is None:
        return Badge(scorecard.title, "not applicable", _GREY)
    if graded.coverage is None or (graded.score is None and not graded.level):
        return Badge(scorecard.title, "unknown", _GREY)
    if not scorecard.levels:
        return Badge(scorecard.title, f"{graded.score} %", _pick_color(graded.score or 0, 100))
    if not graded.level:
        return Badge(scorecard.title, NO_LEVEL_TITLE, _RED if not graded.level_if_known else _GREY)
    level = scorecard.levels[graded.level - 1]
    return Badge(scorecard.title, level.title, _pick_color(graded.level, len(scorecard.levels)))


def draw_badge(badge: Badge) -> str:
    """The badge as an SVG image whose accessible name is its text."""
    label, message = _shorten_label(badge.label), _shorten_label(badge.message)
    left, right = _measure_width(label), _measure_width(message)
    words = escape(f"{label}: {message}")
    return _SVG.format(
        width=left + right,
        height=_HEIGHT,
        left=left,
        right=right,
        label_at=left / 2,
        message_at=left + right / 2,
        words=words,
        label=escape(label),
        message=escape(message),
        color=escape(badge.color),
    )


def _pick_color(part: int, whole: int) -> str:
    """A colour for a share; the last colour means all."""
    return _COLOURS[part * (len(_COLOURS) - 1) // whole]


def _shorten_label(text: str) -> str:
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"


def _measure_width(text: str) -> int:
    """The width of a text with padding, in pixels."""
    tenths = sum(
        _FULL if char >= _FIRST_FULL else _NARROW.get(char) or _WIDE.get(char) or _USUAL
        for char in text
    )
    return tenths // 10 + 1 + 2 * _PADDING


_SVG: Final = (
    '<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" role="img"'
    ' aria-label="{words}"><title>{words}</title>'
    '<clipPath id="r"><rect width="{width}" height="{height}" rx="3"/></clipPath>'
    '<g clip-path="url(#r)"><rect width="{left}" height="{height}" fill="#444c56"/>'
    '<rect x="{left}" width="{right}" height="{height}" fill="{color}"/></g>'
    '<g fill="#fff" text-anchor="middle" font-family="Verdana,DejaVu Sans,sans-serif"'
    ' font-size="11"><text x="{label_at}" y="14">{label}</text>'
    '<text x="{message_at}" y="14">{message}</text></g></svg>'
)
