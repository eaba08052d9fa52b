"""Trials of writes, checks and scorecards: the results they would have, without storing anything.

A trial's cost is computed before any check is evaluated; a trial that costs too much is refused.

A trial of documents, such as those of a pull request, shows the results of their entities and
whether the documents alone decide them. Each entity is evaluated in its current set, whoever pushes
or imports that set, with the importer's annotations and stored facts. Stored values are shown only
for entities of the named set, since strangers' documents may name any entity.
"""

import asyncio
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from functools import partial
from typing import Any, Final, NamedTuple, TypeVar, cast

import msgspec

from factbook import user_patterns
from factbook.catalog import filters, sets
from factbook.catalog.sets import Prepared, PushRules
from factbook.catalog.store import diff, locks, stored_entities, stored_sets
from factbook.catalog.store.diff import Existing, WritePlan
from factbook.catalog.store.locks import WriteLocks
from factbook.catalog.store.stored_sets import Actor
from factbook.checks import state
from factbook.checks.definitions.definition_versions import scorecard_store
from factbook.checks.definitions.scorecard import Scorecard, parse_scorecard
from factbook.checks.results import (
    entity_evaluation,
    incremental,
    level_store,
    result_queries,
    state_store,
)
from factbook.checks.results.entity_evaluation import (
    ActiveExemptions,
    CheckCache,
    CheckSet,
    EvaluatedCheck,
    SlotStates,
    evaluate_selection,
    make_evaluated_check,
)
from factbook.checks.results.grader import Grader, LevelTally
from factbook.checks.results.incremental import TouchedEntity
from factbook.checks.results.result_queries import ResultAge
from factbook.checks.results.state_store import NO_PLACE, PLACES, EntityStates, StateCounts
from factbook.checks.rules import language, rule_evaluation
from factbook.checks.rules.check_definition import Check
from factbook.checks.rules.checked_entity import CheckedEntity
from factbook.checks.rules.language import ENTITY, FactReference
from factbook.checks.rules.rule_evaluation import CompiledCheck, Explanation, PartialEvaluation
from factbook.checks.state import EXEMPT, FAIL, NONE, OUT, PASS, UNKNOWN, name_state
from factbook.clock import Clock
from factbook.errors import FactbookError, InputError, TooManyRequestsError, UnavailableError
from factbook.facts import store
from factbook.facts.datasource import DataSource
from factbook.facts.freshness import Latest, Observation
from factbook.integrations import catalog
from factbook.storage import Database, Transaction

T = TypeVar("T")
# Steps for evaluating a check without patterns once.
EVALUATION_STEPS: Final = 50
# Steps per trial, about 20 seconds at worst and usually far less.
MOST_STEPS: Final = 1_000_000_000
# Steps per caller and minute.
MOST_STEPS_A_MINUTE: Final = 3_000_000_000
# Maximum evaluation time of a trial, in seconds.
LONGEST_WAIT: Final = 30.0
# Trials running per process, and waiting trials per caller.
MOST_AT_ONCE: Final = 2
MOST_WAITING: Final = 3
_REMEMBERED: Final = 10_000
# Maximum entities of a trial, which are kept in memory.
_MOST_ENTITIES: Final = 20_000
# Explaining a result evaluates its check again: with the given facts, as a whole and in parts.
_TIMES_LOOKED_AT: Final = 4
_NO_STATES: Final = EntityStates(0, "", b"", None)
# Trials block other writes, and their callers may have no permission to write.
_MOST_OTHERS: Final = 2_000
# Results that are explained; the rest are only counted.
MOST_EXPLAINED: Final = 500
# Suffixes of annotations that importers add to name an entity's origin.
_PLACES: Final = ("/source-location", "/view-url", "/edit-url")
_HOSTED: Final = ("/project-slug", "/project-id", "/instance")
_NOTHING: Final = Latest({}, {}, "", 0)


class TrialBudget:
    """The budget of one trial; `work` runs under it."""

    def __init__(self, allowance: "_Allowance") -> None:
        self._allowance = allowance
        self._left = MOST_STEPS
        self._end = time.monotonic() + LONGEST_WAIT
        self._is_over = False

    def charge(self, steps: int) -> None:
        """Reserve steps in advance; raises InputError, TooManyRequestsError."""
        if steps > self._left:
            percent = 100 * (MOST_STEPS - self._left + steps) // MOST_STEPS
            raise InputError(
                "The trial would take too long and wasn't evaluated: its checks, entities and "
                f"patterns cost {percent:,} % of what one trial may cost. Try fewer entities at "
                "once, or smaller patterns."
            )
        self._left -= steps
        self._allowance.take(steps)

    def count(self, steps: int) -> None:
        """Count steps that weren't known in advance; raises the errors of `charge` and `check`."""
        self.check()
        if steps:
            self.charge(steps)

    def check(self) -> None:
        """Raise UnavailableError once the time is up or the caller has stopped waiting."""
        if self._is_over or time.monotonic() > self._end:
            raise UnavailableError(
                f"The trial took longer than {LONGEST_WAIT:.0f} seconds and was ended. Try fewer "
                "entities at once, or simpler checks.",
                retry_after=None,
            )

    async def work(self, function: Callable[[], T]) -> T:
        """Run a function on a thread; it calls `check` or `count` between its parts."""
        try:
            return await asyncio.to_thread(function)
        except BaseException:
            self._is_over = True
            raise


class _Allowance:
    """The steps a caller may use; fully restored after a minute without trials."""

    def __init__(self) -> None:
        self.turn = asyncio.Lock()
        self.waiting = 0
        self._full_at = time.monotonic()

    @property
    def is_idle(self) -> bool:
        return not self.waiting and not self.turn.locked() and self._full_at <= time.monotonic()

    def take(self, steps: int) -> None:
        now = time.monotonic()
        full_at = max(self._full_at, now) + 60 * steps / MOST_STEPS_A_MINUTE
        if full_at > now + 60:
            raise TooManyRequestsError(
                "You have used up what trials may cost in a minute. Try again later, or try fewer "
                "entities at once.",
                retry_after=max(1, round(full_at - now - 60)),
            )
        self._full_at = full_at


class TrialRoom:
    """Admits one trial per caller at a time and a few in total; one per database and process."""

    def __init__(self) -> None:
        self._places = asyncio.Semaphore(MOST_AT_ONCE)
        self._allowances: dict[str, _Allowance] = {}

    @asynccontextmanager
    async def enter(self, caller: str) -> AsyncIterator[TrialBudget]:
        """Wait for the caller's turn and a free place; raises TooManyRequestsError.

        `caller` is a token id or anything else that identifies the caller.
        """
        allowance = self._allowance(caller)
        if allowance.waiting >= MOST_WAITING:
            raise TooManyRequestsError(
                f"{MOST_WAITING} of your trials are waiting already, and they run one after "
                "another. Try again when they have ended.",
                retry_after=5,
            )
        allowance.waiting += 1
        try:
            await allowance.turn.acquire()
        finally:
            allowance.waiting -= 1
        try:
            async with self._places:
                yield TrialBudget(allowance)
        finally:
            allowance.turn.release()

    def _allowance(self, caller: str) -> _Allowance:
        if caller not in self._allowances and len(self._allowances) >= _REMEMBERED:
            self._allowances = {
                key: one for key, one in self._allowances.items() if not one.is_idle
            }
        return self._allowances.setdefault(caller, _Allowance())


def count_pattern_steps(checks: Iterable[CompiledCheck], entity: CheckedEntity) -> int:
    """The maximum steps that the patterns of checks take for an entity.

    Paths into objects come on top; their steps are only known after evaluation.
    """
    steps = 0
    for check in checks:
        for fact, text in check.patterns:
            value = entity.value(fact) if fact.path is None else None
            for one in value if isinstance(value, list) else [value]:
                pattern = user_patterns.compile_pattern(text)
                if isinstance(one, str) and len(one) <= pattern.longest:
                    steps += pattern.size * (len(one) if one.isascii() else 4 * len(one))
    return steps


class ResultDifference(NamedTuple):
    """A result that would change, in words; `before` is None for a new entity."""

    ref: str
    check_id: str
    before: str | None
    after: str


class EvaluatedTrial(NamedTuple):
    """An evaluated trial: the checks, and the entities with their new states."""

    known: CheckSet
    entities: dict[str, CheckedEntity]
    differences: list[ResultDifference]
    budget: TrialBudget


Look = Callable[[EvaluatedTrial], None]


class _TakenBackError(Exception):
    """Rolls back a completed write, with its result and the touched entities."""

    def __init__(self, result: object, known: CheckSet, touched: list[TouchedEntity]) -> None:
        self.result = result
        self.known = known
        self.touched = touched


class WriteTrial:
    """Runs a caller's write in a transaction that is rolled back, then evaluates its effect.

    It holds the same locks as the write, for as long as the write takes.
    """

    def __init__(self, database: Database, clock: Clock, caller: str) -> None:
        self._database = database
        self._clock = clock
        self._caller = caller
        self.differences: list[ResultDifference] = []

    async def write(self, function: Callable[[Transaction], T], look: Look | None = None) -> T:
        """Run the function, record the results it would change, and return its result.

        `look` is called with the entities and differences, on the evaluating thread. Raises
        InputError, TooManyRequestsError and UnavailableError if the trial costs too much.
        """
        async with self._database.remembered.of(TrialRoom).enter(self._caller) as budget:
            try:
                return await self._database.write(partial(self._try, function=function))
            except _TakenBackError as taken:
                await budget.work(partial(self._evaluate, taken.known, taken.touched, budget, look))
                return cast("T", taken.result)

    def _try(self, transaction: Transaction, function: Callable[[Transaction], T]) -> T:
        transaction.evaluation = None  # touched entities are read here and evaluated later
        result = function(transaction)
        cache = self._database.remembered.of(CheckCache)
        found = incremental.read_touched(transaction, cache, self._clock(), _MOST_ENTITIES)
        raise _TakenBackError(result, *found)

    def _evaluate(
        self, known: CheckSet, touched: list[TouchedEntity], budget: TrialBudget, look: Look | None
    ) -> None:
        times = 1 if look is None else _TIMES_LOOKED_AT
        # Paths into objects come on top, see `_differences`.
        steps = 0
        for one in touched:
            checks = _list_compiled(one)
            steps += EVALUATION_STEPS * len(checks)
            steps += count_pattern_steps(checks, one.subject.entity)
        budget.charge(times * steps)
        found = EvaluatedTrial(known, {}, [], budget)
        for one in touched:
            found.differences.extend(self._differences(found, one))
        found.differences.sort(key=lambda one: one[:2])
        self.differences = found.differences
        if look is not None:
            look(found)

    def _differences(self, found: EvaluatedTrial, one: TouchedEntity) -> Iterator[ResultDifference]:
        known, entity = found.known, one.subject.entity
        was = (one.before or _NO_STATES).padded(known.width)
        exempt = ActiveExemptions(one.exempt, None)
        steps = count_pattern_steps(_list_compiled(one), entity)
        now = evaluate_selection(
            known, one.selection, one.subject, was, self._clock(), exempt
        ).states
        # Charge the steps of paths; the patterns are charged already.
        found.budget.count(max(0, entity.steps - steps))
        entity.states = SlotStates(known.slots, now)
        found.entities[entity.ref] = entity
        for check_id, slot in known.slots.items():
            words = (
                None if one.before is None else state.name_state(was[slot]),
                state.name_state(now[slot]),
            )
            if words[0] != words[1] and (words[0] is not None or now[slot] != state.OUT):
                yield ResultDifference(entity.ref, check_id, *words)


def _list_compiled(touched: TouchedEntity) -> Sequence[CompiledCheck]:
    matching = touched.subject.matching
    checks = touched.selection.checks if matching is None else matching.inside
    return [one.compiled for one in checks]


Values = Mapping[str, object]


class GivenFacts(NamedTuple):
    """Facts of a source about an entity that the trial assumes."""

    source: DataSource
    values: Values


# The assumed facts about an entity, from its document; None if there are none.
Given = Callable[[Mapping[str, Any]], GivenFacts | None]


class EntityChange(NamedTuple):
    """The effect on an entity of the documents: `added`, `updated` or `unchanged`."""

    ref: str
    change: str


class TriedEntityResult(NamedTuple):
    """A result that would change; `is_decided`: by the documents alone.

    `explanation` is None if the check no longer applies to the entity, for entities outside the
    documents, and if it would disclose values that the caller may not see.
    """

    difference: ResultDifference
    check: Check
    is_decided: bool
    is_new_failure: bool
    explanation: Explanation | None


class EntityTrial:
    """A trial of documents by an actor, at one time."""

    def __init__(
        self,
        trial: WriteTrial,
        rules: PushRules,
        actor: Actor,
        named_set: str | None = None,
    ) -> None:
        """Stored values are shown only for entities in `named_set`."""
        self._named_set = named_set
        self._trial = trial
        self._rules = rules
        self._actor = actor
        self._now = actor.now
        self._facts: dict[str, GivenFacts] = {}
        self._own: dict[str, Mapping[str, Any]] = {}
        self._in_named_set: set[str] = set()
        self.changes: list[EntityChange] = []
        self.results: list[TriedEntityResult] = []

    async def run(self, documents: Sequence[msgspec.Raw], given: Given) -> None:
        """Try the documents with the given facts about each entity.

        Raises InvalidItemsError as a push does, and InputError if too many other entities are
        affected.
        """
        refs = [one.ref for one in sets.prepare_items(documents, None, self._rules).items]
        self._own = {
            ref: msgspec.json.decode(raw) for ref, raw in zip(refs, documents, strict=True)
        }
        held = WriteLocks({})

        def work(transaction: Transaction) -> None:
            held.begin(transaction)
            owners = diff.read_owners(transaction, refs)
            names = {ref: owners[ref][1] if ref in owners else None for ref in refs}
            if self._named_set is not None:
                self._in_named_set = {ref for ref in refs if names[ref] == self._named_set}
            # In their current sets, and outside any set, where the trial puts new ones.
            places = [*names.items(), *((ref, None) for ref in refs)]
            held.require({locks.owner(name, ref) for ref, name in places})
            plan = self._plan(transaction, dict(zip(refs, documents, strict=True)), owners)
            _check_reach(transaction, plan)
            stored_sets.apply_plan(transaction, plan, self._actor, held, kept=1)
            self._record(transaction, refs, given)

        await self._trial.write(work, self._explain)

    def _plan(
        self,
        transaction: Transaction,
        documents: Mapping[str, msgspec.Raw],
        owners: Mapping[str, tuple[Existing, str | None]],
    ) -> WritePlan:
        """A plan that writes the documents where their entities are now."""
        plan, self.changes = WritePlan(None), []
        stored = _read_stored_documents(
            transaction, [existing.id for existing, _ in owners.values()]
        )
        for ref, document in documents.items():
            if ref not in owners:
                plan.added.append(self._prepared(document, None))
                self.changes.append(EntityChange(ref, "added"))
                continue
            existing, name = owners[ref]
            given = _add_places(document, stored[ref], self._rules.annotator.domain)
            item = self._prepared(given, name)
            is_same = item.etag == existing.etag
            if not is_same:
                plan.updated.append((item, existing))
            self.changes.append(EntityChange(ref, "unchanged" if is_same else "updated"))
        return plan

    def _prepared(self, document: msgspec.Raw, set_name: str | None) -> Prepared:
        [item] = sets.prepare_item(document, set_name, self._rules).items
        return item

    def _record(self, transaction: Transaction, refs: Sequence[str], given: Given) -> None:
        """Write the given facts beside the other facts of their source."""
        self._facts = {}
        ids = stored_entities.read_ids_of_refs(transaction, refs)
        for ref, document in _read_stored_documents(transaction, list(ids.values())).items():
            if found := given(document):
                self._facts[ref] = found
                entity_id = ids[ref]
                rows = transaction.all(*store.latest_among([found.source.id], [entity_id]))
                latest = store.group_latest(rows).get(entity_id, {}).get(found.source.id, _NOTHING)
                reasons = {at: why for at, why in latest.reasons.items() if at not in found.values}
                seen = Observation(entity_id, {**latest.facts, **found.values}, reasons)
                store.record_facts(transaction, found.source, [seen], self._now)

    def _explain(self, found: EvaluatedTrial) -> None:
        """Record the differences, those of the documents' own entities first."""
        ordered = sorted(found.differences, key=lambda one: (one.ref not in self._own, *one[:2]))
        self.results = list(self._explained(found, ordered))

    def _explained(
        self, found: EvaluatedTrial, differences: Sequence[ResultDifference]
    ) -> Iterator[TriedEntityResult]:
        checks = {one.id: one.compiled for one in found.known.checks if not one.is_pending}
        entities = found.entities
        partial = {
            ref: PartialEvaluation(checks, entities[ref], self._counted(ref), self._now)
            for ref in {one.ref for one in differences}
        }
        for position, one in enumerate(differences):
            found.budget.check()
            check, ref = checks[one.check_id].check, one.ref
            is_decided = partial[ref].state(check.id) is not None
            fails = one.after == "fail" != one.before and check.severity == "required"
            told = None
            # Effects on other entities may be thousands of results, from other people's facts.
            is_shown = position < MOST_EXPLAINED and ref in self._own
            if is_shown and one.after in ("pass", "fail", "unknown"):
                told = self._told(check, entities[ref], partial[ref])
                told = told if told and state.name_state(told.state) == one.after else None
            counts = fails and is_decided and check.is_effective(self._now)
            yield TriedEntityResult(one, check, is_decided, counts, told)

    def _told(self, check: Check, entity: CheckedEntity, partial: PartialEvaluation) -> Explanation:
        if entity.ref in self._in_named_set:
            return rule_evaluation.explain_check(check, entity, self._now)
        document = self._own[entity.ref]
        return rule_evaluation.explain_narrowed(
            check, entity, document, partial.is_given, self._now
        )

    def _counted(self, ref: str) -> Callable[[FactReference], bool]:
        """A test for facts that the catalog or the documents provide."""
        given = self._facts.get(ref)

        def counts(fact: FactReference) -> bool:
            if fact.source == ENTITY or catalog.is_catalog_source(fact.source):
                return True
            return given is not None and (
                given.source.id == fact.source and fact.fact in given.values
            )

        return counts


def _check_reach(transaction: Transaction, plan: WritePlan) -> None:
    """Raise InputError if results of too many other entities could change."""
    if diff.count_reached(transaction, plan, _MOST_OTHERS) > _MOST_OTHERS:
        raise InputError(
            f"The items name, or are named by, more than {_MOST_OTHERS:,} other entities, and a "
            "preview evaluates no more; send fewer at once."
        )


def _read_stored_documents(transaction: Transaction, ids: list[int]) -> dict[str, dict[str, Any]]:
    rows = transaction.all(*stored_entities.entities_among_sql(stored_entities.EVERY_ENTITY, ids))
    return {ref: document for _, ref, document in stored_entities.decode_collectable(rows)}


def _add_places(document: msgspec.Raw, stored: Mapping[str, Any], domain: str) -> msgspec.Raw:
    """The document with the importer's annotations, unless it sets them itself."""
    before = stored["metadata"].get("annotations", {})
    if f"{domain}/import-origin" not in before:
        return document
    entity = msgspec.json.decode(document)
    own = entity["metadata"].get("annotations") or {}
    added = {
        name: value
        for name, value in before.items()
        if name.startswith(f"{domain}/") or name.endswith((*_PLACES, *_HOSTED))
    }
    # In import order, since a different order would make the document differ.
    entity["metadata"]["annotations"] = {
        **{
            name: own.get(name, value) for name, value in before.items() if name in {**added, **own}
        },
        **own,
    }
    return msgspec.Raw(msgspec.json.encode(entity))


# Entities per batch; other work runs between batches.
_EVALUATED_AT_ONCE: Final = 2_000
_NO_FACTS_PREVIEWED: Mapping[str, Any] = {}
_GRADED_AT_ONCE: Final = 2_000
_ADVISORY: Final = "advisory"


Facts = Mapping[str, Mapping[str, object]]


class PreviewedChange(NamedTuple):
    """An entity whose state would change."""

    ref: str
    before: int
    after: int

    @property
    def words(self) -> tuple[str, str]:
        """The states before and after, as words; `none` without a result so far."""
        before = "none" if self.before == NONE else name_state(self.before)
        return before, name_state(self.after)


class CheckPreview(NamedTuple):
    """Effect of a check: counts `now` and `then`, and the entities that would change.

    `changed` is their number. `first` lists some of them: those that would fail, then by reference.
    """

    now: StateCounts
    then: StateCounts
    changed: int
    first: list[PreviewedChange]
    age: ResultAge


class PreviewScope(NamedTuple):
    """Scope of a preview: entity references, all if empty, and assumed facts."""

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

    Current results are those of the version in effect with the same id. Raises InputError,
    TooManyRequestsError and UnavailableError if the preview costs the caller too much.
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
        # Empty without a state.
        pairs = [(ord(states.get(id_) or b"\0"), after.get(id_, OUT)) for id_, _ in portion]
        if any(before & EXEMPT for before, _ in pairs):
            pairs = [
                (
                    before,
                    then | EXEMPT if before & EXEMPT and then in (PASS, FAIL, UNKNOWN) else then,
                )
                for before, then in pairs
            ]
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
    """An evaluation of a check that is not stored."""

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
        """Batches of (id, reference) of the entities, by id."""
        refs, after = list(self._scope.refs), 0
        while True:
            found = await stored_entities.page_refs(self._database, after, _EVALUATED_AT_ONCE, refs)
            if found:
                yield found
            if len(found) < _EVALUATED_AT_ONCE:
                return
            after = found[-1][0]

    async def charge(self) -> None:
        """Reserve the steps of the preview, before anything is evaluated.

        This reads the texts that patterns search, since their length decides the cost.
        """
        steps = 0
        sources = {fact.source for fact, _ in self._check.patterns}
        async for portion in self.portions():
            steps += EVALUATION_STEPS * len(portion)
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
                found += count_pattern_steps([self._check], entity)
                self._budget.check()
            return found

        return await self._budget.work(steps)

    async def evaluate(
        self, portion: Sequence[tuple[int, str]], slots: Mapping[str, int]
    ) -> dict[int, int]:
        """The states of the entities that the check applies to, by id."""
        first, last = portion[0][0], portion[-1][0]
        filter_ = self._check.check.applies_to
        where = (
            stored_entities.EVERY_ENTITY
            if filter_ is None
            else filters.make_filter_condition(filter_)
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
        """The states of entities; counts the steps of paths."""
        found = {}
        for id_, entity in entities:
            found[id_] = self._check.evaluate(entity, self._now).state
            self._budget.count(entity.steps if self._has_paths else 0)
        return found

    async def _by_values(self, first: int, last: int, matching: Iterable[int]) -> dict[int, int]:
        """The states of entities for checks that read only stored fact values."""
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
    """The latest facts of an entity with assumed facts put in."""
    changed = {}
    for source, values in facts.items():
        before = latest.get(source) or Latest({}, {}, "", now)
        changed[source] = before._replace(facts={**before.facts, **values}, written_at=now)
    return {**latest, **changed}


def _count_previewed(states: Mapping[int, int]) -> StateCounts:
    counts = [0] * len(StateCounts._fields)
    for value, number in states.items():
        if PLACES[value] != NO_PLACE:
            counts[PLACES[value]] += number
    return StateCounts(*counts)


class PreviewedLevel(NamedTuple):
    """An entity whose level would change; None means outside the scorecard.

    Levels are ids, '' below the first.
    """

    ref: str
    before: str | None
    after: str | None


class ScorecardPreview(NamedTuple):
    """Entities by rank as they would be, and those that would change: all, and the first few.

    Entities that are exempt from the whole scorecard count as if they weren't in it yet.
    """

    then: LevelTally
    changed: int
    first: list[PreviewedLevel]


async def preview_scorecard(
    database: Database, card: Scorecard, now: int, limit: int, caller: str
) -> ScorecardPreview:
    """Grade every entity of the catalog; nothing is written.

    Raises InputError, TooManyRequestsError and UnavailableError if the preview costs the caller too
    much.
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
    former = names
    if stored and stored.published:
        with suppress(FactbookError):  # another release accepted it
            former = _list_level_names(parse_scorecard(stored.published))
    grader = Grader(card, _count_standings(known, now))
    levels, changed, after = Counter[int](), list[PreviewedLevel](), 0
    while portion := await stored_entities.page_refs(database, after, _GRADED_AT_ONCE, []):
        budget.count(EVALUATION_STEPS * len(portion))
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
    """The ranks of the entities that the scorecard applies to, by id."""
    ends = portion[0][0], portion[-1][0]
    where = stored_entities.EVERY_ENTITY
    if card.applies_to is not None:
        where = filters.make_filter_condition(card.applies_to)
    matching = await stored_entities.read_entities_between(database, where, *ends)
    states = await state_store.read_states_between(database, *ends)

    def graded() -> dict[int, int]:
        # Stored ranks are one higher.
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
    """The current ranks of the entities."""
    if slot is None:
        return {}
    last = portion[-1][0]
    rows = await level_store.read_level_page(database, slot, portion[0][0] - 1, len(portion))
    return {id_: graded.level for id_, graded in rows if id_ <= last}


def _count_standings(known: CheckSet, now: int) -> dict[str, int]:
    """The slots of the checks that count now, by check id."""
    checks = [one for one in known.checks if not one.is_pending]
    return {
        one.id: one.slot
        for one in checks
        if one.compiled.check.severity != _ADVISORY and one.compiled.check.is_effective(now)
    }


def _list_level_names(card: Scorecard) -> list[str]:
    """The ids of the levels by rank."""
    return ["", *(level.id for level in card.levels)]
