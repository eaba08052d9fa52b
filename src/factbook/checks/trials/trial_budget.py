"""The cost of trials: known before a check is evaluated, and refused with a sentence.

Costs are counted in the steps of `user_patterns`, of about 20 nanoseconds at worst. A trial is
evaluated on a thread, outside of any transaction, so it holds up neither writes nor the event loop.
"""

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import asynccontextmanager
from typing import Final, TypeVar

from factbook import user_patterns
from factbook.checks.rules.checked_entity import CheckedEntity
from factbook.checks.rules.rule_evaluation import CompiledCheck
from factbook.errors import InputError, TooManyRequestsError, UnavailableError

T = TypeVar("T")

# Steps of one evaluation of a check without patterns.
EVALUATION: Final = 50
# Steps of one trial, about 20 seconds at worst and much less as a rule.
MOST_STEPS: Final = 1_000_000_000
# Steps that one caller may have tried within a minute.
MOST_STEPS_A_MINUTE: Final = 3_000_000_000
# Seconds for the evaluation of one trial.
LONGEST: Final = 30.0
# Trials under way in a process, and those of one caller that wait for its first to end.
MOST_AT_ONCE: Final = 2
MOST_WAITING: Final = 3
_REMEMBERED: Final = 10_000


class TrialBudget:
    """The budget of one trial; `work` runs under it."""

    def __init__(self, allowance: "_Allowance") -> None:
        self._allowance = allowance
        self._left = MOST_STEPS
        self._end = time.monotonic() + LONGEST
        self._is_over = False

    def charge(self, steps: int) -> None:
        """Reserve steps before they are taken; raises InputError, TooManyRequestsError."""
        if steps > self._left:
            raise InputError(
                "The trial would take too long and wasn't evaluated: its checks, entities and "
                f"patterns cost {_share(MOST_STEPS - self._left + steps)} of what one trial may "
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
                f"The trial took longer than {LONGEST:.0f} seconds and was ended. Try fewer "
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


def pattern_steps(checks: Iterable[CompiledCheck], entity: CheckedEntity) -> int:
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


def _share(steps: int) -> str:
    return f"{100 * steps // MOST_STEPS:,} %"
