"""Trials of writes: what they would change in the results of checks. Nothing of them stays.

A transaction does the write, reads what checks need of the entities that it touched, and is taken
back. The checks are evaluated after that, so other writes never wait for them.
"""

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Final, NamedTuple, TypeVar, cast

from factbook.checks import state
from factbook.checks.maintenance import incremental
from factbook.checks.maintenance.check_set import CheckCache, CheckSet
from factbook.checks.maintenance.incremental import TouchedEntity
from factbook.checks.maintenance.state_update import ActiveExemptions, SlotStates, evaluate
from factbook.checks.rules.checked_entity import CheckedEntity
from factbook.checks.rules.rule_evaluation import CompiledCheck
from factbook.checks.states.state_store import EntityStates
from factbook.checks.trials import trial_budget
from factbook.checks.trials.trial_budget import TrialBudget, TrialRoom
from factbook.clock import Clock
from factbook.storage import Database, Transaction

T = TypeVar("T")

# Entities that are kept in memory for a trial.
_MOST_ENTITIES: Final = 20_000
# To explain a result, its check is evaluated again: with what is given, as a whole and in parts.
_TIMES_LOOKED_AT: Final = 4
_NO_STATES: Final = EntityStates(0, "", b"", None)


class ResultDifference(NamedTuple):
    """A result that would be another one, in words; `before` is None of an entity that is new."""

    ref: str
    check_id: str
    before: str | None
    after: str


class EvaluatedTrial(NamedTuple):
    """A trial that was evaluated: the checks, and the entities that were, with their new states."""

    known: CheckSet
    entities: dict[str, CheckedEntity]
    differences: list[ResultDifference]
    budget: TrialBudget


Look = Callable[[EvaluatedTrial], None]


class _TakenBackError(Exception):
    """A write was done and what it touched was read; now it is taken back."""

    def __init__(self, result: object, known: CheckSet, touched: list[TouchedEntity]) -> None:
        self.result = result
        self.known = known
        self.touched = touched


class WriteTrial:
    """A runner of one write of a caller in a transaction that is taken back, then evaluated.

    It takes the locks of the write, and as long as the write.
    """

    def __init__(self, database: Database, clock: Clock, caller: str) -> None:
        self._database = database
        self._clock = clock
        self._caller = caller
        self.differences: list[ResultDifference] = []

    async def write(self, function: Callable[[Transaction], T], look: Look | None = None) -> T:
        """Run the function, note what it would change, and return its result.

        `look` is called with the entities and differences, on the thread that evaluated them.
        Raises InputError, TooManyRequestsError and UnavailableError if that costs too much.
        """
        async with self._database.remembered.of(TrialRoom).enter(self._caller) as budget:
            try:
                return await self._database.write(partial(self._try, function=function))
            except _TakenBackError as taken:
                await budget.work(partial(self._evaluate, taken.known, taken.touched, budget, look))
                return cast("T", taken.result)

    def _try(self, transaction: Transaction, function: Callable[[Transaction], T]) -> T:
        result = function(transaction)
        cache = self._database.remembered.of(CheckCache)
        found = incremental.read_touched(transaction, cache, self._clock(), _MOST_ENTITIES)
        raise _TakenBackError(result, *found)

    def _evaluate(
        self, known: CheckSet, touched: list[TouchedEntity], budget: TrialBudget, look: Look | None
    ) -> None:
        times = 1 if look is None else _TIMES_LOOKED_AT
        budget.charge(times * sum(map(_steps, touched)))
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
        steps = trial_budget.pattern_steps(_compiled(one), entity)
        now = evaluate(known, one.selection, one.subject, was, self._clock(), exempt).states
        # What its paths have taken beside its patterns, which are paid for.
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


def _compiled(touched: TouchedEntity) -> Sequence[CompiledCheck]:
    matching = touched.subject.matching
    checks = touched.selection.checks if matching is None else matching.inside
    return [one.compiled for one in checks]


def _steps(touched: TouchedEntity) -> int:
    """The steps that the evaluation of an entity takes, but for paths into objects."""
    checks = _compiled(touched)
    return trial_budget.EVALUATION * len(checks) + trial_budget.pattern_steps(
        checks, touched.subject.entity
    )
