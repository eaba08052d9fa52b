"""Previews of checks and scorecards: results and levels as they would be, beside what they are."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, Final, NamedTuple

from factbook.catalog.store import stored_entities
from factbook.checks.definitions.definition_versions import scorecard_store
from factbook.checks.definitions.scorecard import Scorecard, parse_scorecard
from factbook.checks.results import entity_evaluation, level_store, result_queries, state_store
from factbook.checks.results.check_set import (
    CheckCache,
    CheckSet,
    EvaluatedCheck,
    make_evaluated_check,
)
from factbook.checks.results.count_store import NO_PLACE, PLACES, StateCounts
from factbook.checks.results.entity_evaluation import SlotStates
from factbook.checks.results.grader import Grader, LevelTally
from factbook.checks.results.result_queries import ResultAge
from factbook.checks.rules import language
from factbook.checks.rules.check_definition import Check
from factbook.checks.rules.checked_entity import CheckedEntity
from factbook.checks.rules.language import ENTITY
from factbook.checks.scorecards import write_trial
from factbook.checks.scorecards.write_trial import TrialBudget, TrialRoom
from factbook.checks.state import EXEMPT, FAIL, NONE, OUT, PASS, UNKNOWN, name_state
from factbook.errors import FactbookError
from factbook.facts import entity_filter
from factbook.facts.freshness import Latest
from factbook.storage import Database

# Entities that are read at once; other work is done between two portions.
_EVALUATED_AT_ONCE: Final = 2_000
_NO_FACTS_PREVIEWED: Mapping[str, Any] = {}
_GRADED_AT_ONCE: Final = 2_000
_ADVISORY: Final = "advisory"


Facts = Mapping[str, Mapping[str, object]]


class PreviewedChange(NamedTuple):
    """An entity whose state would be another one."""

    ref: str
    before: int
    after: int

    @property
    def words(self) -> tuple[str, str]:
        """The states, before and after; `none` for an entity without a result so far."""
        before = "none" if self.before == NONE else name_state(self.before)
        return before, name_state(self.after)


class CheckPreview(NamedTuple):
    """Effect of a check: counts `now` and `then`, and the entities that would change.

    `changed` are all of them. `first` are some: those that would fail, then by reference.
    """

    now: StateCounts
    then: StateCounts
    changed: int
    first: list[PreviewedChange]
    age: ResultAge


class PreviewScope(NamedTuple):
    """Limits of a preview: entities by reference, all if empty; facts as they would be."""

    refs: Sequence[str] = ()
    facts: Facts = _NO_FACTS_PREVIEWED


_WHOLE: Final = PreviewScope()


async def preview_check(
    database: Database,
    check: Check,
    now: int,
    limit: int,
    caller: str,
    scope: PreviewScope = _WHOLE,
) -> CheckPreview:
    """Evaluate a check for every entity of the catalog; nothing is written.

    The results that there are come from the version in effect of the check with the same id.
    Raises InputError, TooManyRequestsError and UnavailableError if that costs the caller too much.
    """
    async with database.remembered.of(TrialRoom).enter(caller) as budget:
        work = _Preview(
            database, make_evaluated_check(check, 0, is_pending=False), scope, now, budget
        )
        await work.charge()
        return await _preview_check_within(database, check, work, limit, now)


async def _preview_check_within(
    database: Database, check: Check, work: "_Preview", limit: int, now: int
) -> CheckPreview:
    known = await database.remembered.of(CheckCache).loaded(database)
    slot = known.slots.get(check.id, 0)
    ages = await result_queries.read_result_age(database, now)
    counts_now, counts_then = Counter[int](), Counter[int]()
    changed = list[PreviewedChange]()
    async for portion in work.portions():
        first, last = portion[0][0], portion[-1][0]
        states = await state_store.read_slot_states(database, slot, first, last)
        after = await work.evaluate(portion, known.slots)
        # Without a state it is empty.
        pairs = [(ord(states.get(id_) or b"\0"), after.get(id_, OUT)) for id_, _ in portion]
        if any(before & EXEMPT for before, _ in pairs):
            pairs = [(before, _keep_exemption(before, then)) for before, then in pairs]
        counts_now.update(before for before, _ in pairs)
        counts_then.update(then for _, then in pairs)
        changed += (
            PreviewedChange(ref, before, then)
            for (_, ref), (before, then) in zip(portion, pairs, strict=True)
            if before != then
            and (before != NONE or then != OUT)
            and not before & then & EXEMPT  # shown as exempt before and after
        )
        await asyncio.sleep(0)
    some = sorted(changed, key=lambda one: (one.after != FAIL, one.ref))[:limit]
    age = ages.of_sources(work.sources | known.sources_of(work.checks))
    return CheckPreview(
        _count_previewed(counts_now), _count_previewed(counts_then), len(changed), some, age
    )


class _Preview:
    """The evaluation of one check that is not stored."""

    def __init__(
        self,
        database: Database,
        evaluated: EvaluatedCheck,
        scope: PreviewScope,
        now: int,
        budget: TrialBudget,
    ) -> None:
        self._budget = budget
        self._database = database
        self._check = evaluated.compiled
        self.sources, self.checks = evaluated.compiled.sources, evaluated.compiled.checks
        rules = [rule for _, rule in evaluated.compiled.check.rules()]
        facts = [fact for rule in rules for fact in language.walk_references(rule)]
        self._has_paths = any(fact.path is not None for fact in facts)
        self._scope = scope
        self._now = now

    async def portions(self) -> AsyncIterator[list[tuple[int, str]]]:
        """(id, reference) of the entities, by id."""
        refs, after = list(self._scope.refs), 0
        while True:
            found = await stored_entities.page_refs(self._database, after, _EVALUATED_AT_ONCE, refs)
            if found:
                yield found
            if len(found) < _EVALUATED_AT_ONCE:
                return
            after = found[-1][0]

    async def charge(self) -> None:
        """Reserve what the preview takes, before anything is evaluated.

        Texts are read for that, as the time of a pattern grows with them.
        """
        steps = 0
        sources = {fact.source for fact, _ in self._check.patterns}
        async for portion in self.portions():
            steps += write_trial.EVALUATION_STEPS * len(portion)
            if sources:
                steps += await self._pattern_steps(portion, sources)
        self._budget.charge(steps)

    async def _pattern_steps(self, portion: Sequence[tuple[int, str]], sources: set[str]) -> int:
        first, last = portion[0][0], portion[-1][0]
        stored = sorted(sources - {ENTITY})
        values = await entity_evaluation.read_values_between(self._database, stored, first, last)
        rows = []
        if ENTITY in sources:
            rows = await self._database.search(*stored_entities.id_range_condition(first, last))

        def steps() -> int:
            found, documents = (
                0,
                {id_: document for id_, _, document in stored_entities.decode_collectable(rows)},
            )
            for id_, ref in portion:
                entity = CheckedEntity(ref, documents.get(id_, _NO_FACTS_PREVIEWED), {})
                given = self._scope.facts.items()
                entity.values = {
                    **values.get(id_, _NO_FACTS_PREVIEWED),
                    **{
                        name: {**values.get(id_, {}).get(name, {}), **facts}
                        for name, facts in given
                    },
                }
                found += write_trial.count_pattern_steps([self._check], entity)
                self._budget.check()
            return found

        return await self._budget.work(steps)

    async def evaluate(
        self, portion: Sequence[tuple[int, str]], slots: Mapping[str, int]
    ) -> dict[int, int]:
        """The states of those of the entities that the check is about, by id."""
        first, last = portion[0][0], portion[-1][0]
        filter_ = self._check.check.applies_to
        where = (
            stored_entities.EVERY_ENTITY
            if filter_ is None
            else entity_filter.filter_condition(filter_)
        )
        matching = await stored_entities.read_entities_between(self._database, where, first, last)
        if self._check.reads_values_only and not self._scope.facts:
            return await self._by_values(first, last, matching)
        facts = await self._facts(first, last)
        states: Mapping[int, bytes] = {}
        if self._check.checks:
            states = await state_store.read_states_between(self._database, first, last)
        documents: Mapping[int, Mapping[str, Any]] = {}
        if self._check.reads_entity:
            rows = await self._database.search(*stored_entities.id_range_condition(first, last))
            documents = {
                id_: document for id_, _, document in stored_entities.decode_collectable(rows)
            }
        unknown = replace_facts({}, self._scope.facts, self._now)

        def entities() -> Iterator[tuple[int, CheckedEntity]]:
            for id_, ref in portion:
                if id_ in matching:
                    document = documents.get(id_, _NO_FACTS_PREVIEWED)
                    entity = CheckedEntity(ref, document, facts.get(id_, unknown))
                    if self._check.checks:
                        entity.states = SlotStates(slots, bytearray(b"\0" + states.get(id_, b"")))
                    yield id_, entity

        return await self._budget.work(partial(self._states, entities()))

    def _states(self, entities: Iterable[tuple[int, CheckedEntity]]) -> dict[int, int]:
        """The states of entities; counts the steps of paths beside those of patterns."""
        found = {}
        for id_, entity in entities:
            found[id_] = self._check.evaluate(entity, self._now).state
            self._budget.count(entity.steps if self._has_paths else 0)
        return found

    async def _by_values(self, first: int, last: int, matching: Iterable[int]) -> dict[int, int]:
        """The same where nothing but stored values of facts is read."""
        sources = sorted(self._check.sources)
        values = await entity_evaluation.read_values_between(self._database, sources, first, last)
        entity = CheckedEntity.of_values
        entities = ((id_, entity(values.get(id_, _NO_FACTS_PREVIEWED))) for id_ in matching)
        return await self._budget.work(partial(self._states, entities))

    async def _facts(self, first: int, last: int) -> dict[int, dict[str, Latest]]:
        sources = sorted(self._check.sources)
        found = await entity_evaluation.read_facts_between(self._database, sources, first, last)
        if self._scope.facts:
            return {
                id_: replace_facts(latest, self._scope.facts, self._now)
                for id_, latest in found.items()
            }
        return found


def replace_facts(latest: Mapping[str, Latest], facts: Facts, now: int) -> dict[str, Latest]:
    """The latest facts of an entity as they would be with others."""
    changed = {
        source: _replace_values(latest.get(source), values, now) for source, values in facts.items()
    }
    return {**latest, **changed}


def _replace_values(latest: Latest | None, values: Mapping[str, object], now: int) -> Latest:
    """Facts as they would be with other values."""
    before = latest or Latest({}, {}, "", now)
    return before._replace(facts={**before.facts, **values}, written_at=now)


def _keep_exemption(before: int, then: int) -> int:
    """The state of an entity that is exempt, if it was so before."""
    return then | EXEMPT if before & EXEMPT and then in (PASS, FAIL, UNKNOWN) else then


def _count_previewed(states: Mapping[int, int]) -> StateCounts:
    counts = [0] * len(StateCounts._fields)
    for state, number in states.items():
        if PLACES[state] != NO_PLACE:
            counts[PLACES[state]] += number
    return StateCounts(*counts)


class PreviewedLevel(NamedTuple):
    """An entity whose level would be another one; None is outside the scorecard.

    Levels are ids, '' below the first.
    """

    ref: str
    before: str | None
    after: str | None


class ScorecardPreview(NamedTuple):
    """Entities by rank as they would be, and those that would change: all, and the first of them.

    An entity that is exempt from the scorecard as a whole counts as if it were not in it yet.
    """

    then: LevelTally
    changed: int
    first: list[PreviewedLevel]


async def preview_scorecard(
    database: Database, card: Scorecard, now: int, limit: int, caller: str
) -> ScorecardPreview:
    """Grade every entity of the catalog; nothing is written.

    Raises InputError, TooManyRequestsError and UnavailableError if that costs the caller too much.
    """
    async with database.remembered.of(TrialRoom).enter(caller) as budget:
        return await _preview_scorecard_within(database, card, now, limit, budget)


async def _preview_scorecard_within(
    database: Database, card: Scorecard, now: int, limit: int, budget: TrialBudget
) -> ScorecardPreview:
    known = await database.remembered.of(CheckCache).loaded(database)
    stored = await scorecard_store.one(database, card.id)
    slot = stored.slot if stored else None
    names = _list_level_names(card)
    former = _name_entity(stored.published, names) if stored and stored.published else names
    grader = Grader(card, _count_standings(known, now))
    levels, changed, after = Counter[int](), list[PreviewedLevel](), 0
    while portion := await stored_entities.page_refs(database, after, _GRADED_AT_ONCE, []):
        budget.count(write_trial.EVALUATION_STEPS * len(portion))
        found = await _grade_portion(database, card, grader, portion, budget)
        old = await _read_levels_before(database, slot, portion)
        levels.update(found.values())
        for id_, ref in portion:
            was = former[old[id_]] if id_ in old else None
            now_at = names[found[id_]] if id_ in found else None
            if was != now_at:
                changed.append(PreviewedLevel(ref, was, now_at))
        after = portion[-1][0]
        await asyncio.sleep(0)
    first = sorted(changed, key=lambda one: one.ref)[:limit]
    return ScorecardPreview(LevelTally(levels), len(changed), first)


async def _grade_portion(
    database: Database,
    card: Scorecard,
    grader: Grader,
    portion: list[tuple[int, str]],
    budget: TrialBudget,
) -> dict[int, int]:
    """The ranks of those of the entities that the scorecard applies to."""
    ends = portion[0][0], portion[-1][0]
    where = stored_entities.EVERY_ENTITY
    if card.applies_to is not None:
        where = entity_filter.filter_condition(card.applies_to)
    matching = await stored_entities.read_entities_between(database, where, *ends)
    states = await state_store.read_states_between(database, *ends)

    def graded() -> dict[int, int]:
        # The rank is stored as one more.
        return {
            id_: grader.encoded(states.get(id_, b""))[0] - 1
            for id_, _ in portion
            if id_ in matching
        }

    budget.check()
    return await budget.work(graded)


async def _read_levels_before(
    database: Database, slot: int | None, portion: list[tuple[int, str]]
) -> dict[int, int]:
    """The ranks of the entities as they are."""
    if slot is None:
        return {}
    last = portion[-1][0]
    rows = await level_store.read_level_page(database, slot, portion[0][0] - 1, len(portion))
    return {id_: graded.level for id_, graded in rows if id_ <= last}


def _count_standings(known: CheckSet, now: int) -> dict[str, int]:
    """The slots of the checks that count now."""
    checks = [one for one in known.checks if not one.is_pending]
    return {
        one.id: one.slot
        for one in checks
        if one.compiled.check.severity != _ADVISORY and one.compiled.check.is_effective(now)
    }


def _list_level_names(card: Scorecard) -> list[str]:
    """The ids of the levels by rank."""
    return ["", *(level.id for level in card.levels)]


def _name_entity(document: Mapping[str, object], otherwise: list[str]) -> list[str]:
    try:
        return _list_level_names(parse_scorecard(document))
    except FactbookError:
        return otherwise  # another release took it
