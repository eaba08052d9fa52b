"""Trials of writes: their changes to the results of checks, of which nothing stays; and their cost.

The cost of a trial is known before a check is evaluated, and refused with a sentence.
"""

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Sequence
from contextlib import asynccontextmanager
from functools import partial
from typing import Final, NamedTuple, TypeVar, cast

from factbook import user_patterns
from factbook.checks import state
from factbook.checks.results import incremental
from factbook.checks.results.check_set import CheckCache, CheckSet
from factbook.checks.results.entity_evaluation import (
    ActiveExemptions,
    SlotStates,
    evaluate_selection,
)
from factbook.checks.results.incremental import TouchedEntity
from factbook.checks.results.state_store import EntityStates
from factbook.checks.rules.checked_entity import CheckedEntity
from factbook.checks.rules.rule_evaluation import CompiledCheck
from factbook.clock import Clock
from factbook.errors import InputError, TooManyRequestsError, UnavailableError
from factbook.storage import Database, Transaction

T = TypeVar("T")

# Steps of one evaluation of a check without patterns.
EVALUATION_STEPS: Final = 50
# Steps of one trial, about 20 seconds at worst and much less as a rule.
MOST_STEPS: Final = 1_000_000_000
# Steps that one caller may have tried within a minute.
MOST_STEPS_A_MINUTE: Final = 3_000_000_000
# Seconds for the evaluation of one trial.
LONGEST_WAIT: Final = 30.0
# Trials under way in a process, and those of one caller that wait for its first to end.
MOST_AT_ONCE: Final = 2
MOST_WAITING: Final = 3
_REMEMBERED: Final = 10_000


class TrialBudget:
    """The budget of one trial; `work` runs under it."""

    def __init__(self, allowance: "_Allowance") -> None:
        self._allowance = allowance
        self._left = MOST_STEPS
        self._end = time.monotonic() + LONGEST_WAIT
        self._is_over = False

    def charge(self, steps: int) -> None:
        """Reserve steps before they are taken; raises InputError, TooManyRequestsError."""
        if steps > self._left:
            raise InputError(
                "The trial would take too long and wasn't evaluated: its checks, entities and "
                f"patterns cost {_to_share(MOST_STEPS - self._left + steps)} of what one trial may "
                "cost. Try fewer entities at once, or smaller patterns."
            )
        self._left -= steps
        self._allowance.take(steps)

    def count(self, steps: int) -> None:
        """Count steps that weren't known before; raises the errors of `charge` and `check`."""
        self.check()
        if steps:
            self.charge(steps)

    def check(self) -> None:
        """Raise UnavailableError once the time is over, or nobody waits for the trial any more."""
        if self._is_over or time.monotonic() > self._end:
            raise UnavailableError(
                f"The trial took longer than {LONGEST_WAIT:.0f} seconds and was ended. Try fewer "
                "entities at once, or simpler checks.",
                retry_after=None,
            )

    async def work(self, function: Callable[[], T]) -> T:
        """Run the function on a thread; it calls `check` or `count` between its parts."""
        try:
            return await asyncio.to_thread(function)
        except BaseException:
            self._is_over = True
            raise


class _Allowance:
    """The steps that a caller may have tried: all of them again after a minute without trials."""

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
    """Admits one trial of each caller at a time, and few in all; one per database and process."""

    def __init__(self) -> None:
        self._places = asyncio.Semaphore(MOST_AT_ONCE)
        self._allowances: dict[str, _Allowance] = {}

    @asynccontextmanager
    async def enter(self, caller: str) -> AsyncIterator[TrialBudget]:
        """Wait for the caller's turn and a place; raises TooManyRequestsError.

        `caller` is the id of a token, or whatever else tells apart who asks.
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
    """The steps that the patterns of checks take at most for an entity.

    Paths into objects come on top, and are only known once they are evaluated.
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


def _to_share(steps: int) -> str:
    return f"{100 * steps // MOST_STEPS:,} %"


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
        budget.charge(times * sum(map(_count_steps_touched, touched)))
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


def _list_compiled(touched: TouchedEntity) -> Sequence[CompiledCheck]:
    matching = touched.subject.matching
    checks = touched.selection.checks if matching is None else matching.inside
    return [one.compiled for one in checks]


def _count_steps_touched(touched: TouchedEntity) -> int:
    """The steps that the evaluation of an entity takes, but for paths into objects."""
    checks = _list_compiled(touched)
    return EVALUATION_STEPS * len(checks) + count_pattern_steps(checks, touched.subject.entity)
